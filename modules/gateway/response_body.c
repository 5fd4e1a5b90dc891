/*
 * The response body: buffered in small amounts as it arrives, and pulled by the client's session. A client that does
 * not read stops the reading from the upstream server.
 */
#include "response_body.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "connection.h"
#include "modules/gateway/spool.h"
#include "rate_limit.h"
#include "splice.h"
#include "tunnel.h"

#include <errno.h>

void gateway_wake_body(struct gateway_request *p)
{
    if (!p->incoming.wake_pending)
        return;
    p->incoming.wake_pending = false;
    p->incoming.body.wake(p->incoming.body.owner);
}

/*
 * True if enough of a body in chunks or FastCGI records was received, and more waits in the socket. Its framing hides
 * the length of the rest.
 */
static bool is_framed_body_large(const struct gateway_request *p)
{
    const struct upstream_connection *connection = p->upstream.connection; /* NULL: a stream of HTTP/2 */

    return connection && p->incoming.was_full && h1_reply_unframed(&p->reply) == 0 &&
           p->attempt->bytes_received >= LIMIT_SPLICE_BYTES;
}

/* A large receive needs an empty input; over TLS its records arrive one by one. */
static bool waits_for_empty_input(const struct gateway_request *p)
{
    const struct upstream_connection *connection = p->upstream.connection;

    return is_framed_body_large(p) || (connection && connection->tls && gateway_body_is_large(p));
}

static bool input_has_room(const struct gateway_request *p)
{
    if (p->incoming.transfer == TRANSFER_SPOOLED)
        return !p->incoming.spool || !spool_full(p->incoming.spool);
    if (p->incoming.input.length == 0)
        return true;
    return size_sub_sat(p->incoming.input.capacity, p->incoming.input.length) >= LIMIT_RECEIVE_BYTES &&
           !waits_for_empty_input(p);
}

/* One large receive fills the whole input. */
bool gateway_receives_large(const struct gateway_request *p)
{
    return p->stage == GATEWAY_RESPONDING && p->incoming.transfer != TRANSFER_SPOOLED &&
           p->incoming.input.length == 0 && (gateway_body_is_large(p) || is_framed_body_large(p));
}

/* True while too many bytes of the response wait to be written to the cache. */
static bool is_storage_full(const struct gateway_request *p)
{
    return p->cached && p->cache->fill->is_full(p);
}

void gateway_read(struct gateway_request *p)
{
    if (!gateway_is_connected(p))
        return;
    if ((p->stage == GATEWAY_SENDING || (input_has_room(p) && !gateway_is_rate_limited(p))) && !is_storage_full(p)) {
        if (p->upstream.stream)
            p->conf->gateway->streams->receive(p);
        else if (gateway_receives_large(p))
            wire_receive_large(&p->upstream.connection->wire);
        else
            wire_receive(&p->upstream.connection->wire);
    }
    gateway_set_timeout(p);
}

static int next_input(struct gateway_request *p, unsigned accept, size_t room, struct chunk *out)
{
    struct str bytes;

    if (p->incoming.input_at == p->incoming.input.length) { /* all pulled bytes were consumed */
        p->incoming.input.length = p->incoming.input_at = 0;
        if (!gateway_splice(p, accept))
            gateway_read(p);
    }
    bytes = str_slice(str_skip(buffer_str(&p->incoming.input), p->incoming.input_at), 0, room);
    if (str_empty(bytes)) {
        buffer_finish(&p->incoming.input); /* a waiting exchange holds no buffer */
        return 0;
    }
    p->incoming.input_at += bytes.length;
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = bytes};
    return 1;
}

static int next_spooled(struct gateway_request *p, unsigned accept, size_t room, struct chunk *out)
{
    int result = p->incoming.spool ? spool_next(p->incoming.spool, accept, room, out) : 0;

    gateway_read(p);
    return result;
}

static int body_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct gateway_request *p = container_of(body, struct gateway_request, incoming.body);
    int result;

    if (p->kind == RESPONSE_UPGRADED && p->upstream.connection && gateway_tunnel(p) < 0)
        return -ENOMEM;
    if (p->incoming.pipe && gateway_spliced(p, out))
        return 1;
    if (p->cached && p->cache->fill->delays_body(p)) {
        p->incoming.wake_pending = true;
        return -EAGAIN;
    }
    result = p->incoming.transfer == TRANSFER_SPOOLED ? next_spooled(p, accept, room, out)
                                                      : next_input(p, accept, room, out);
    if (result == 0)
        result = p->incoming.result;
    p->incoming.wake_pending = result == -EAGAIN;
    return result;
}

static void body_closed(struct body *body)
{
    struct gateway_request *p = container_of(body, struct gateway_request, incoming.body);

    p->incoming.wake_pending = false;
    gateway_discard(p);
    buffer_finish(&p->incoming.input);
    pipe_discard(p->incoming.pipe);
    p->incoming.pipe = NULL;
    if (p->incoming.spool)
        spool_close(p->incoming.spool);
    p->incoming.spool = NULL;
    p->stage = GATEWAY_DONE;
}

void gateway_body_init(struct gateway_request *p)
{
    static const struct body_ops ops = {.next = body_next, .close = body_closed};

    p->incoming.body = (struct body){.ops = &ops, .length = BODY_LENGTH_UNKNOWN};
    p->incoming.input_at = 0;
    p->incoming.result = -EAGAIN;
    p->incoming.wake_pending = false;
}

/* Ends the exchange of a background update, whose body is not pulled by a client. False: not a background update. */
static bool ends_update(struct gateway_request *p)
{
    if (!p->cached || !p->cached->background)
        return false;
    p->stage = GATEWAY_DONE;
    buffer_finish(&p->incoming.input);
    (void)exchange_error_response(p->x, 204);
    exchange_resume(p->x, OUTCOME_RESPONDED);
    return true;
}

static void body_end(struct gateway_request *p)
{
    if (ends_update(p))
        return;
    p->incoming.result = 0;
    gateway_wake_body(p);
}

void gateway_body_fail(struct gateway_request *p, int error)
{
    gateway_discard(p);
    if (p->cached)
        p->cache->fill->end(p, false);
    if (ends_update(p))
        return;
    if (p->incoming.result == -EAGAIN)
        p->incoming.result = error;
    gateway_wake_body(p);
}

void gateway_response_end(struct gateway_request *p, bool surplus)
{
    bool keep = p->reply.keepalive && p->sent.state == SENDING_DONE && !surplus;

    upstream_peer_count_time(p->upstream.peer, UINT64_MAX,
                             u64_sub_sat(exchange_clock(p->x)->monotonic_us, p->attempt->begun_us));
    if (p->reply.keepalive && surplus)
        gateway_log(p, LOG_WARN, "upstream sent more data than its response", 0);
    gateway_release(p, keep);
    if (p->cached)
        p->cache->fill->end(p, true);
    body_end(p);
}
