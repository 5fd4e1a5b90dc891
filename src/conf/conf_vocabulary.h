/*
 * Words of configurations that are no directives of this build: scopes, nginx's
 * directives that sluice will carry or does not carry, and the way out for each.
 */
#ifndef CONF_CONF_VOCABULARY_H
#define CONF_CONF_VOCABULARY_H

#include "conf/directive.h"

/* A key that opens a scope. */
struct block_word {
    const char *name;
    unsigned opens;                 /* may be several: server is another thing in stream */
    unsigned stands;
    const char *help;
    const char *example;
};

/* The scopes in which a key that opens an inner scope ("server") may stand; 0 for any other word. */
unsigned vocabulary_blocks(struct str name);
/* The i-th such block; NULL at the end. */
const struct block_word *vocabulary_block(size_t index);

/* The i-th name (a family ends with '*') that is known and will not be carried, with its hint; NULL at the end. */
const char *vocabulary_refused(size_t index, const char **out_hint);

/* A directive of nginx that this build has not: what to do instead. data NULL: not known. */
struct str vocabulary_missing(struct str name);

#endif
