/*
 * Reports a key that is not a directive of its scope: one of another scope, of nginx, or of a module that this build
 * lacks, or a misspelt one.
 */
#ifndef CONF_UNKNOWN_KEY_H
#define CONF_UNKNOWN_KEY_H

#include "conf/conf_schema.h"

/* Reports `key`, which the schema does not have in `scope`, with a correction if one is known. */
void key_reject(struct conf_reader *reader, const struct conf_schema *schema, enum conf_scope scope,
                const struct conf_node *key);

#endif
