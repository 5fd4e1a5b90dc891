/*
 * The response of one HTTP/1 exchange: framed when the server provides it, then pulled while the wire has room.
 */
#include "http/h1_session.h"

#include "base/list.h"

#include <errno.h>

static struct h1_exchange *h1_exchange_of(struct exchange *x)
{
    return container_of(x, struct h1_exchange, x);
}

static void response_woken(void *owner)
{
    struct h1_exchange *h = owner;

    h->response_waits = false;
    h1_session_wake(h->session);
}

/* True if the connection persists after the response (RFC 9112 9.3). */
static bool connection_persists(const struct h1_exchange *h)
{
    const struct h1_session *h1 = h->session;

    return h1->keepalive && !h1->retiring && h->keepalive_requested &&
           !h->x.response.close_after && h->framing != FRAMING_CLOSE &&
           h->x.settings->keepalive && h1->requests < h->x.settings->keepalive_requests &&
           h1_body_drainable(h);
}

static int write_response_head(struct h1_exchange *h)
{
    struct h1_session *h1 = h->session;
    int error;

    h->framing = h1_framing_of(&h->x);
    h1->keepalive = connection_persists(h);
    error = h1_write_head(&h->x, h->x.settings, clock_wall_s(h1->clock), h->framing, h1->keepalive, &h->head);
    if (error == 0)
        h->x.response.head = h->head;
    return error;
}

/* A head that could split the message is replaced by a bare 500; the server logs x->response.fault. */
static int write_bare_error(struct h1_exchange *h)
{
    struct response *response = &h->x.response;

    body_close(&response->body);
    response->headers.count = response->trailers.count = 0;
    response->status = 500;
    return write_response_head(h);
}

static void h1_respond(struct exchange *x)
{
    struct h1_exchange *h = h1_exchange_of(x);
    int error;

    if (h->stage != STAGE_REQUEST)
        return;
    error = write_response_head(h);
    if (error == -EINVAL)
        error = write_bare_error(h);
    if (error) {
        h1_session_break(h->session, error);
        return;
    }
    h->stage = STAGE_HEAD;
    if (x->response.body) {
        x->response.body->wake = response_woken;
        x->response.body->owner = h;
        h->rest = x->response.body->length;
    }
    h1_session_wake(h->session);
}

static int send_interim(struct exchange *x, int status, const struct headers *headers)
{
    struct h1_exchange *h = h1_exchange_of(x);

    if (h->stage != STAGE_REQUEST || x->request.version < HTTP_1_1)
        return 0;
    return h1_interim_queue(h, status, headers);
}

const struct exchange_ops h1_exchange_ops = {.respond = h1_respond, .inform = send_interim};

static int produce_chunk(struct h1_exchange *h, struct chunk *out)
{
    h->x.response.bytes_sent += chunk_length(out);
    out->transfer = &h->x.transfer;
    return 1;
}

static int produce_interims(struct h1_exchange *h, size_t room, struct chunk *out)
{
    struct str next = h1_interim_next(h, room);

    if (str_empty(next))
        return 0;
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = next};
    return produce_chunk(h, out);
}

static int produce_pending(struct h1_exchange *h, size_t room, struct chunk *out)
{
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = str_slice(h->pending, 0, room)};
    h->pending = str_skip(h->pending, room);
    return produce_chunk(h, out);
}

/* For fewer or more bytes than Content-Length: only an abort of the connection marks the response as incomplete. */
static int abort_response(struct h1_exchange *h, struct str fault)
{
    h->x.response.fault = fault;
    return -EPROTO;
}

/* Pulls a piece of the response body into h->part. 1, 0 at its end, or an error. */
static int pull_part(struct h1_exchange *h, unsigned accept, size_t room)
{
    struct body *body = h->x.response.body;
    uint64_t length;
    int result;

    if (h->framing == FRAMING_NONE || !body || (h->framing == FRAMING_LENGTH && h->rest == 0))
        return 0;
    do {
        result = body->ops->next(body, accept, room, &h->part);
    } while (result > 0 && chunk_length(&h->part) == 0);
    if (result < 0)
        return result;
    if (result == 0)
        return h->framing == FRAMING_LENGTH ? abort_response(h, STR("the body is shorter than Content-Length"))
                                            : 0;
    length = chunk_length(&h->part);
    if (h->framing == FRAMING_LENGTH) {
        if (length > h->rest)
            return abort_response(h, STR("the body is longer than Content-Length"));
        h->rest -= length;
    }
    h->x.response.body_bytes_sent += length;
    return 1;
}

static int write_last_chunk(struct h1_exchange *h)
{
    struct response *response = &h->x.response;

    return h1_write_last_chunk(&h->x.arena, &response->trailers, &response->fault, &h->pending);
}

/* If the end of the connection ends the response, only an RST marks it as incomplete. */
static int truncated_error(const struct h1_exchange *h, int error)
{
    if (error == -EAGAIN)
        return error;
    if (h->framing == FRAMING_CLOSE)
        return -ECONNRESET;
    return error == -ECONNRESET ? -EPROTO : error;
}

/* 1 with *out filled in; 0: the stage has changed, or `pending` is set; or an error. */
static int produce_body(struct h1_exchange *h, unsigned accept, size_t room, struct chunk *out)
{
    int result = pull_part(h, accept, room);

    if (result < 0)
        return truncated_error(h, result);
    if (result == 0) {
        h->stage = STAGE_LAST;
        return h->framing == FRAMING_CHUNKED ? write_last_chunk(h) : 0;
    }
    if (h->framing == FRAMING_CHUNKED) {
        h->pending = h1_write_chunk_line(chunk_length(&h->part), h->line);
        h->stage = STAGE_PART;
        return 0;
    }
    *out = h->part;
    return produce_chunk(h, out);
}

/* Returns the bytes of a chunk in one or several pieces, then the CRLF. */
static int produce_part(struct h1_exchange *h, size_t room, struct chunk *out)
{
    *out = h->part;
    if (out->kind == CHUNK_BYTES)
        out->bytes = str_slice(out->bytes, 0, room);
    chunk_advance(&h->part, chunk_length(out));
    if (chunk_length(&h->part) == 0) {
        h->pending = STR("\r\n");
        h->stage = STAGE_BODY;
    }
    return produce_chunk(h, out);
}

int h1_response_produce(struct h1_exchange *h, unsigned accept, size_t room, struct chunk *out)
{
    if (h->interims.length)
        return produce_interims(h, room, out);
    if (h->pending.length)
        return produce_pending(h, room, out);
    switch (h->stage) {
    case STAGE_REQUEST:
    case STAGE_DRAINING:
        return -EAGAIN;
    case STAGE_HEAD:
        h->pending = h->head;
        h->x.response.head_sent = true;
        h->stage = STAGE_BODY;
        return 0;
    case STAGE_BODY:
        h->response_waits = false;
        return produce_body(h, accept, room, out);
    case STAGE_PART:
        return produce_part(h, room, out);
    case STAGE_LAST:
    case STAGE_COMPLETE:
        h->stage = STAGE_COMPLETE;
        return 0;
    }
    return -EINVAL;
}
