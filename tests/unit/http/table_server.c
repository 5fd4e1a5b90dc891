/* The server in memory. It aborts when memory runs out. */
#include "table_server.h"

#include "base/list.h"

#include <errno.h>
#include <stdlib.h>

/* The state of one exchange. */
struct table_request {
    struct table_server *server;
    struct exchange *x;
    const struct table_row *row;
    struct buffer read; /* TABLE_ECHO: the request body so far */
    struct body stream; /* TABLE_STREAM: pulls the request body */
    struct str rest;    /* TABLE_PAUSES: what follows */
    bool finished;
};

static void must(int result)
{
    if (result < 0)
        abort();
}

static void body_woken(void *owner)
{
    struct table_request *state = owner;

    state->server->reads = true;
    state->server->woken = true;
}

static int stream_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct table_request *state = container_of(body, struct table_request, stream);
    struct body *source = state->x->request.tunnel ? state->x->request.tunnel : state->x->request.body;

    source->wake = body->wake;
    source->owner = body->owner;
    return source->ops->next(source, accept, room, out);
}

static void stream_close(struct body *body)
{
}

/* Returns one chunk and then fails. If the row promises a length, the body ends early instead. */
static int broken_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct table_request *state = container_of(body, struct table_request, stream);

    if (state->finished)
        return state->row->declared_length ? 0 : -EIO;
    state->finished = true;
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = str_slice(str_from(state->row->body), 0, room)};
    return 1;
}

/* Waits before each piece. While it waits, `out` holds bytes that do not belong to the body. */
static int pausing_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct table_request *state = container_of(body, struct table_request, stream);
    size_t piece = state->server->pause_piece < room ? state->server->pause_piece : room;

    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = STR("not sent")};
    if (str_empty(state->rest))
        return 0;
    state->finished = !state->finished;
    if (state->finished) {
        state->server->paused = body;
        return -EAGAIN;
    }
    out->bytes = str_slice(state->rest, 0, piece);
    state->rest = str_skip(state->rest, piece);
    return 1;
}

static void pausing_close(struct body *body)
{
    container_of(body, struct table_request, stream)->server->paused = NULL;
}

static void add_field(struct headers *headers, struct arena *arena, const char *line)
{
    struct str value = str_from(line);
    struct str name;

    if (!line)
        return;
    name = str_cut(&value, ':');
    must(headers_add(headers, arena, name, str_skip(value, 1)));
}

static struct body *unknown(struct body *body)
{
    body->length = BODY_LENGTH_UNKNOWN;
    return body;
}

static void answer(struct table_request *state, int status, struct str body)
{
    static const struct body_ops stream_ops = {stream_next, stream_close};
    static const struct body_ops broken_ops = {broken_next, stream_close};
    static const struct body_ops pausing_ops = {pausing_next, pausing_close};
    const struct table_row *row = state->row;
    struct response *response = &state->x->response;

    response->status = status;
    response->close_after |= row->close_after;
    add_field(&response->headers, &state->x->arena, row->header);
    add_field(&response->trailers, &state->x->arena, row->trailer);
    if (row->behavior == TABLE_STREAM || row->behavior == TABLE_BROKEN) {
        state->stream = (struct body){.ops = row->behavior == TABLE_STREAM ? &stream_ops : &broken_ops};
        state->stream.length = row->declared_length ? row->declared_length : BODY_LENGTH_UNKNOWN;
        response->body = &state->stream;
    } else if (row->behavior == TABLE_PAUSES) {
        state->rest = body;
        state->stream = (struct body){.ops = &pausing_ops, .length = body.length};
        response->body = &state->stream;
    } else if (body.data) {
        response->body = body_bytes(&state->x->arena, body);
        if (row->unknown_length)
            unknown(response->body);
    }
    exchange_respond(state->x);
}

/* Reads the available bytes of the request body; responds when the body is complete or has failed. */
static void echo(struct table_request *state)
{
    struct request *request = &state->x->request;
    struct chunk chunk;
    int result;

    request->body->wake = body_woken;
    request->body->owner = state;
    while ((result = request->body->ops->next(request->body, CHUNK_BYTES, 7, &chunk)) == 1)
        must(buffer_append(&state->read, chunk.bytes));
    if (result == -EAGAIN)
        return;
    state->server->later = NULL;
    for (unsigned i = 0; result == 0 && i < request->trailers.count; i++)
        must(buffer_printf(&state->read, "[" STR_FMT "]", STR_ARG(request->trailers.items[i].name)));
    if (result < 0)
        answer(state, exchange_body_status(result), STR("no"));
    else
        answer(state, 200, state->read.length ? buffer_str(&state->read) : STR(""));
}

static const struct table_row *row_of(const struct table_server *server, struct str path)
{
    const struct table_row *row = server->rows;

    while (row->path && !str_equal(path, str_from(row->path)))
        row++;
    return row;
}

static struct table_request *table_request_open(struct table_server *server, struct exchange *x)
{
    struct table_request *state = arena_zalloc(&x->arena, 1, sizeof(*state));

    if (!state)
        abort();
    state->server = server;
    state->x = x;
    state->row = row_of(server, x->request.path);
    x->owner = state;
    return state;
}

static void begun(void *owner, struct exchange *x)
{
    struct table_server *server = owner;
    struct table_request *state = table_request_open(server, x);
    int status;

    server->begun++;
    if (state->row->inform) {
        struct headers headers = {0};

        add_field(&headers, &x->arena, state->row->inform);
        must(exchange_inform(x, 103, &headers));
    }
    status = exchange_limit_body(x, state->row->body_limit);
    if (status) {
        answer(state, status, STR("no"));
        return;
    }
    switch (state->row->behavior) {
    case TABLE_AT_ONCE:
    case TABLE_STREAM:
    case TABLE_BROKEN:
    case TABLE_PAUSES:
        answer(state, state->row->status, str_from(state->row->body));
        break;
    case TABLE_LATER:
        server->later = x;
        break;
    case TABLE_ECHO:
        server->later = x;
        echo(state);
        break;
    }
}

static void rejected(void *owner, struct exchange *x, int status)
{
    static const struct table_row none = {.path = NULL};
    struct table_server *server = owner;
    struct table_request *state = table_request_open(server, x);

    server->rejected++;
    state->row = &none;
    answer(state, status, STR("refused"));
}

static void finished(void *owner, struct exchange *x)
{
    struct table_server *server = owner;
    struct table_request *state = x->owner;

    server->finished++;
    if (x->transfer.total != x->response.bytes_sent)
        abort();
    if (server->later == x)
        server->later = NULL;
    must(buffer_printf(&server->log, STR_FMT " " STR_FMT " %d %llu%s\n", STR_ARG(x->request.method_name),
                       STR_ARG(x->request.path), x->response.status,
                       (unsigned long long)x->response.body_bytes_sent, x->cancelled ? " cancelled" : ""));
    buffer_finish(&state->read);
}

static void wake(void *owner)
{
    struct table_server *server = owner;

    server->woken = true;
}

void table_server_open(struct table_server *server, const struct protocol *protocol,
                       const struct table_row *rows)
{
    static const struct exchange_events events = {begun, rejected, finished, wake};

    *server = (struct table_server){
        .rows = rows,
        .protocol = protocol,
        .pool = {.max_free = 8},
        .clock = {.wall_ms = 784111777000, .monotonic_ms = 1000, .monotonic_us = 1000000},
        .settings = {.header_buffer_size = 1024,
                     .large_header_size = 8192,
                     .head_max = 4 * 8192,
                     .max_headers = 100,
                     .body_buffer_size = 16384,
                     .keepalive_requests = 1000,
                     .keepalive = true,
                     .merge_slashes = true,
                     .http2 = {.enabled = true,
                               .max_concurrent_streams = 128,
                               .body_preread_size = 65536,
                               .chunk_size = 16384,
                               .header_timeout_ms = 60000,
                               .body_timeout_ms = 60000,
                               .send_timeout_ms = 60000,
                               .min_rate = 240,
                               .connect_protocol = true}},
    };
    server->shared = (struct session_shared){&server->pool, &server->clock, &server->counters};
    server->session = protocol->open(&server->settings, &events, server, &server->shared);
    if (!server->session)
        abort();
}

void table_server_hang_up(struct table_server *server)
{
    if (server->session)
        server->protocol->close(server->session);
    server->session = NULL;
}

void table_server_close(struct table_server *server)
{
    table_server_hang_up(server);
    if (server->begun + server->rejected != server->finished)
        abort();
    buffer_finish(&server->unread);
    buffer_finish(&server->out);
    buffer_finish(&server->log);
    arena_pool_finish(&server->pool);
}

/* Wakes the puller of a body that waits. */
static void wake_paused(struct table_server *server)
{
    struct body *body = server->paused;

    server->paused = NULL;
    if (body)
        body->wake(body->owner);
}

static void gather(struct table_server *server, const struct chunk *chunk, size_t room)
{
    if (chunk->transfer) /* as the wire does */
        chunk->transfer->total += chunk_length(chunk);
    server->turns += chunk->ends_turn;
    if (chunk->kind == CHUNK_BYTES) {
        if (chunk->bytes.length == 0 || chunk->bytes.length > room)
            abort();
        must(buffer_append(&server->out, chunk->bytes));
        return;
    }
    must(buffer_printf(&server->out, "{%d bytes}", (int)chunk_length(chunk)));
}

/* Returns false if no chunk is available. */
static bool produce(struct table_server *server)
{
    size_t room = server->room ? server->room : 65536;
    struct chunk chunk;

    server->result = server->protocol->produce(server->session, CHUNK_BYTES | CHUNK_FILE, room, &chunk);
    if (server->result == 1)
        gather(server, &chunk, room);
    return server->result == 1;
}

/* Offers the unconsumed bytes once. The rest is offered again after a wake. */
static void offer(struct table_server *server)
{
    size_t taken;

    if (server->unread.length == 0 || server->blocked)
        return;
    taken = server->protocol->consume(server->session, buffer_str(&server->unread));
    if (taken > server->unread.length)
        abort();
    server->blocked = taken < server->unread.length;
    buffer_consume(&server->unread, taken);
}

/*
 * Handles a wake only between two chunks, like a wire that has no room for both: a wake that comes too early has no
 * effect.
 */
void table_server_pump(struct table_server *server)
{
    bool more;

    do {
        if (server->woken)
            server->blocked = false;
        server->woken = false;
        wake_paused(server);
        if (server->reads && server->later) {
            server->reads = false;
            echo(server->later->owner);
        }
        offer(server);
        more = produce(server);
    } while (more || server->woken || server->paused || (server->unread.length && !server->blocked));
}

void table_server_feed(struct table_server *server, struct str bytes, size_t piece)
{
    while (bytes.length) {
        size_t length = piece && piece < bytes.length ? piece : bytes.length;

        must(buffer_append(&server->unread, str_slice(bytes, 0, length)));
        bytes = str_skip(bytes, length);
        table_server_pump(server);
    }
}

void table_server_signal(struct table_server *server, enum session_signal signal)
{
    server->protocol->signal(server->session, signal);
    table_server_pump(server);
}

void table_server_answer(struct table_server *server)
{
    struct table_request *state = server->later->owner;

    server->later = NULL;
    answer(state, state->row->status, str_from(state->row->body));
    table_server_pump(server);
}

enum session_phase table_server_phase(const struct table_server *server)
{
    return server->protocol->phase(server->session);
}

struct str table_server_take(struct table_server *server)
{
    struct str taken = buffer_str(&server->out);

    server->out.length = 0;
    return taken;
}
