/*
 * What the files of the HTTP/1 session share: the session, which is small and at
 * rest holds nothing, and the exchange that is open, which lives in its own arena.
 * Not for others: they see protocol.h.
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
    struct h1_exchange *current;    /* owned; NULL between requests */
    struct buffer head;             /* a head that comes in pieces, up to its end */
    struct h1_scan scan;
    uint64_t begun_us;              /* when the first byte of the head came */
    unsigned requests;              /* begun or refused so far */
    int16_t error;                  /* what produce says from now on: the connection is cut */
    bool keepalive : 1;             /* this connection may see another request */
    bool retiring : 1;              /* the next head says that it is the last one; SESSION_RETIRE */
    bool deaf : 1;                  /* what still comes is ignored */
    bool over : 1;
    bool starved : 1;               /* produce has said -EAGAIN: a wake is owed */
    bool held_back : 1;             /* consume has left bytes: a wake is owed once they are wanted */
};

enum h1_stage {
    STAGE_REQUEST,                  /* not answered yet */
    STAGE_HEAD,
    STAGE_BODY,
    STAGE_PART,                     /* a chunk's bytes leave, its size line has left */
    STAGE_LAST,                     /* everything was given; when it has left, the exchange ends */
    STAGE_DRAINING,                 /* ended, but its request body is still coming */
};

struct h1_exchange {
    struct exchange x;              /* first: exchange_create made all of this */
    struct h1_session *session;
    enum h1_stage stage;
    bool wants_keepalive;

    struct body request_body;       /* what x.request.body points to, where there is one */
    struct h1_chunked *chunked;     /* NULL: Content-Length */
    uint64_t left;                  /* of Content-Length, still to come */
    uint64_t decoded;               /* body bytes that came */
    struct buffer input;            /* body bytes that came and were not pulled; never moved while it holds any */
    size_t input_at;                /* where the next pull begins */
    size_t drained;
    int body_error;                 /* what next says once `input` is empty */
    bool body_whole;
    bool awaited;                   /* next has said -EAGAIN: a wake is owed */
    bool continue_due;              /* the client waits for 100 */

    enum h1_framing framing;
    bool response_waits;            /* the response body has said -EAGAIN */
    struct str head;
    struct buffer interims;         /* 1xx heads, which leave before anything else */
    size_t interims_at;             /* so much of them was given */
    struct str pending;             /* leaves next */
    struct chunk part;
    uint64_t rest;                  /* of the answer's Content-Length */
    char line[H1_CHUNK_LINE];
};

/* Lets the owner pump again where produce had said -EAGAIN. */
void h1_session_wake(struct h1_session *session);

/* Lets the owner offer again what consume had left. */
void h1_session_ask_again(struct h1_session *session);
/* The connection is of no more use: produce says `error`. */
void h1_session_break(struct h1_session *session, int error);
/* The last byte has left: `finished`, and then the next request, a body to be drained, or the end. */
void h1_exchange_end(struct h1_exchange *h);

/* The answer of h (h1_answer.c). */
extern const struct exchange_ops h1_exchange_ops;
/* Sends an interim response before anything else; dropped where LIMIT_INTERIM_BYTES of earlier ones wait. 0, -ENOMEM or -EINVAL. */
MUST_CHECK int h1_answer_interim(struct h1_exchange *h, int status, const struct headers *headers);
/* One step. 1: *out is given; 0: go on, with what is current then; -EAGAIN: nothing until a wake; other errors: cut. */
MUST_CHECK int h1_answer_produce(struct h1_exchange *h, unsigned accept, size_t room, struct chunk *out);

/* The request body of h (h1_body.c). 0 or -ENOMEM. */
MUST_CHECK int h1_body_open(struct h1_exchange *h);
/* Takes body bytes, as protocol->consume; 0 as well once the body is whole. */
size_t h1_body_consume(struct h1_exchange *h, struct str bytes);
/* The rest will not come: next says `error` after what is there. */
void h1_body_fail(struct h1_exchange *h, int error);
/* True where the rest of an unread body is small enough to be read and dropped, so that the connection may stay. */
bool h1_body_drainable(const struct h1_exchange *h);
/* Nobody pulls any more: what comes is dropped, up to LIMIT_PIPELINE_DRAIN. */
void h1_body_drain(struct h1_exchange *h);
void h1_body_finish(struct h1_exchange *h);

#endif
