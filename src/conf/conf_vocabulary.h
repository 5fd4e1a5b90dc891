/*
 * Names that are not directives of this build: keys that open scopes, and nginx's directives that sluice does not have,
 * with alternatives.
 */
#ifndef CONF_CONF_VOCABULARY_H
#define CONF_CONF_VOCABULARY_H

#include "conf/conf_schema.h"

/* A key that opens a scope. */
struct block_word {
    const char *name;
    unsigned opens_scopes;          /* the scopes that it may open: `server` opens one in http and another in stream */
    unsigned allowed_in;            /* the scopes in which it is allowed */
    const char *help;
    const char *example;
};

/* The scopes in which a key that opens an inner scope ("server") is allowed; 0 for other words. */
unsigned vocabulary_blocks(struct str name);
/* The block at `index`; NULL past the end. */
const struct block_word *vocabulary_block(size_t index);

/*
 * The directive of nginx at `index` that sluice does not have (a family ends with '*'), with the alternative; NULL
 * past the end.
 */
const char *vocabulary_unsupported(size_t index, const char **out_hint);

enum vocabulary_word {
    VOCABULARY_UNKNOWN,
    VOCABULARY_UNSUPPORTED,         /* a directive of nginx that sluice does not have */
    VOCABULARY_LEFT_OUT,            /* its module is not in this build */
};

/* Classifies a name that the schema does not have; *out_hint is the alternative, if it is known. */
enum vocabulary_word vocabulary_find(const struct conf_schema *schema, struct str name, struct str *out_hint);

#endif
