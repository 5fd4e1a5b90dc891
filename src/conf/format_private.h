/*
 * The state of formatting, shared by format.c (tokens and the gaps between them), format_indent.c (nesting and
 * indentation) and format_scalar.c (the words of a token).
 */
#ifndef CONF_FORMAT_PRIVATE_H
#define CONF_FORMAT_PRIVATE_H

#include "base/limits.h"
#include "conf/format_lines.h"

#include <yaml.h>

#define FRAMES_MAX (2 * LIMIT_CONF_DEPTH + 2)

/* A block mapping or list: its column in the source and in the output. */
struct frame {
    unsigned source;
    unsigned indent;
    bool list;
    bool assumed;                   /* a list in the column of its key, for which libyaml has no start token */
};

struct format {
    struct format_lines lines;
    struct format_cursor cursor;
    yaml_token_t token;
    yaml_token_type_t last;             /* the type of the token written last */
    size_t end;                         /* offset after it */
    struct frame frames[FRAMES_MAX];
    size_t depth;
    struct frame before[FRAMES_MAX];    /* the frames at the latest token, for the comments after it */
    size_t before_depth;
    unsigned flow;                      /* open brackets */
    unsigned flow_source, flow_column;  /* of the outermost bracket */
    long flow_line;                     /* shift of its line */
    bool key;                           /* a key follows */
    bool too_deep;
    /* The latest token was a block scalar: a line break added after it would change its text. */
    bool block_last;
};

/* The innermost block; zeros outside of all blocks. */
const struct frame *format_innermost(const struct format *format);
/* The indentation inside the innermost block. */
unsigned format_inner_indent(const struct format *format);
/* The number of columns by which the current line is shifted to the right; negative: to the left. */
long format_line_shift(const struct format *format);
/* The column `source` shifted by `shift` columns, at least `min`. */
unsigned format_shift_column(unsigned source, long shift, unsigned min);
/* The indentation of a token that begins a line; in the source its column is `source`. */
unsigned format_token_indent(const struct format *format, unsigned source);
/*
 * The indentation of a comment on its own line, which is the indentation of its block: of the blocks that are open
 * before the comment and the block of the next token, the deepest one that does not begin to the right of the comment.
 */
unsigned format_comment_indent(const struct format *format, unsigned column, unsigned next_source,
                               unsigned next_indent);
/* Updates the nesting before the token is written. */
void format_token_enter(struct format *format);
/* Updates the flow state after the token is written, when its column in the output is known. */
void format_token_leave(struct format *format);

/* Writes the token at these offsets of the source; its column there is `source`. */
void format_words_write(struct format *format, size_t start, size_t end, unsigned source);

#endif
