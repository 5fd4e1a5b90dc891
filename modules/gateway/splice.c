/*
 * Passes large bodies from the upstream server's socket through a pipe to the client's by splice(2). A pipe is filled
 * only when it is empty: otherwise EAGAIN could mean an empty socket or a full pipe.
 */
#include "splice.h"

#include "base/limits.h"
#include "connection.h"

static uint64_t unframed_bytes(const struct gateway_request *p)
{
    return h1_reply_unframed(&p->reply);
}

/* A body of unknown length is large once enough of it was received. A rest that fits into one receive is copied. */
bool gateway_body_is_large(const struct gateway_request *p)
{
    if (unframed_bytes(p) == UINT64_MAX)
        return p->attempt->bytes_received >= LIMIT_SPLICE_BYTES;
    return p->reply.content_length >= LIMIT_SPLICE_BYTES && unframed_bytes(p) > LIMIT_RECEIVE_BYTES;
}

bool gateway_splices(const struct gateway_request *p)
{
    if (p->stage != GATEWAY_RESPONDING || !p->upstream.connection || p->upstream.connection->tls ||
        p->incoming.transfer != TRANSFER_ANY || p->kind != RESPONSE_PLAIN || p->incoming.rate_limit ||
        (p->cached && (p->cached->fill || p->cached->background)))
        return false;
    return p->incoming.pipe ? unframed_bytes(p) > 0 : gateway_body_is_large(p);
}

bool gateway_splice(struct gateway_request *p, unsigned accept)
{
    struct wire *wire;

    if (!gateway_splices(p))
        return false;
    wire = &p->upstream.connection->wire;
    if (!p->incoming.pipe && (accept & CHUNK_PIPE))
        p->incoming.pipe = pipe_pool_get(&wire->shared->pipes);
    if (!p->incoming.pipe) {
        p->incoming.transfer = TRANSFER_COPIED;
        return false;
    }
    if (!wire_can_receive_pipe(wire)) /* bytes already received are consumed first */
        return false;
    wire_receive_pipe(wire, p->incoming.pipe,
                      unframed_bytes(p) < LIMIT_PIPE_BYTES ? (size_t)unframed_bytes(p) : LIMIT_PIPE_BYTES);
    gateway_set_timeout(p);
    return true;
}

bool gateway_splice_filled(struct gateway_request *p, size_t count)
{
    p->incoming.spliced = (struct chunk){.kind = CHUNK_PIPE};
    p->incoming.spliced.pipe.source = p->incoming.pipe;
    p->incoming.spliced.pipe.length = count;
    p->incoming.spliced.pipe.whole = p->reply.content_length;
    p->attempt->bytes_received += count;
    h1_reply_skip(&p->reply, count);
    return unframed_bytes(p) == 0;
}

bool gateway_spliced(struct gateway_request *p, struct chunk *out)
{
    *out = p->incoming.spliced;
    p->incoming.spliced = (struct chunk){.kind = CHUNK_PIPE};
    return chunk_length(out) > 0;
}
