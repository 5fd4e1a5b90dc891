/*
 * `include:` and `!include`: other files take their place in the tree. Used by the
 * loader only.
 */
#ifndef CONF_CONF_INCLUDE_H
#define CONF_CONF_INCLUDE_H

#include "conf/conf_source.h"

/*
 * Does every include at and below `node`, those of included files too. Maps and lists are changed in place.
 * Returns the node that now stands there (another one for !include); NULL: leave it out. Errors are reported.
 */
struct conf_node *includes_resolve(struct conf_loader *loader, struct conf_node *node);

#endif
