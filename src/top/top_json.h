/*
 * Prints rates as one JSON object, for scripts.
 */
#ifndef TOP_TOP_JSON_H
#define TOP_TOP_JSON_H

#include "base/buffer.h"
#include "top/top_rates.h"

/* Appends the object and a newline; `now` is the later sample. Returns 0 or -errno. */
MUST_CHECK int top_json_print(const struct top_rates *rates, const struct top_sample *now, struct buffer *out);

#endif
