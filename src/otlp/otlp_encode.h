/*
 * Writes an ExportTraceServiceRequest in protobuf (opentelemetry-proto 1.x, collector/trace/v1/trace_service.proto and
 * trace/v1/trace.proto): one resource, one scope, the spans of a batch.
 */
#ifndef OTLP_OTLP_ENCODE_H
#define OTLP_OTLP_ENCODE_H

#include "base/buffer.h"
#include "otlp/otlp.h"
#include "otlp/span.h"

struct otlp_message {
    struct buffer out;
    int error;                      /* the first: -ENOMEM or -ENOBUFS; then nothing more is written */
    size_t resource_at, scope_at;   /* where the open submessages begin */
};

/* Begins a request in memory of at most `max` bytes. `version` is that of the scope. */
void otlp_message_begin(struct otlp_message *message, const struct otlp *otlp, struct str version, size_t max);
/*
 * Adds a span. Control characters and invalid UTF-8 in its texts become U+FFFD. 0; -ENOBUFS: the message has no room
 * for it, is unchanged, and can be ended and sent; or -ENOMEM.
 */
MUST_CHECK int otlp_message_add(struct otlp_message *message, const struct span *span);
/* Completes the request: its bytes are in `out`. 0 or -errno. */
MUST_CHECK int otlp_message_end(struct otlp_message *message);
/* Frees the memory. */
void otlp_message_finish(struct otlp_message *message);

#endif
