/*
 * W3C Trace Context (https://www.w3.org/TR/trace-context/, level 1): the fields traceparent and tracestate.
 */
#ifndef HTTP_TRACE_CONTEXT_H
#define HTTP_TRACE_CONTEXT_H

#include "http/headers.h"

enum {
    TRACE_ID_DIGITS = 32,
    SPAN_ID_DIGITS = 16,
    TRACEPARENT_LENGTH = 55,        /* of version 00 */
};

struct trace_context {
    /* TRACE_ID_DIGITS lower-case hexadecimal digits, not all zero; data NULL: no trace. */
    struct str trace_id;
    struct str span_id;             /* SPAN_ID_DIGITS of them: parent-id in a received traceparent */
    bool sampled;
};

/*
 * Parses traceparent into slices of its value. False if the field is absent, repeated or invalid: the caller then
 * starts a new trace. In versions above 00, further members after a dash are ignored (3.2.4).
 */
MUST_CHECK bool traceparent_read(const struct headers *headers, struct trace_context *out);
/* Writes traceparent as version 00, without a terminating NUL. */
void traceparent_write(const struct trace_context *context, char out[TRACEPARENT_LENGTH]);

/*
 * Joins the tracestate fields of a request whose traceparent is valid. *out is empty if there is no member, or if the
 * list is invalid: a syntax error, a repeated key, or more than LIMIT_TRACESTATE_MEMBERS members. 0 or -ENOMEM.
 */
MUST_CHECK int tracestate_read(const struct headers *headers, struct arena *arena, struct str *out);

#endif
