/*
 * The timeouts of a `stream` connection: preread_timeout, proxy_timeout, and the end of lingering.
 */
#include "stream/stream_private.h"

#include <errno.h>

/*
 * Until a virtual server is selected, the deadline is the default server's preread_timeout after the start; then it is
 * proxy_timeout after the last activity.
 */
static uint64_t deadline_ms(const struct stream *stream)
{
    if (wire_lingering(&stream->client))
        return stream->last_activity_ms + stream->client.settings->lingering_ms;
    if (stream->prereading)
        return stream->began_ms + stream->conf->preread_timeout_ms;
    return stream->last_activity_ms + stream->conf->timeout_ms;
}

/* Once wire_close was called, the timer also polls for the start of lingering, which no event reports. */
static uint64_t next_check_time(const struct stream *stream, uint64_t due_ms)
{
    uint64_t check_ms = stream_now_ms(stream) + stream->client.settings->lingering_ms;

    return stream->ending && check_ms < due_ms ? check_ms : due_ms;
}

void stream_check_timeout(struct stream *stream)
{
    uint64_t due_ms = deadline_ms(stream);

    if (due_ms > stream_now_ms(stream)) {
        loop_timer(&stream->worker->loop, &stream->timer, next_check_time(stream, due_ms));
        return;
    }
    if (!stream->ending)
        stream_log_line(stream, LOG_INFO, stream->prereading ? "preread_timeout expired" : "proxy_timeout expired",
                        -ETIMEDOUT);
    stream_end(stream, WIRE_CLOSE_TIMEOUT);
}
