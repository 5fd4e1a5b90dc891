/*
 * The debug log of the clients that debug_connection selects.
 */
#include "server/connection_debug.h"
#include "stream/stream_private.h"

#include <stdarg.h>

void stream_debug_write(const struct stream *stream, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_vwrite_fields(stream_log(stream), LOG_DEBUG, &(struct log_fields){.connection = stream->number}, format, args);
    va_end(args);
}

void stream_debug_update(struct worker *worker)
{
    for (struct list *link = worker->streams.next; link != &worker->streams; link = link->next) {
        struct stream *stream = container_of(link, struct stream, link);

        stream->debug = connection_debug_is_on(worker, &stream->address);
    }
}

void stream_debug_accepted(struct stream *stream)
{
    struct listen_address client = {.length = sizeof stream->address};
    char text[128];

    stream->debug = connection_debug_is_on(stream->worker, &stream->address);
    if (!stream->debug)
        return;
    memcpy(&client.socket, &stream->address, sizeof stream->address);
    stream_debug_write(stream, "accepted, client: " STR_FMT ", listen: " STR_FMT,
                       STR_ARG(listen_address_format(&client, text, sizeof text)), STR_ARG(stream->endpoint->text));
}

void stream_debug_opened(const struct stream *stream)
{
    const struct tls_session *tls = stream->client.tls;

    if (tls)
        stream_debug(stream, "handshake done: " STR_FMT ", " STR_FMT "%s", STR_ARG(tls_session_protocol(tls)),
                     STR_ARG(tls_session_cipher(tls)), tls_session_reused(tls) ? ", resumed" : "");
}

void stream_debug_closed(const struct stream *stream)
{
    stream_debug(stream, "closed: status %d, %llu bytes received, %llu sent", stream->status,
                 (unsigned long long)(stream->preread.bytes + stream->up.bytes),
                 (unsigned long long)(stream->own_bytes + stream->down.bytes));
}
