/*
 * The response of a collector to a batch: what the OTLP specification says about its status, and the spans that it
 * rejected. Reads only what is needed; the rest is not trusted and not kept.
 */
#ifndef OTLP_OTLP_RESPONSE_H
#define OTLP_OTLP_RESPONSE_H

#include "base/str.h"

struct otlp_response {
    int status;                     /* 100 to 599 */
    uint64_t retry_after_ms;        /* Retry-After in seconds, at most LIMIT_OTLP_RETRY_AFTER_MS; 0: none */
    uint64_t rejected;              /* spans of a partial success */
};

/*
 * Parses everything received so far. 1: complete; 0: more is needed (with `ended`: 1 or an error); -EBADMSG: not an
 * HTTP/1 response. Interim responses are skipped. The body is used only with a Content-Length, or up to the end of the
 * connection.
 */
MUST_CHECK int otlp_response_parse(struct str bytes, bool ended, struct otlp_response *out_response);
/* The spans that an ExportTraceServiceResponse rejects; 0 if it is malformed. */
uint64_t otlp_response_rejected(struct str body);
/* True for statuses after which the same batch is sent again: 429, 502, 503, 504. */
bool otlp_status_is_retryable(int status);

#endif
