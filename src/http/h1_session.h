/*
 * Shared by the files of the HTTP/1 session: the session, which is small and holds no memory while idle, and the
 * open exchange in its arena. Private: other code uses protocol.h.
 */
#ifndef HTTP_H1_SESSION_H
#define HTTP_H1_SESSION_H

#include "http/h1_frame.h"
#include "http/h1_parse.h"
#include "http/h1_write.h"

struct h1_exchange;

struct h1_session {
    struct session session;
    const struct session_settings *settings;
    const struct exchange_events *events;
    void *owner;
    struct arena_pool *pool;
    const struct clock *clock;
    struct h1_exchange *current;        /* owned; NULL between requests */
    struct buffer head;                 /* a partial head */
    struct h1_scan scan;
    uint64_t begun_us;                  /* time of the head's first byte */
    unsigned requests;                  /* begun or rejected so far */
    int16_t error;                      /* returned by produce from now on: the connection is aborted */
    bool keepalive : 1;                 /* further requests are allowed */
    bool retiring : 1;                  /* the next response announces the close; SESSION_RETIRE */
    bool input_closed : 1;              /* further input is ignored */
    bool over : 1;
    bool http2_preface_received : 1;    /* the client uses HTTP/2: further bytes are not consumed */
    bool wake_pending : 1;              /* produce returned -EAGAIN: a wake must follow */
    bool input_blocked : 1;             /* consume left bytes: a wake must follow once it accepts more */
};

enum h1_stage {
    STAGE_REQUEST,                  /* no response yet */
    STAGE_HEAD,
    STAGE_BODY,
    STAGE_PART,                     /* the size line is sent, the bytes of the chunk follow */
    STAGE_LAST,                     /* the body has ended; `pending` may have the last bytes */
    STAGE_COMPLETE,                 /* produce has returned all bytes */
    STAGE_DRAINING,                 /* ended; the rest of the request body is being read */
};

struct h1_exchange {
    struct exchange x;              /* first member: allocated by exchange_create */
    struct h1_session *session;
    enum h1_stage stage;
    bool keepalive_requested;

    struct body request_body;       /* target of x.request.body, if there is a body */
    struct h1_chunked *chunked;     /* NULL: Content-Length */
    uint64_t left;                  /* remaining bytes of Content-Length */
    uint64_t decoded;               /* body bytes received */
    struct buffer input;            /* body bytes received and not pulled; not moved while it holds any */
    size_t input_at;                /* offset of the next pull */
    size_t drained;
    int body_error;                 /* returned by next once `input` is empty */
    bool body_whole;
    bool wake_pending;              /* next returned -EAGAIN: a wake must follow */
    bool continue_due;              /* 100 Continue is to be sent at the first pull */

    enum h1_framing framing;
    bool response_waits;            /* the response body returned -EAGAIN */
    struct str head;
    struct buffer interims;         /* 1xx heads, sent before all other bytes */
    size_t interims_at;             /* bytes of them already returned by produce */
    struct str pending;             /* sent next */
    struct chunk part;
    uint64_t rest;                  /* remaining bytes of the response's Content-Length */
    char line[H1_CHUNK_LINE];
};

/* h1_wake.c */

/* Wakes the owner if produce returned -EAGAIN. */
void h1_session_wake(struct h1_session *session);

/* Wakes the owner if consume left bytes. */
void h1_session_resume_input(struct h1_session *session);
/* The connection is unusable: produce returns `error`. */
void h1_session_break(struct h1_session *session, int error);

/* Interim responses of h (h1_interim.c). */

/*
 * Queues an interim response, sent before all other bytes; drops it if LIMIT_INTERIM_BYTES of earlier ones are queued.
 * 0, -ENOMEM or -EINVAL.
 */
MUST_CHECK int h1_interim_queue(struct h1_exchange *h, int status, const struct headers *headers);
/* Dequeues at most `room` bytes; empty if none are left. */
struct str h1_interim_next(struct h1_exchange *h, size_t room);

/* The response of h (h1_response.c). */
extern const struct exchange_ops h1_exchange_ops;
/*
 * One step. 1 with *out filled in; 0: call again unless the stage is STAGE_COMPLETE; -EAGAIN: wait for a wake; other
 * errors: abort.
 */
MUST_CHECK int h1_response_produce(struct h1_exchange *h, unsigned accept, size_t room, struct chunk *out);

/* The request body of h (h1_body.c). 0 or -ENOMEM. */
MUST_CHECK int h1_body_open(struct h1_exchange *h);
/* Consumes body bytes, as protocol->consume; 0 also after the end of the body. */
size_t h1_body_consume(struct h1_exchange *h, struct str bytes);
/* The body is truncated: next returns `error` after the bytes received. */
void h1_body_fail(struct h1_exchange *h, int error);
/* True if the rest of an unread body is small enough to be read and discarded, which keeps the connection. */
bool h1_body_drainable(const struct h1_exchange *h);
/* From now on received body bytes are discarded. */
void h1_body_drain(struct h1_exchange *h);
/* Frees the buffers of the body. */
void h1_body_finish(struct h1_exchange *h);

#endif
