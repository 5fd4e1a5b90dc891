/*
 * The life cycle of a wire: open, settings, orderly close. Receiving is in wire_receive.c, the queue in wire_send.c and
 * wire_push.c, the abort and the last completion in wire_close.c.
 */
#include "wire/wire_queue.h"

#include "base/limits.h"
#include "tls/tls_client.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>

int wire_shared_init(struct wire_shared *shared)
{
    pipe_pool_init(&shared->pipes, shared->loop);
    shared->plaintext = malloc(RECORD_INNER_MAX);
    shared->cipher_contexts = cipher_context_cache_create(LIMIT_CIPHERS_LIVE, shared->aead);
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

/* Unix sockets have no such option. */
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
    if (tls_session_set_server_name(wire->tls, context, name) < 0) {
        wire_fail(wire, WIRE_CLOSE_PROTOCOL);
        return 0;
    }
    if (resumption)
        tls_session_resume(wire->tls, context, name, resumption);
    if (tls_session_handshake(wire->tls) != -EAGAIN)
        wire_fail(wire, WIRE_CLOSE_PROTOCOL);
    else
        wire_push(wire); /* the client sends the first handshake message */
    return 0;
}

void wire_apply_settings(struct wire *wire, const struct wire_settings *settings)
{
    bool room_announced = wire->reading || (wire->last && wire->last->open);

    bool same = settings->record_size == wire->settings->record_size &&
                settings->small_records == wire->settings->small_records;

    if (!same && room_announced)
        return;
    if (settings->delay != wire->settings->delay)
        set_delay(wire->fd, settings->delay);
    wire->settings = settings;
}

static void close_orderly(struct wire *wire)
{
    if (wire->state == WIRE_HANDSHAKE) { /* no response has begun */
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
