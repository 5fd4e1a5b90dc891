/*
 * The head of a response: formatted as HEADERS and CONTINUATION frames when the server provides it.
 */
#include "http/h2/response.h"

#include "http/date.h"
#include "http/h2/field_write.h"
#include "http/h2/frame_log.h"
#include "http/h2/interim.h"
#include "http/h2/shutdown.h"
#include "http/h2/stream.h"
#include "http/sendable.h"

#include <errno.h>

static struct h2_stream *stream_of(struct exchange *x)
{
    return container_of(x, struct h2_stream, x);
}

static void response_woken(void *owner)
{
    struct h2_stream *stream = owner;

    stream->response_waits = false;
    h2_stream_ready(stream);
}

int h2_response_write_section(struct h2_stream *stream, const struct h2_section *section, bool end_stream)
{
    uint32_t max = stream->session->peer.max_frame_size;
    char *frames = arena_alloc(&stream->x.arena, h2_section_bound(section, max));

    if (!frames)
        return -ENOMEM;
    stream->pending =
        str_of(frames, (size_t)(h2_section_write(frames, section, max, stream->id, end_stream) - frames));
    h2_log_sent(stream->session, stream->pending);
    return 0;
}

static bool is_bodiless(const struct exchange *x)
{
    return x->request.method == METHOD_HEAD || status_bodiless(x->response.status) || !x->response.body ||
           x->response.body->length == 0;
}

/* HEAD gets the length of GET, if it is known (RFC 9110 9.3.2). */
static uint64_t length_of(const struct exchange *x)
{
    const struct body *body = x->response.body;

    if (status_bodiless(x->response.status) || (x->request.method == METHOD_HEAD && !body))
        return BODY_LENGTH_UNKNOWN;
    return body ? body->length : 0;
}

/* 0, -ENOMEM, or -EINVAL: a status or name that must not be sent. */
static int write_head(struct h2_stream *stream)
{
    struct response *response = &stream->x.response;
    struct h2_session *h2 = stream->session;
    char date[DATE_LENGTH + 1];
    struct h2_section section = {
        .status = response->status,
        .headers = &response->headers,
        .date = date_format(clock_wall_s(h2->clock), date),
        .server = stream->x.settings->server_header,
        .content_length = length_of(&stream->x),
    };
    int error;

    if (response->status < 200 || response->status > 999) {
        response->fault = STR("an invalid status");
        return -EINVAL;
    }
    error = headers_make_sendable(&response->headers, &stream->x.arena, &response->fault);
    if (error)
        return error;
    if (response->close_after && response->status != 421) /* 421: the connection is valid for its own hosts */
        h2_shutdown_start(h2);
    stream->bodiless = is_bodiless(&stream->x);
    return h2_response_write_section(stream, &section, stream->bodiless);
}

/* A head that cannot be sent is replaced by a bare error; the server logs x->response.fault. */
static int write_bare_error(struct h2_stream *stream, int status)
{
    struct response *response = &stream->x.response;

    body_close(&response->body);
    response->headers.count = response->trailers.count = 0;
    response->status = status;
    return write_head(stream);
}

/*
 * The response to extended CONNECT (RFC 8441 5): 101 becomes 200. Any other 2xx becomes 501, because the client would
 * treat it as an open tunnel, although the resource does not use this protocol.
 */
static int write_tunnel_head(struct h2_stream *stream)
{
    struct response *response = &stream->x.response;

    if (response->status >= 200 && response->status <= 299)
        return write_bare_error(stream, 501);
    if (response->status == 101)
        response->status = 200;
    return write_head(stream);
}

static void send_response(struct exchange *x)
{
    struct h2_stream *stream = stream_of(x);
    int error;

    if (stream->stage != H2_STAGE_REQUEST)
        return;
    error = x->request.tunnel ? write_tunnel_head(stream) : write_head(stream);
    if (error == -EINVAL)
        error = write_bare_error(stream, 500);
    stream->stage = H2_STAGE_HEAD;
    stream->failed = error != 0;
    if (x->response.body) {
        x->response.body->wake = response_woken;
        x->response.body->owner = stream;
        stream->rest = x->response.body->length;
    }
    h2_stream_ready(stream);
}

static int send_interim(struct exchange *x, int status, const struct headers *headers)
{
    struct h2_stream *stream = stream_of(x);

    return stream->stage == H2_STAGE_REQUEST ? h2_interim_queue(stream, status, headers) : 0;
}

/* Only sets a flag: the server still uses the exchange. The stream is reset when it is scheduled. */
static bool abort_exchange(struct exchange *x)
{
    struct h2_stream *stream = stream_of(x);

    stream->stage = H2_STAGE_HEAD;
    stream->failed = true;
    h2_stream_ready(stream);
    return true;
}

const struct exchange_ops h2_exchange_ops = {
    .respond = send_response, .inform = send_interim, .abort = abort_exchange};
