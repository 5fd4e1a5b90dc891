/*
 * `if` and `sample` of an access log: the requests that get a line.
 */
#ifndef LOG_LOG_SELECTION_H
#define LOG_LOG_SELECTION_H

#include "conf/template.h"

struct log_selection {
    const struct template *condition;   /* an empty value or "0" gives no line; NULL: none */
    uint32_t numerator, denominator;    /* lines per requests that meet the condition; denominator 0: every request */
    unsigned index;                     /* of the counter of a worker */
};

/* Parses "1/100", "0.01" or "1": at most 1, at least 1/LIMIT_LOG_SAMPLE. 0, -EINVAL or -ERANGE. */
MUST_CHECK int log_sample_parse(struct str text, uint32_t *out_numerator, uint32_t *out_denominator);
/*
 * Returns true if this request gets a line. `condition` is that of the selection, or one evaluated by template_finish.
 * `counter` starts at 0: of the first `denominator` requests that meet the condition exactly `numerator` are selected,
 * and the first is one of them; then the pattern repeats.
 */
bool log_selection_includes(const struct log_selection *selection, const struct template *condition, uint32_t *counter,
                            const void *subject, struct arena *arena);

#endif
