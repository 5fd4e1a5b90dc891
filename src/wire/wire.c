/*
 * The life cycle of a wire: open, orderly close, abort, and the last completion, which frees. Receiving is in
 * wire_receive.c, the queue in wire_send.c.
 */
#include "wire/wire_queue.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "tls/tls_client.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

int wire_shared_init(struct wire_shared *shared)
{
    pipe_pool_init(&shared->pipes, shared->loop);
    shared->plaintext = malloc(LIMIT_RECORD_PLAINTEXT);
    shared->cipher_contexts = cipher_context_cache_create(LIMIT_CIPHERS_LIVE);
    if (!shared->ktls_calls)
        shared->ktls_calls = &ktls_calls_kernel;
    if (shared->plaintext && shared->cipher_contexts)
        return 0;
    wire_shared_finish(shared);
    return -ENOMEM;
}

void wire_shared_finish(struct wire_shared *shared)
{
    if (shared->cipher_contexts)
        cipher_context_cache_destroy(shared->cipher_contexts);
    shared->cipher_contexts = NULL;
    free(shared->plaintext);
    shared->plaintext = NULL;
    output_block_pool_finish(shared);
    pipe_pool_finish(&shared->pipes);
}

void wire_log(struct wire *wire, enum log_level level, const char *what, int error)
{
    if (error)
        log_write(wire->shared->log, level, "%s (%d: %s), fd %d", what, -error, strerror(-error), wire->fd);
    else
        log_write(wire->shared->log, level, "%s, fd %d", what, wire->fd);
}

enum wire_close_reason wire_close_reason_of(int error)
{
    return error == -ETIMEDOUT ? WIRE_CLOSE_TIMEOUT : WIRE_CLOSE_PEER_RESET;
}

/* UNIX sockets have no such option. */
static void set_delay(int fd, bool delay)
{
    int at_once = !delay;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
}

/* `opened` of a plain wire is called from the loop, as after a handshake. */
static void plain_opened(struct op *op, int result)
{
    struct wire *wire = container_of(op, struct wire, receive);

    if (wire->state == WIRE_CLOSING) {
        wire_finish_close(wire);
        return;
    }
    wire->delivering = true;
    wire->events->opened(wire);
    wire->delivering = false;
    wire_push(wire);
    wire_receive_start(wire);
}

/* Creates a TLS session and the state for a PROXY header. */
static int prepare_handshake(struct wire *wire, struct tls_context *context)
{
    if (context) {
        wire->tls = tls_session_create(context, &wire_tls_output, wire);
        if (!wire->tls)
            return -ENOMEM;
    }
    if (!wire->events->proxy_header || wire_await_proxy_header(wire) == 0)
        return 0;
    tls_session_destroy(wire->tls);
    wire->tls = NULL;
    return -ENOMEM;
}

int wire_open(struct wire *wire, struct wire_shared *shared, const struct wire_events *events,
              const struct wire_settings *settings, int fd, struct tls_context *context)
{
    wire->shared = shared;
    wire->events = events;
    wire->settings = settings;
    wire->fd = fd;
    wire->state = context || events->proxy_header ? WIRE_HANDSHAKE : WIRE_OPEN;
    wire->sealing = context ? SEALING_HANDSHAKE : SEALING_NONE;
    if (prepare_handshake(wire, context) < 0) {
        loop_close_fd(shared->loop, fd);
        return -ENOMEM;
    }
    if (settings->delay)
        set_delay(fd, true);
    if (wire->proxy_header || context) {
        wire->receiving = true;
        wire_receive_start(wire);
    } else {
        wire->receive.done = plain_opened;
        loop_timer(shared->loop, &wire->receive, shared->loop->clock.monotonic_ms);
    }
    return 0;
}

int wire_open_client(struct wire *wire, struct wire_shared *shared, const struct wire_events *events,
                     const struct wire_settings *settings, int fd, struct tls_context *context, struct str name,
                     const struct tls_resumption *resumption)
{
    int error = wire_open(wire, shared, events, settings, fd, context);

    if (error < 0)
        return error;
    if (tls_session_expect(wire->tls, context, name) < 0) {
        wire_fail(wire, WIRE_CLOSE_PROTOCOL);
        return 0;
    }
    if (resumption)
        tls_session_resume(wire->tls, context, name, resumption);
    if (tls_session_handshake(wire->tls) != -EAGAIN)
        wire_fail(wire, WIRE_CLOSE_PROTOCOL);
    else
        wire_push(wire); /* the client sends the first flight */
    return 0;
}

uint64_t wire_unsent(const struct wire *wire)
{
    return chunk_length(&wire->span);
}

void wire_apply_settings(struct wire *wire, const struct wire_settings *settings)
{
    bool promised = wire->reading || (wire->last && wire->last->open);

    bool same = settings->record_size == wire->settings->record_size &&
                settings->small_records == wire->settings->small_records;

    if (!same && promised)
        return;
    if (settings->delay != wire->settings->delay)
        set_delay(wire->fd, settings->delay);
    wire->settings = settings;
}

/* Bytes in TCP that the peer has not acknowledged. */
static uint64_t in_tcp(const struct wire *wire)
{
    int bytes = 0;

    return wire->sealing == SEALING_KERNEL && ioctl(wire->fd, SIOCOUTQ, &bytes) == 0 ? (uint64_t)bytes : 0;
}

/* After a reset, TCP still reports unacknowledged bytes. */
static bool is_reset(const struct wire *wire)
{
    struct pollfd now = {.fd = wire->fd};

    return poll(&now, 1, 0) > 0 && (now.revents & (POLLERR | POLLHUP));
}

bool wire_unacknowledged(struct wire *wire)
{
    bool before = wire->tail_seen;

    wire->tail_seen = in_tcp(wire) > 0 && !is_reset(wire);
    return wire->tail_seen || before;
}

uint64_t wire_bytes_sent(const struct wire *wire)
{
    if (wire->state == WIRE_LINGERING)
        return u64_sub_sat(wire->sent, in_tcp(wire)); /* TCP counts record heads and tags, too */
    if (op_idle(&wire->send))
        return wire->sent;
    if (wire->send.verb == OP_SENDFILE)
        return wire->sent + wire->send.file.progress;
    return wire->sent + (wire->send.verb == OP_SEND ? wire->send.send.progress : 0);
}

uint64_t wire_bytes_confirmed(const struct wire *wire)
{
    uint64_t sent = wire_bytes_sent(wire);
    int bytes = 0;

    if (wire->state == WIRE_LINGERING || ioctl(wire->fd, SIOCOUTQ, &bytes) < 0 || bytes < 0)
        return sent;
    return u64_sub_sat(sent, (uint64_t)bytes);
}

uint64_t wire_bytes_received(const struct wire *wire)
{
    return wire->received;
}

static void close_orderly(struct wire *wire)
{
    if (wire->state == WIRE_HANDSHAKE) { /* nothing was promised yet */
        wire_fail(wire, WIRE_CLOSE_ORDERLY);
        return;
    }
    if (wire->state != WIRE_OPEN)
        return;
    wire->state = WIRE_DRAINING;
    wire->end = WIRE_CLOSE_ORDERLY;
    if (!wire->promoting && wire_record_close(wire) < 0)
        wire_fail(wire, WIRE_CLOSE_ABORT);
    else
        wire_push(wire);
}

void wire_close(struct wire *wire, enum wire_close_reason end)
{
    if (end == WIRE_CLOSE_ORDERLY)
        close_orderly(wire);
    else
        wire_fail(wire, end);
}

static void cancel_all(struct wire *wire)
{
    loop_cancel(wire->shared->loop, &wire->receive);
    loop_cancel(wire->shared->loop, &wire->send);
    if (wire->reading)
        loop_cancel(wire->shared->loop, &wire->reading->read);
}

static bool in_flight(const struct wire *wire)
{
    return !op_idle(&wire->receive) || !op_idle(&wire->send) ||
           (wire->reading && !op_idle(&wire->reading->read));
}

static void last_step(struct op *op, int result)
{
    wire_finish_close(container_of(op, struct wire, receive));
}

void wire_fail(struct wire *wire, enum wire_close_reason end)
{
    if (wire->state == WIRE_CLOSING)
        return;
    wire->state = WIRE_CLOSING;
    wire->end = (uint8_t)end;
    if (in_flight(wire)) {
        cancel_all(wire);
        return;
    }
    wire->receive.done = last_step; /* not inside the owner's call */
    loop_timer(wire->shared->loop, &wire->receive, wire->shared->loop->clock.monotonic_ms);
}

/* Discards output queued in the kernel and closes by RST. */
static void set_reset_on_close(int fd)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

static bool ends_with_reset(const struct wire *wire)
{
    if (wire->end == WIRE_CLOSE_BROKEN)
        return true;
    return wire->settings->reset_timed_out &&
           (wire->end == WIRE_CLOSE_TIMEOUT || wire->end == WIRE_CLOSE_REFUSED);
}

/* The owner may still inspect session and socket (for its log); after `closed` the wire itself may be gone. */
void wire_finish_close(struct wire *wire)
{
    struct wire_shared *shared = wire->shared;
    struct tls_session *tls = wire->tls;
    int fd = wire->fd;

    if (in_flight(wire))
        return;
    output_block_release_all(shared, wire->first);
    output_block_release(shared, wire->reading);
    wire->first = wire->last = wire->reading = NULL;
    free(wire->unread);
    free(wire->proxy_header);
    wire->unread = NULL;
    pipe_discard(wire->pipe);
    wire->pipe = NULL;
    wire->proxy_header = NULL;
    record_release(shared->cipher_contexts, &wire->cipher_context);
    record_key_wipe(&wire->key);
    if (ends_with_reset(wire))
        set_reset_on_close(fd);
    wire->events->closed(wire, wire->end);
    tls_session_destroy(tls);
    loop_close_fd(shared->loop, fd);
}
