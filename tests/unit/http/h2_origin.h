/*
 * An HTTP/2 server without sockets, for the client session: a script of frames, and a log of what the client sends and
 * reads. Used by the tests of the client session and by its fuzz target.
 */
#ifndef TEST_HTTP_H2_ORIGIN_H
#define TEST_HTTP_H2_ORIGIN_H

#include "http/h2/client_session.h"

#define H2_ORIGIN_STREAMS 4

struct h2_origin {
    struct h2_client_session session;
    struct clock clock;
    struct arena arena;
    struct h2_client_request requests[H2_ORIGIN_STREAMS];
    struct h2_client_stream streams[H2_ORIGIN_STREAMS];
    struct headers trailers[H2_ORIGIN_STREAMS];
    struct headers fields;                  /* of all requests */
    struct str bodies[H2_ORIGIN_STREAMS];   /* of the requests; given once, then `after` */
    int after[H2_ORIGIN_STREAMS];           /* 0: end; -EAGAIN and so on */
    size_t room;                            /* of one produce; 0: 64 KiB */
    struct frame_log { char text[8192]; size_t length; } log;
    struct buffer sent;                     /* bytes of the client that are no whole frame yet */
    bool quiet;                             /* the log is not written */
    bool preface_seen;
};

/* Opens the session, without streams. */
void h2_origin_open(struct h2_origin *origin);
/* Opens a stream with a body of `length` bytes (BODY_LENGTH_UNKNOWN, 0: none); its owner is origin->streams[i]. */
void h2_origin_request(struct h2_origin *origin, unsigned i, const char *method, uint64_t length, const char *body,
                       int after);
/* Ends all streams and frees everything. */
void h2_origin_close(struct h2_origin *origin);

/* Receives all that the client sends, and logs its frames; then reads and logs the items of all updated streams. */
void h2_origin_turn(struct h2_origin *origin);
/* Feeds bytes, then a turn. */
void h2_origin_feed(struct h2_origin *origin, struct str bytes);
/*
 * Feeds frames, one per line, then a turn:
 * settings [ID=VALUE ...] | ack | headers STREAM [end] [open] NAME=VALUE ... | data STREAM [end] TEXT |
 * rst STREAM CODE | window STREAM BYTES | goaway LAST CODE | ping | raw HEX
 */
void h2_origin_script(struct h2_origin *origin, const char *script);
/* The log since the last call. */
const char *h2_origin_log(struct h2_origin *origin);

#endif
