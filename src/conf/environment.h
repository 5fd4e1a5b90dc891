/*
 * Environment references in scalars: "${UPPER_CASE}". The loader expands them once, after parsing, so that a value
 * cannot change the structure of the file.
 */
#ifndef CONF_ENVIRONMENT_H
#define CONF_ENVIRONMENT_H

#include "base/arena.h"

/*
 * The length of the reference at the start of `text` ("${NAME}", "${NAME:-default}", "${NAME:?message}"), or 0.
 * Without a closing brace it extends to the end of `text`.
 */
size_t environment_reference(struct str text);

/*
 * Expands every reference in `text`; "$${NAME}" gives "${NAME}". 0, -ENOMEM, or -EINVAL with the reference's offset
 * in *out_at, an error text in *out_error and a hint in *out_hint (arena). A text without references is not copied.
 */
MUST_CHECK int environment_expand(struct arena *arena, struct str text, struct str *out_text, size_t *out_at,
                                  struct str *out_error, struct str *out_hint);

#endif
