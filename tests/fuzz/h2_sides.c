/* The record of both servers; sluice's session. */
#include "h2_sides.h"

#include "http/protocol.h"

#include <errno.h>
#include <stdlib.h>

void h2_side_must(long result)
{
    if (result < 0)
        abort();
}

bool h2_side_responds(struct str target)
{
    return !str_starts(target, STR("/open"));
}

static void record_fields(struct buffer *text, const struct headers *headers)
{
    const struct header *cookie = headers_find(headers, STR("cookie"));
    const char *separator = "cookie: ";

    for (unsigned i = 0; i < headers->count; i++) {
        const struct header *field = &headers->items[i];

        if (!str_equal(field->name, STR("cookie")) && str_find(field->name, '_') < 0)
            h2_side_must(buffer_printf(text, STR_FMT ": " STR_FMT "\n", STR_ARG(field->name), STR_ARG(field->value)));
    }
    for (; cookie; cookie = headers_next(headers, STR("cookie"), cookie)) {
        h2_side_must(buffer_printf(text, "%s" STR_FMT, separator, STR_ARG(cookie->value)));
        separator = "; ";
    }
    h2_side_must(buffer_append(text, STR("\n")));
}

void h2_side_head(struct h2_side *side, uint32_t stream, struct str method, struct str target,
                  const struct headers *headers)
{
    h2_side_must(buffer_printf(&side->requests, "%u: " STR_FMT " " STR_FMT "\n", stream, STR_ARG(method),
                               STR_ARG(target)));
    record_fields(&side->requests, headers);
}

void h2_side_end(struct h2_side *side, uint32_t stream, struct str body, const struct headers *trailers)
{
    h2_side_must(buffer_printf(&side->requests, "%u ends: %zu ", stream, body.length));
    h2_side_must(buffer_append(&side->requests, body));
    record_fields(&side->requests, trailers);
}

struct sluice {
    struct h2_side *side;
    struct session_settings settings;
    struct arena_pool pool;
    struct protocol_counters counters;
    struct clock clock;
    struct session_shared shared;
    struct session *session;
    struct exchange *open[SIDE_STREAMS]; /* accepted, and not complete */
};

static void respond(struct exchange *x, int status)
{
    x->response.status = status;
    exchange_respond(x);
}

/* Extended CONNECT is presented as GET with Upgrade (RFC 8441 5). */
static void begun(void *owner, struct exchange *x)
{
    struct sluice *sluice = owner;
    struct request *request = &x->request;
    unsigned i = 0;

    while (sluice->open[i])
        h2_side_must(++i < SIDE_STREAMS ? 0 : -1);
    sluice->open[i] = x;
    if (request->tunnel) {
        headers_remove(&request->headers, STR("connection"));
        headers_remove(&request->headers, STR("upgrade"));
    }
    h2_side_head(sluice->side, request->stream_id, request->tunnel ? STR("CONNECT") : request->method_name,
                 request->target, &request->headers);
}

static void rejected(void *owner, struct exchange *x, int status)
{
    struct sluice *sluice = owner;

    sluice->side->rejected = status;
    respond(x, status);
}

static void finished(void *owner, struct exchange *x)
{
    struct sluice *sluice = owner;

    for (unsigned i = 0; i < SIDE_STREAMS; i++) {
        if (sluice->open[i] == x)
            sluice->open[i] = NULL;
    }
}

static void wake(void *owner)
{
}

static void *sluice_open(struct h2_side *side)
{
    static const struct exchange_events events = {begun, rejected, finished, wake};
    struct sluice *sluice = calloc(1, sizeof(*sluice));

    h2_side_must(sluice ? 0 : -1);
    sluice->side = side;
    sluice->settings = (struct session_settings){
        .header_buffer_size = 65536,
        .large_header_size = 65536,
        .head_max = 2 << 20,
        .max_headers = 10000,
        .keepalive_requests = 10000,
        .keepalive = true,
        .http2 = {.max_concurrent_streams = SIDE_STREAMS,
                  .body_preread_size = SIDE_WINDOW,
                  .chunk_size = 16384,
                  .connect_protocol = true},
    };
    sluice->shared = (struct session_shared){&sluice->pool, &sluice->clock, &sluice->counters};
    sluice->session = protocol_http2.open(&sluice->settings, &events, sluice, &sluice->shared);
    h2_side_must(sluice->session ? 0 : -1);
    return sluice;
}

static void sluice_send(struct sluice *sluice)
{
    struct chunk chunk;

    while (protocol_http2.produce(sluice->session, CHUNK_BYTES, 65536, &chunk) == 1)
        h2_side_must(buffer_append(&sluice->side->sent, chunk.bytes));
}

static void sluice_feed(void *server, struct str bytes)
{
    struct sluice *sluice = server;

    protocol_http2.consume(sluice->session, bytes);
    sluice_send(sluice);
}

static void request_end(struct sluice *sluice, struct exchange *x)
{
    struct request *request = &x->request;
    struct body *source = request->tunnel ? request->tunnel : request->body;
    struct buffer body = {0};
    struct chunk chunk;
    int result;

    while ((result = source->ops->next(source, CHUNK_BYTES, 65536, &chunk)) == 1)
        h2_side_must(buffer_append(&body, chunk.bytes));
    if (result == 0) {
        h2_side_end(sluice->side, request->stream_id, buffer_str(&body), &request->trailers);
        if (h2_side_responds(request->target))
            respond(x, 404);
        sluice_send(sluice);
    }
    buffer_finish(&body);
}

static void sluice_end(void *server, uint32_t stream)
{
    struct sluice *sluice = server;

    for (unsigned i = 0; i < SIDE_STREAMS; i++) {
        struct exchange *x = sluice->open[i];

        if (!x || x->request.stream_id != stream)
            continue;
        sluice->open[i] = NULL;
        request_end(sluice, x);
        return;
    }
}

static void sluice_close(void *server)
{
    struct sluice *sluice = server;

    protocol_http2.close(sluice->session);
    arena_pool_finish(&sluice->pool);
    free(sluice);
}

const struct h2_side_ops h2_side_sluice = {sluice_open, sluice_feed, sluice_end, sluice_close};
