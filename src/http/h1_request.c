/*
 * Sends requests: body bytes are passed on as they are pulled, in chunks if the length is unknown.
 */
#include "http/h1_request.h"

#include <errno.h>

static int produce_pending_part(struct h1_request *request, size_t room, struct chunk *out)
{
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = str_slice(request->pending, 0, room)};
    request->pending = str_skip(request->pending, out->bytes.length);
    return 1;
}

static int produce_part(struct h1_request *request, size_t room, struct chunk *out)
{
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = str_slice(request->part, 0, room)};
    request->part = str_skip(request->part, out->bytes.length);
    if (request->chunked && str_empty(request->part))
        request->pending = STR("\r\n");
    return 1;
}

static int end_body(struct h1_request *request)
{
    struct str fault;

    request->last = true;
    if (!request->chunked)
        return 0;
    return h1_write_last_chunk(request->arena, request->trailers, &fault, &request->pending);
}

static int pull_body(struct h1_request *request, size_t room)
{
    struct chunk chunk;
    int result = request->body->ops->next(request->body, CHUNK_BYTES, room, &chunk);

    if (result == 0)
        return end_body(request);
    if (result < 0)
        return result;
    request->part = chunk.bytes;
    request->pulled += chunk.bytes.length;
    if (request->chunked && chunk.bytes.length)
        request->pending = h1_write_chunk_line(chunk.bytes.length, request->line);
    return 0;
}

int h1_request_next(struct h1_request *request, size_t room, struct chunk *out)
{
    for (;;) {
        int error;

        if (request->pending.length)
            return produce_pending_part(request, room, out);
        if (request->part.length)
            return produce_part(request, room, out);
        if (request->last || !request->body)
            return 0;
        if (request->body_not_pulled)
            return -EAGAIN;
        error = pull_body(request, room);
        if (error < 0)
            return error;
    }
}
