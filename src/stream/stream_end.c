/*
 * Closes both sides of a `stream` connection, and writes its log lines; called for the client's side (stream.c) and the
 * upstream server's side (stream_server.c).
 */
#include "server/exhaustion.h"
#include "stream/stream_private.h"

void stream_log_line(const struct stream *stream, enum log_level level, const char *what, int error)
{
    struct log_fields fields = {.connection = stream->number,
                                .upstream = str_from(stream->peer ? stream->peer->name : "")};

    if (!worker_may_log_error(stream->worker, error))
        return;
    if (error)
        log_write_fields(stream_log(stream), level, &fields, "%s (%d: %s)", what, -error, strerror(-error));
    else
        log_write_fields(stream_log(stream), level, &fields, "%s", what);
}

void stream_release_server(struct stream *stream, bool orderly)
{
    struct upstream_connection *server = stream->server;

    stream->server = NULL;
    upstream_wait_end(&stream->waiter);
    stream_flow_stop(&stream->up);
    stream_flow_stop(&stream->down);
    if (server && orderly)
        upstream_close(server);
    else if (server)
        upstream_discard(server);
}

void stream_await_close(struct stream *stream)
{
    stream->ending = true;
    loop_timer_move(&stream->worker->loop, &stream->timer,
                    stream_now_ms(stream) + stream->client.settings->lingering_ms);
}

void stream_end(struct stream *stream, enum wire_close_reason how)
{
    stream_release_server(stream, how == WIRE_CLOSE_ORDERLY);
    stream_await_close(stream);
    wire_close(&stream->client, how);
}

void stream_reject(struct stream *stream, int status)
{
    stream->status = status;
    stream_end(stream, WIRE_CLOSE_ORDERLY);
}

/* With proxy_half_close, both directions must have ended; without it, one of them. */
void stream_end_if_complete(struct stream *stream)
{
    bool both = stream->up.end_forwarded && stream->down.end_forwarded;

    if (both || (!stream->conf->half_close && (stream->up.end_forwarded || stream->down.end_forwarded)))
        stream_end(stream, WIRE_CLOSE_ORDERLY);
}

void stream_record_activity(struct stream *stream)
{
    stream->last_activity_ms = stream_now_ms(stream);
}

struct str stream_eval(struct stream *stream, const struct template *template)
{
    return template_eval(template, stream, &stream->arena);
}
