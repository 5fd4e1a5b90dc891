/*
 * A source in one layout, by the marks of its tokens: indentation, blanks and blank
 * lines change, never a word, a quote or a comment. `sluice fmt`.
 */
#ifndef CONF_FORMAT_H
#define CONF_FORMAT_H

#include "conf/conf_tree.h"

/*
 * Appends `text` to `out` with two blanks a level (lists too), one blank between words, at most one empty line in a row
 * and "\n" at the end of each line. Comments keep their words, and their column as far as their line moves not. What is open
 * over several lines moves as one. 0; -EINVAL with the reason in `errors` (no YAML, or the result would not say the same:
 * nothing is appended then), or -ENOMEM. The arena outlives the errors.
 */
MUST_CHECK int conf_format(struct arena *arena, struct str name, struct str text, struct conf_errors *errors,
                           struct buffer *out);

/*
 * True where both sources give the same events (kinds, texts, styles, anchors, tags) and hold the same comments in the same
 * order. False too where one is no YAML, or memory runs out.
 */
bool format_same(struct str before, struct str after);

/*
 * Appends what leads from `before` to `after` as a unified diff of `name`, which patch(1) takes; nothing where they are the same. 0, -ENOMEM or
 * -ENOBUFS, and a part of it may be there.
 */
MUST_CHECK int format_diff(struct str name, struct str before, struct str after, struct buffer *out);

/* Of the files of formatting: walks a text by the marks of libyaml, which count characters. */
struct format_cursor {
    struct str text;
    size_t at;                      /* byte */
    size_t characters;              /* before it */
};

/* The byte of character `index`, which is not before the last one asked for. */
size_t format_offset(struct format_cursor *cursor, size_t index);

#endif
