/*
 * Words of configurations that are no directives of this build: scopes, nginx's directives that sluice does not have,
 * and what to write instead.
 */
#ifndef CONF_CONF_VOCABULARY_H
#define CONF_CONF_VOCABULARY_H

#include "conf/conf_schema.h"

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

/* The i-th directive of nginx that sluice does not have (a family ends with '*'), with what to do instead; NULL at the end. */
const char *vocabulary_refused(size_t index, const char **out_hint);

enum vocabulary_word {
    VOCABULARY_UNKNOWN,
    VOCABULARY_UNSUPPORTED,         /* a directive of nginx that sluice does not have */
    VOCABULARY_LEFT_OUT,            /* its module is not in this build */
};

/* What a name is that no directive of the schema has; *out_hint says what to do instead, unless it is unknown. */
enum vocabulary_word vocabulary_look_up(const struct conf_schema *schema, struct str name, struct str *out_hint);

#endif
