/*
 * Passes a request to a stream, and the response from it to the steps of response.c.
 */
#include "modules/gateway/h2/stream.h"

#include "base/saturate.h"
#include "modules/gateway/attempt.h"
#include "modules/gateway/connection.h"
#include "modules/gateway/response.h"
#include "modules/gateway/response_body.h"
#include "modules/gateway/spool.h"

#include <errno.h>
#include <stdio.h>

static int pull_body(void *owner, size_t room, struct chunk *out)
{
    struct gateway_request *p = owner;
    int result = h1_request_next(&p->sent.request, room, out);

    if (result == 1)
        p->attempt->bytes_sent += out->bytes.length;
    return result;
}

static void stream_begin(struct gateway_request *p)
{
    struct gateway_stream *stream = p->upstream.stream;

    stream->client = (struct h2_client_stream){
        .request = p->sent.h2,
        .next = pull_body,
        .owner = p,
        .arena = &p->x->arena,
        .trailers = &p->x->response.trailers,
        .head_max = (size_t)p->conf->buffer_size,
    };
    p->reply = (struct h1_reply){.content_length = BODY_LENGTH_UNKNOWN};
    p->x->response.trailers.count = 0; /* of an attempt before */
    stream->has_room = true;
    p->incoming.transfer = TRANSFER_COPIED; /* the body is in frames, so it cannot be spliced */
    p->sent.state = SENDING_BLOCKED;
    gateway_stream_begin(stream);
    gateway_set_timeout(p);
}

static void stream_receive(struct gateway_request *p)
{
    struct gateway_stream *stream = p->upstream.stream;

    if (!stream->begun)
        return;
    stream->has_room = true;
    h2_client_stream_receive(&stream->client);
    gateway_stream_wake(stream);
}

static void stream_wake(struct gateway_request *p)
{
    if (!p->upstream.stream->begun)
        return;
    p->sent.state = SENDING_BLOCKED;
    h2_client_stream_wake(&p->upstream.stream->client);
    gateway_stream_wake(p->upstream.stream);
}

static bool stream_awaits_response(const struct gateway_request *p)
{
    return p->upstream.stream->has_room && (p->sent.state == SENDING_DONE || gateway_has_response(p));
}

static void stream_release(struct gateway_request *p)
{
    struct gateway_stream *stream = p->upstream.stream;

    p->upstream.stream = NULL;
    h1_reply_finish(&p->reply);
    gateway_stream_detach(stream);
}

static void update_sending(struct gateway_request *p, const struct h2_client_stream *client)
{
    p->sent.state = h2_client_stream_is_sent(client)      ? SENDING_DONE
                    : h2_client_stream_is_blocked(client) ? SENDING_BLOCKED
                                                          : SENDING_WAITS;
}

/* Bytes of the body that the gateway takes now. A buffer is needed unless the body is spooled. */
static int part_room(struct gateway_request *p, const struct h2_client_stream *client, size_t *out_room)
{
    struct buffer *input = &p->incoming.input;

    *out_room = 0;
    if (p->stage != GATEWAY_RESPONDING || client->input.length == client->input_at)
        return 0;
    if (p->incoming.transfer == TRANSFER_SPOOLED) {
        *out_room = p->incoming.spool && spool_full(p->incoming.spool) ? 0 : LIMIT_RECEIVE_BYTES;
        return 0;
    }
    if (input->capacity == 0 && buffer_reserve(input, LIMIT_PROXY_INPUT) < 0)
        return -ENOMEM;
    *out_room = size_sub_sat(input->capacity, input->length);
    return 0;
}

static size_t count_fields(const struct headers *headers)
{
    size_t bytes = 1;

    for (unsigned i = 0; i < headers->count; i++)
        bytes += headers->items[i].name.length + headers->items[i].value.length;
    return bytes;
}

/* The head becomes that of p->reply, which the steps of response.c read. */
static void set_reply(struct gateway_request *p, const struct h2_client_stream *client)
{
    struct h1_reply *reply = &p->reply;

    reply->status = client->status;
    reply->headers = client->headers;
    reply->version = HTTP_2;
    reply->reason = STR("");
    reply->content_length = client->content_length;
    reply->bodiless = client->bodiless;
    reply->keepalive = true;
    p->x->response.reset_code = 0; /* of an attempt before */
    p->attempt->bytes_received += count_fields(&client->headers);
}

/* Codes about the request are passed on to the client; the others concern the connection to the server. */
static uint8_t passed_code(enum h2_error code)
{
    return code == H2_CANCEL || code == H2_ENHANCE_YOUR_CALM ? (uint8_t)code : 0;
}

/* The server has reset the stream. */
static void stream_reset(struct gateway_request *p, const struct h2_client_stream *client)
{
    char text[80];

    if (client->unprocessed) {
        gateway_unprocessed(p);
        return;
    }
    p->x->response.reset_code = passed_code(client->code);
    snprintf(text, sizeof text, "upstream reset the stream (%s)", h2_error_name(client->code));
    gateway_reset(p, text);
}

/* One item of the response. False: the response is read completely. */
static bool read_item(struct gateway_request *p, struct h2_client_stream *client)
{
    enum h1_reply_step step;
    struct str part;
    size_t room;

    if (part_room(p, client, &room) < 0)
        return gateway_response_step(p, REPLY_NO_MEMORY, STR(""), false);
    step = h2_client_stream_read(client, room, &part);
    arena_reset(&p->reply.interim);
    if (step == REPLY_INTERIM || step == REPLY_HEAD)
        set_reply(p, client);
    if (step == REPLY_PART)
        p->attempt->bytes_received += part.length;
    if (step == REPLY_BAD)
        p->reply.fault = client->fault;
    if (step == REPLY_BAD && client->end == H2_CLIENT_RESET) {
        stream_reset(p, client);
        return false;
    }
    return gateway_response_step(p, step, part, false);
}

static void read_response(struct gateway_stream *stream)
{
    struct gateway_request *p = stream->p;

    while (p->upstream.stream == stream && stream->has_room && read_item(p, &stream->client))
        ;
    if (p->upstream.stream != stream) /* released, or replaced */
        return;
    stream->has_room = false;
    gateway_read(p);
}

static void stream_updated(struct gateway_stream *stream)
{
    struct gateway_request *p = stream->p;
    int error = stream->client.body_error;

    update_sending(p, &stream->client);
    if (error) {
        stream->client.body_error = 0;
        gateway_request_failed(p, error);
    } else if (stream->has_room) {
        read_response(stream);
    } else {
        gateway_set_timeout(p);
    }
}

static void stream_lost(struct gateway_stream *stream, int error, const char *fault)
{
    struct gateway_request *p = stream->p;
    struct upstream_peer *peer = stream->peer;
    bool gone = peer->retired;

    /* A retired peer is freed with its last use: it is kept while its failure is recorded. */
    if (gone && !upstream_use_begin(peer))
        gone = false;
    p->attempt->total_us = u64_sub_sat(exchange_clock(p->x)->monotonic_us, p->attempt->begun_us);
    stream_release(p);
    if (fault) {
        p->reply.fault = fault;
        (void)gateway_response_step(p, REPLY_BAD, STR(""), false);
    } else {
        gateway_connection_failed(p, error);
    }
    if (gone)
        upstream_use_end(peer);
}

static void stream_refused(struct gateway_stream *stream)
{
    gateway_unprocessed(stream->p);
}

static void stream_opened(struct gateway_stream *stream)
{
    gateway_opened(stream->p);
}

static int stream_connect(struct gateway_request *p)
{
    static const struct gateway_stream_events events = {
        .opened = stream_opened, .updated = stream_updated, .lost = stream_lost, .refused = stream_refused};
    struct gateway_stream *stream = arena_zalloc(&p->x->arena, 1, sizeof(*stream));
    int error;

    if (!stream)
        return -ENOMEM;
    stream->p = p;
    stream->events = &events;
    error = gateway_stream_attach(stream, p->upstream.reuse == REUSE_REFUSED);
    if (error < 0)
        return error;
    p->upstream.stream = stream;
    gateway_stream_set_timeout(stream, p->conf->connect_timeout_ms);
    return 0;
}

static void stream_set_timeout(struct gateway_request *p, uint64_t timeout_ms)
{
    gateway_stream_set_timeout(p->upstream.stream, timeout_ms);
}

const struct gateway_streams gateway_http2_streams = {
    .connect = stream_connect,
    .begin = stream_begin,
    .receive = stream_receive,
    .wake = stream_wake,
    .awaits_response = stream_awaits_response,
    .set_timeout = stream_set_timeout,
    .release = stream_release,
};
