/*
 * Lines of the debug log (debug_connection) about frames. Without a debug log the cost is one comparison per frame.
 */
#ifndef HTTP_H2_FRAME_LOG_H
#define HTTP_H2_FRAME_LOG_H

#include "http/h2/session.h"

/*
 * Describes a frame: "HEADERS, stream 1, 45 bytes, END_STREAM END_HEADERS". The payload, as far as it is present, adds
 * the values of control frames. Returns the length; the text is truncated to `size` and has no NUL.
 */
size_t h2_frame_describe(const struct h2_frame *frame, char *text, size_t size);

/* private: use h2_log_received and h2_log_sent */
void h2_frame_log_received(const struct h2_session *h2, const struct h2_frame *frame);
void h2_frame_log_sent(const struct h2_session *h2, struct str frames);

/* Logs a frame whose head is valid. Called before the frame is handled. */
static inline void h2_log_received(const struct h2_session *h2, const struct h2_frame *frame)
{
    if (h2->events->trace)
        h2_frame_log_received(h2, frame);
}

/* Logs whole frames, or the head of a DATA frame. Called when they are queued. */
static inline void h2_log_sent(const struct h2_session *h2, struct str frames)
{
    if (h2->events->trace)
        h2_frame_log_sent(h2, frames);
}

#endif
