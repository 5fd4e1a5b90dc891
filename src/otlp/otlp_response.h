/*
 * The response of a collector to a batch: the meaning of its status in the OTLP specification, and the spans that it
 * rejected. Reads only what is needed; the rest is not trusted and not kept.
 */
#ifndef OTLP_OTLP_RESPONSE_H
#define OTLP_OTLP_RESPONSE_H

#include "base/buffer.h"
#include "http/h1_reply.h"

struct otlp_response {
    int status;                     /* 100 to 599 */
    uint64_t retry_after_ms;        /* Retry-After in seconds, at most LIMIT_OTLP_RETRY_AFTER_MS; 0: none */
    uint64_t rejected;              /* spans of a partial success */
    bool keepalive;                 /* another request may follow on the connection */
};

/* One response; only `response` is read by others. */
struct otlp_response_reader {
    struct otlp_response response;  /* the status is 0 until the head is complete */
    size_t received;
    struct h1_reply reply;
    struct arena arena;
    struct headers trailers;
    struct buffer body;             /* of status 200 */
};

/* Prepares for a response, of at most LIMIT_OTLP_RESPONSE bytes. Ended by otlp_response_finish. */
void otlp_response_init(struct otlp_response_reader *reader);
void otlp_response_finish(struct otlp_response_reader *reader);
/*
 * Reads the next bytes; empty: the end of the connection. 1: `response` is complete; 0: more is needed; -EBADMSG: no
 * HTTP/1 response; -ENOMEM. Interim responses are skipped. If a body is malformed, truncated or too long, the status
 * applies nevertheless, and the connection must not be reused.
 */
MUST_CHECK int otlp_response_read(struct otlp_response_reader *reader, struct str bytes);
/* The spans that an ExportTraceServiceResponse rejects; 0 if it is malformed. */
uint64_t otlp_response_rejected(struct str body);
/* True for statuses after which the same batch is sent again: 429, 502, 503, 504. */
bool otlp_status_is_retryable(int status);

#endif
