/*
 * "${UPPER_CASE}" in scalars: the environment, read once at load, after parsing, so
 * that no value of it can change the structure of the file.
 */
#ifndef CONF_ENVIRONMENT_H
#define CONF_ENVIRONMENT_H

#include "base/arena.h"

/*
 * The length of the reference at the start of `text` ("${NAME}", "${NAME:-default}", "${NAME:?message}"),
 * or 0 where none begins. One without its closing brace counts to the end of `text`.
 */
size_t environment_reference(struct str text);

/*
 * Replaces every reference in `text`; "$${NAME}" gives "${NAME}". 0, -ENOMEM, or -EINVAL with the reference's
 * offset in *out_at, a sentence in *out_error and a hint in *out_hint (arena). A text without any is not copied.
 */
MUST_CHECK int environment_expand(struct arena *arena, struct str text, struct str *out_text, size_t *out_at,
                                  struct str *out_error, struct str *out_hint);

#endif
