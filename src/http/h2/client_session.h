/*
 * The client side of HTTP/2 (RFC 9113) on one connection to an upstream server. It reads and writes no file descriptor:
 * received bytes are consumed, bytes to send are produced. Each exchange is a stream that its owner embeds; the owner
 * reads responses item by item, as with h1_reply.
 */
#ifndef HTTP_H2_CLIENT_SESSION_H
#define HTTP_H2_CLIENT_SESSION_H

#include "base/chunk.h"
#include "base/clock.h"
#include "base/list.h"
#include "http/h1_reply.h"
#include "http/h2/abuse.h"
#include "http/h2/field_write.h"
#include "http/h2/flow.h"
#include "http/h2/frame_reader.h"
#include "http/h2/header_block.h"
#include "http/h2/response_reader.h"

#define H2_CLIENT_BUCKETS   16      /* of the table of streams */

/* The request of a stream; it outlives the stream. */
struct h2_client_request {
    struct h2_pseudo_fields pseudo;
    const struct headers *headers;  /* Host, Content-Length and connection-specific fields are not sent */
    const struct headers *trailers; /* sent after a body of unknown length, if there are any */
    uint64_t content_length;        /* 0: no body; BODY_LENGTH_UNKNOWN */
    bool send_content_length;       /* send Content-Length, even 0 */
    bool head;                      /* HEAD: the response has no body */
};

enum h2_client_stage {
    H2_CLIENT_HEAD,                 /* HEADERS are not sent yet */
    H2_CLIENT_BODY,
    H2_CLIENT_SENT,                 /* END_STREAM was sent, or the stream is reset */
};

/* The end of a response. */
enum h2_client_end {
    H2_CLIENT_OPEN,
    H2_CLIENT_WHOLE,
    H2_CLIENT_MALFORMED,            /* `fault` has the reason; the stream was reset by the client */
    H2_CLIENT_RESET,                /* by the server: `code` */
    H2_CLIENT_LOST,                 /* out of memory */
};

/* One exchange. Zeroed at first, except for the fields set by the owner. */
struct h2_client_stream {
    /* Set by the owner. */
    const struct h2_client_request *request;
    /* Set by the owner: pulls the request body, as body->next. */
    int (*next)(void *owner, size_t room, struct chunk *out);
    void *owner;
    struct arena *arena;            /* set by the owner: memory of the response head and trailers */
    struct headers *trailers;       /* set by the owner: gets the trailers before REPLY_WHOLE */
    size_t head_max;                /* set by the owner: maximum bytes of a head */

    int status;                     /* after REPLY_INTERIM and REPLY_HEAD */
    struct headers headers;         /* the same; those of a 1xx until the next call of h2_client_stream_read */
    uint64_t content_length;        /* of the head, also for a response without a body; BODY_LENGTH_UNKNOWN: absent */
    bool bodiless;                  /* no body follows */
    bool unprocessed;               /* after H2_CLIENT_RESET: the server did not process the request (RFC 9113 8.7) */
    enum h2_error code;             /* after H2_CLIENT_RESET */
    const char *fault;              /* after REPLY_BAD */
    int body_error;                 /* `next` failed: -errno */

    /* Private from here on; NULL: not open. */
    struct h2_client_session *session;
    struct list link;               /* in a bucket of the table */
    struct list send_link;          /* in session->ready or session->blocked */
    struct list updated;            /* in session->updated */
    uint32_t id;                    /* 0: not sent yet */
    uint8_t stage;                  /* enum h2_client_stage */
    uint8_t end;                    /* enum h2_client_end */
    bool head_seen, head_read;      /* the final head was received; it was read */
    bool interim_seen;
    bool finished;                  /* REPLY_WHOLE or REPLY_BAD was returned */
    int32_t window;                 /* for sending DATA */
    uint64_t left;                  /* bytes of a request body of known length that were not sent */
    struct str part;                /* bytes from `next` that were not sent yet */
    struct h2_receive_window receive;
    uint64_t received;              /* body bytes */
    struct buffer input;            /* body bytes received */
    size_t input_at;                /* bytes of `input` already read */
    struct arena interim;           /* memory of the latest 1xx only */
    struct headers interim_headers, final_headers;
    int interim_status, final_status;
};

struct h2_client_session {
    /* Called when there is something to send after produce has returned -EAGAIN. The callback only queues work. */
    void (*wake)(void *owner);
    void *owner;
    const struct clock *clock;
    const char *fault;                  /* the reason of a connection error */
    bool settings_received;             /* max_streams is known */
    bool going_away;                    /* GOAWAY was received: no stream can be opened */

    struct h2_frame_reader reader;      /* private from here on */
    struct buffer output;               /* frames to send, before those of streams */
    size_t output_at;                   /* bytes of `output` already returned by produce */
    char data_head[H2_FRAME_HEAD];      /* of the DATA frame returned last */
    struct h2_header_block block;
    struct h2_client_stream *receiving; /* the stream of `block`; NULL: the block is decoded and dropped */
    struct h2_response_reader fields;   /* of `block` */
    bool block_ends_stream;
    struct h2_peer_settings peer;
    struct h2_credit credit;
    struct h2_receive_window receive;
    int32_t window;                     /* for sending DATA */
    uint32_t next_id;
    unsigned stream_count;
    struct list streams[H2_CLIENT_BUCKETS];
    struct list ready;                  /* streams that may have something to send, in turns */
    struct list blocked;                /* streams whose DATA waits for the connection's window */
    struct list updated;                /* streams with something to read, or a changed state of sending */
    int error;                          /* the session is over: -EPROTO or -ENOMEM */
    bool wake_pending;
};

/* Queues the preface. `wake` and `clock` outlive the session. */
void h2_client_session_init(struct h2_client_session *session, void (*wake)(void *owner), void *owner,
                            const struct clock *clock);
/* Frees the session's memory; all streams were ended before. */
void h2_client_session_finish(struct h2_client_session *session);

/*
 * Consumes received bytes. 0; or an error that ends the session: -EPROTO (`fault`), -ENOMEM. After -EPROTO produce
 * still returns the GOAWAY.
 */
MUST_CHECK int h2_client_session_consume(struct h2_client_session *session, struct str bytes);
/*
 * Returns 1 with bytes to send in two parts, together at most `room` (not 0) bytes, valid until the next call; -EAGAIN:
 * nothing to send, `wake` follows; -ENOMEM.
 */
MUST_CHECK int h2_client_session_produce(struct h2_client_session *session, size_t room, struct str out_parts[2]);
/* Removes a stream from the list of updated ones, and returns it; NULL: none. */
struct h2_client_stream *h2_client_session_next_updated(struct h2_client_session *session);

/* The number of streams that may be opened now; 0 after GOAWAY or an error. */
unsigned h2_client_session_capacity(const struct h2_client_session *session);
/* Queues GOAWAY. Streams are not affected. */
void h2_client_session_goaway(struct h2_client_session *session, enum h2_error code);

/* Opens a stream; the capacity is not 0. Its HEADERS are sent with the next calls of produce. */
void h2_client_stream_open(struct h2_client_session *session, struct h2_client_stream *stream);
/*
 * Reads one item: REPLY_MORE, REPLY_INTERIM, REPLY_HEAD, REPLY_PART (at most `room` bytes, valid until the next call
 * for this session; with room 0 REPLY_MORE), REPLY_WHOLE, REPLY_BAD or REPLY_NO_MEMORY. Of several 1xx received
 * together only the last one is returned.
 */
enum h1_reply_step h2_client_stream_read(struct h2_client_stream *stream, size_t room, struct str *out_part);
/* Adds the stream to the updated ones if there is something to read. */
void h2_client_stream_receive(struct h2_client_stream *stream);
/* Called when the request body has bytes again, after -EAGAIN of `next`. */
void h2_client_stream_wake(struct h2_client_stream *stream);
/* True if the whole request was sent, or the stream was reset. */
static inline bool h2_client_stream_is_sent(const struct h2_client_stream *stream)
{
    return stream->stage == H2_CLIENT_SENT;
}
/* True if the request waits for its turn to be sent, or for a window of the server. */
bool h2_client_stream_is_blocked(const struct h2_client_stream *stream);
/* Ends a stream in any state; an incomplete one is reset with CANCEL. Accepts one that was never opened. */
void h2_client_stream_end(struct h2_client_stream *stream);

#endif
