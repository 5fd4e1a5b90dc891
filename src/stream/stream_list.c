/*
 * The `stream` connections of a worker: for the control socket, and at the end of the worker.
 */
#include "server/connection_query.h"
#include "stream/stream_private.h"

void stream_abort_all(struct worker *worker)
{
    for (struct list *link = worker->streams.next; link != &worker->streams; link = link->next)
        wire_close(&container_of(link, struct stream, link)->client, WIRE_CLOSE_ABORT);
}

struct wire *stream_find_wire(struct list *link, uint64_t *out_number)
{
    struct stream *stream = container_of(link, struct stream, link);

    if (stream->closed || stream->client.state == WIRE_CLOSING)
        return NULL;
    *out_number = stream->number;
    return &stream->client;
}

void stream_describe(const struct list *link, struct connection_row *out)
{
    const struct stream *stream = container_of(link, struct stream, link);
    bool handshakes = stream->client.state == WIRE_HANDSHAKE;

    *out = (struct connection_row){.number = stream->number,
                                   .seconds = (stream_now_ms(stream) - stream->began_ms) / 1000,
                                   .state = handshakes           ? CONNECTION_HANDSHAKE
                                            : stream->prereading ? CONNECTION_READING
                                                                 : CONNECTION_WRITING,
                                   .protocol = "stream"};
    connection_row_common(out, stream->endpoint, stream->virtual, &stream->address, &stream->client);
}
