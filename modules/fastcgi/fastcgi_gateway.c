/*
 * The FastCGI protocol: one request at a time per connection, request bodies in records, responses read from
 * records.
 */
#include "fastcgi.h"

#include "fastcgi_reply.h"

#include <errno.h>

static int parse_target(struct str text, struct gateway_target *out_target)
{
    *out_target = (struct gateway_target){.authority = text};
    return str_empty(text) || (str_starts(text, STR("unix:")) && !str_starts(text, STR("unix:/"))) ? -EINVAL
                                                                                                   : 0;
}

static int fastcgi_begin(struct gateway_request *p)
{
    if (!p->own_state)
        p->own_state = arena_zalloc(&p->x->arena, 1, sizeof(struct fastcgi_reply));
    if (!p->own_state)
        return -ENOMEM;
    fastcgi_reply_init(p->own_state, &p->reply, &p->x->arena, (size_t)p->conf->buffer_size,
                       p->sent.method == METHOD_HEAD);
    p->reply.keepalive = fastcgi_conf_of(p)->keep_conn;
    p->incoming.transfer = TRANSFER_COPIED; /* the body is in records, so it cannot be spliced */
    return 0;
}

/* Wraps the next piece of the body in a record; the end of the body is an empty record. 0 or -errno of the body. */
static int pull_body_record(struct h1_request *request, size_t room)
{
    struct chunk chunk = {.kind = CHUNK_BYTES};
    int result = 0;

    if (request->body)
        result = request->body->ops->next(request->body, CHUNK_BYTES, room < UINT16_MAX ? room : UINT16_MAX,
                                          &chunk);
    if (result < 0)
        return result;
    request->last = result == 0;
    request->part = result == 0 ? STR("") : chunk.bytes;
    request->pulled += request->part.length;
    if (request->last || request->part.length > 0) {
        fastcgi_write_header(FASTCGI_STDIN, request->part.length, request->line);
        request->pending = str_of(request->line, FASTCGI_HEADER);
    }
    return 0;
}

static int fastcgi_next(struct gateway_request *p, size_t room, struct chunk *out)
{
    struct h1_request *request = &p->sent.request;

    while (str_empty(request->pending) && str_empty(request->part)) {
        int error = request->last ? 0 : pull_body_record(request, room);

        if (request->last && str_empty(request->pending))
            return 0;
        if (error < 0)
            return error;
    }
    struct str *from = str_empty(request->pending) ? &request->part : &request->pending;

    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = str_slice(*from, 0, room)};
    *from = str_skip(*from, out->bytes.length);
    return 1;
}

/* Logs FCGI_STDERR, line by line. */
static void log_stderr(struct gateway_request *p, struct fastcgi_reply *reply)
{
    struct str text = buffer_str(&reply->stderr_text);

    while (text.length > 0) {
        struct str line = str_trim(str_cut(&text, '\n'));

        if (!str_empty(line))
            exchange_log_error(p->x, LOG_ERROR, "FastCGI sent in stderr: \"" STR_FMT "\"", STR_ARG(line));
    }
    buffer_finish(&reply->stderr_text);
}

static enum h1_reply_step read_reply(struct gateway_request *p, struct str *in, struct str *out_part)
{
    return fastcgi_reply_read(p->own_state, in, out_part);
}

/* FCGI_END_REQUEST ends a response; the end of the connection does not. */
static enum h1_reply_step fastcgi_ended(struct gateway_request *p, bool truncated)
{
    p->reply.fault = "the connection was closed before the end";
    return REPLY_BAD;
}

static void fastcgi_finish(struct gateway_request *p)
{
    struct fastcgi_reply *reply = p->own_state;

    if (!reply)
        return;
    log_stderr(p, reply);
    fastcgi_reply_finish(reply);
}

const struct gateway fastcgi_gateway = {
    .name = "fastcgi",
    .scheme = "fastcgi",
    .tls_scheme = "fastcgi",
    .port = 9000,
    .parse = parse_target,
    .needs_content_length = true,
    .write_head = fastcgi_write_head,
    .begin = fastcgi_begin,
    .next = fastcgi_next,
    .read = read_reply,
    .ended = fastcgi_ended,
    .finish = fastcgi_finish,
};
