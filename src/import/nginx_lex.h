/*
 * The words of nginx's language: bytes in, one token at a time out. What the words mean is not known here.
 */
#ifndef IMPORT_NGINX_LEX_H
#define IMPORT_NGINX_LEX_H

#include "base/arena.h"

enum nginx_token_kind {
    NGINX_WORD,                     /* text: without its quotes and escapes */
    NGINX_OPEN,                     /* { */
    NGINX_CLOSE,                    /* } */
    NGINX_SEMICOLON,
    NGINX_COMMENT,                  /* text: from the '#' to the end of the line */
    NGINX_END_OF_FILE,
};

struct nginx_token {
    enum nginx_token_kind kind;
    struct str text;
    unsigned line;                  /* where it begins, from one */
};

struct nginx_lexer {
    struct arena *arena;            /* words that had escapes are copied into it; others are views of the source */
    struct str source;
    size_t at;
    unsigned line;
    bool glued;                     /* a quoted word has ended: blank, ';', '{' or ')' must follow */
    const char *fault;              /* a sentence, after -EINVAL; `line` is its place */
};

/* A lexer at the beginning of `source`, which stays the caller's and outlives the tokens. */
void nginx_lexer_init(struct nginx_lexer *lexer, struct arena *arena, struct str source);

/* The next token. 0, -ENOMEM, or -EINVAL with lexer->fault; after either of these the lexer is of no more use. */
MUST_CHECK int nginx_lexer_next(struct nginx_lexer *lexer, struct nginx_token *out_token);

/* Goes behind the '}' of a block of Lua whose '{' was the last token: braces in texts and comments of Lua do not count. 0 or -EINVAL. */
MUST_CHECK int nginx_lexer_skip_lua(struct nginx_lexer *lexer);

#endif
