/*
 * `sluice fmt`: prints a source in the uniform layout, by the positions of its tokens. Formatting changes indentation,
 * blanks, line breaks and empty lines, never words, quotes or comments.
 */
#ifndef CONF_FORMAT_H
#define CONF_FORMAT_H

#include "conf/conf_tree.h"

/*
 * Appends `text` to `out` with two blanks per level (of lists, too), one blank between words, at most one empty line in
 * a row, and "\n" at the end of each line. Comments keep their words, and their column relative to their line.
 * Multi-line scalars and flow collections move as a whole. 0; -EINVAL with the reason in `errors` (invalid YAML, or
 * the result would have another meaning; nothing is appended), or -ENOMEM. The arena must outlive `errors`.
 */
MUST_CHECK int conf_format(struct arena *arena, struct str name, struct str text, struct conf_errors *errors,
                           struct buffer *out);

/*
 * True if both sources have the same events (kinds, texts, styles, anchors, tags) and the same comments in the same
 * order. Also false for invalid YAML and when out of memory.
 */
bool format_same(struct str before, struct str after);

/* Private to format*.c: converts libyaml's marks, which count characters, to byte offsets. */
struct format_cursor {
    struct str text;
    size_t at;                      /* byte offset */
    size_t characters;              /* characters before it */
};

/* The byte offset of character `index`, which must not decrease from call to call. */
size_t format_offset(struct format_cursor *cursor, size_t index);

#endif
