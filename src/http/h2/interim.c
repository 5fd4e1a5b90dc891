/*
 * Interim responses have a separate buffer, because they are sent before the response exists.
 */
#include "http/h2/interim.h"

#include "base/limits.h"
#include "http/h1_parse.h"
#include "http/h2/field_write.h"
#include "http/h2/frame_log.h"
#include "http/h2/stream.h"

#include <errno.h>

static bool is_sendable(const struct headers *headers)
{
    for (unsigned i = 0; i < headers->count; i++) {
        if (!h1_is_token(headers->items[i].name) || !h1_is_value(headers->items[i].value))
            return false;
    }
    return true;
}

int h2_interim_queue(struct h2_stream *stream, int status, const struct headers *headers)
{
    static const struct headers none;
    struct h2_section section = {
        .status = status,
        .headers = headers ? headers : &none,
        .content_length = BODY_LENGTH_UNKNOWN,
    };
    struct h2_session *h2 = stream->session;
    struct buffer *queue = &stream->interims;
    char *end;
    int error;

    if (status < 100 || status > 199 || status == 101 || !is_sendable(section.headers))
        return -EINVAL;
    if (stream->interims_at == queue->length)
        stream->interims_at = queue->length = 0;
    queue->max = LIMIT_INTERIM_BYTES;
    error = buffer_reserve(queue, h2_section_bound(&section, h2->peer.max_frame_size));
    if (error)
        return error == -ENOBUFS ? 0 : error;
    end = h2_section_write(queue->data + queue->length, &section, h2->peer.max_frame_size, stream->id,
                           false);
    h2_log_sent(h2, str_of(queue->data + queue->length, (size_t)(end - queue->data) - queue->length));
    queue->length = (size_t)(end - queue->data);
    h2_stream_ready(stream);
    return 0;
}
