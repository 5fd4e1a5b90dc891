/*
 * The tokens of nginx's language, one at a time, without interpretation.
 */
#ifndef IMPORT_NGINX_LEX_H
#define IMPORT_NGINX_LEX_H

#include "base/arena.h"

enum nginx_token_kind {
    NGINX_WORD,                     /* text: without quotes and escapes */
    NGINX_OPEN,                     /* { */
    NGINX_CLOSE,                    /* } */
    NGINX_SEMICOLON,
    NGINX_COMMENT,                  /* text: from '#' to the end of the line */
    NGINX_END_OF_FILE,
};

struct nginx_token {
    enum nginx_token_kind kind;
    struct str text;
    unsigned line;                  /* of its beginning, from 1 */
};

struct nginx_lexer {
    struct arena *arena;            /* holds words that had escapes; others are views of the source */
    struct str source;
    size_t at;
    unsigned line;
    bool delimiter_required;        /* after a quoted word: a blank, ';', '{' or ')' must follow */
    const char *fault;              /* error text after -EINVAL, at `line` */
};

/* Initialises a lexer for `source`, which outlives the tokens and stays owned by the caller. */
void nginx_lexer_init(struct nginx_lexer *lexer, struct arena *arena, struct str source);

/* Reads the next token. 0, -ENOMEM, or -EINVAL with lexer->fault; after an error the lexer is unusable. */
MUST_CHECK int nginx_lexer_next(struct nginx_lexer *lexer, struct nginx_token *out_token);

/* After the '{' of a Lua block: skips to its '}'. Braces in Lua strings and comments do not count. 0 or -EINVAL. */
MUST_CHECK int nginx_lexer_skip_lua(struct nginx_lexer *lexer);

#endif
