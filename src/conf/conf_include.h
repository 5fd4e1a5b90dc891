/*
 * Resolves `include:` and `!include`. Private to the loader.
 */
#ifndef CONF_CONF_INCLUDE_H
#define CONF_CONF_INCLUDE_H

#include "conf/conf_source.h"

/*
 * Resolves every include at and below `node`, also in included files. Maps and lists are changed in place. Returns
 * the resulting node (a different one for !include), or NULL: the caller omits it. Errors are reported.
 */
struct conf_node *includes_resolve(struct conf_loader *loader, struct conf_node *node);

#endif
