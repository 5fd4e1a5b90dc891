/*
 * What a protocol is to the journey: bytes are pushed in (consume), chunks are
 * pulled out (produce). HTTP/1.1, HTTP/2, and an in-memory one for tests.
 */
#ifndef HTTP_PROTOCOL_H
#define HTTP_PROTOCOL_H

#include "base/chunk.h"
#include "base/clock.h"
#include "http/exchange.h"

struct protocol;

/* The part of every protocol's session that others may see. */
struct session {
    const struct protocol *protocol;
};

/* What a session tells the server (`owner` is the one given to open). The server may answer at once, inside the call, or later. */
struct exchange_events {
    /* A request head is whole (the body may still be coming). The server answers by exchange_answer. */
    void (*begun)(void *owner, struct exchange *x);
    /*
     * The head could not be accepted: x has what was read so far, and `status` is the refusal (400, 408, 413, 414, 431, 501, 505 ...). The server shapes an
     * error page and answers as usual; the session closes the connection afterwards where `x->response.close_after`.
     */
    void (*refused)(void *owner, struct exchange *x, int status);
    /*
     * Once for each exchange that was begun or refused: the last byte of the response was taken, or it was cut off (x->cancelled): log it, let go. x and its arena are
     * freed after this, unless exchange_hold keeps them.
     */
    void (*finished)(void *owner, struct exchange *x);
    /* produce has something again after it had said -EAGAIN, or consume wants what it had left. Only queue: offer the rest, then pump. */
    void (*wake)(void *owner);
    /* The client ended its stream while x is not finished. It may still read; whoever does not believe that may end it. May be NULL. */
    void (*left)(void *owner, struct exchange *x);
};

/* What a session is opened with; lives as long as the listener's generation. */
struct session_settings {
    size_t header_buffer_size;      /* client_header_buffer_size */
    size_t large_header_size;       /* one large buffer: the longest line */
    size_t head_max;                /* the whole head: number * size of large_client_header_buffers */
    unsigned max_headers;
    size_t body_buffer_size;        /* client_body_buffer_size */
    unsigned keepalive_requests;    /* at least 1 */
    bool keepalive;                 /* keepalive_timeout is not 0 */
    bool underscores_in_headers;
    bool merge_slashes;
    struct str server_header;       /* value of Server, empty for none */
};

enum session_phase {
    SESSION_IDLE,                   /* between requests: keepalive_timeout; holds no buffer and no arena */
    SESSION_HEAD,                   /* a head has begun: client_header_timeout, counted from its first byte */
    SESSION_BODY,                   /* waiting for request body bytes: client_body_timeout between reads */
    SESSION_WAITING,                /* the server works on an answer */
    SESSION_SENDING,                /* send_timeout between writes */
    SESSION_OVER,
};

/*
 * SESSION_DRAIN: the request that is under way is the last one, and who is idle is let go. SESSION_RETIRE: the next
 * answer says that it is the last one, so that nobody asks in vain.
 */
enum session_signal { SESSION_TIMEOUT, SESSION_PEER_CLOSED, SESSION_DRAIN, SESSION_RETIRE };

struct protocol {
    const char *alpn;
    struct session *(*open)(const struct session_settings *settings, const struct exchange_events *events, void *owner,
                            struct arena_pool *pool, const struct clock *clock);
    /* Bytes taken; fewer is backpressure (offer the rest again after the next wake). Never fails: bad bytes become a refusal. */
    size_t (*consume)(struct session *session, struct str bytes);
    /* As body->next: 1 chunk, 0 nothing more ever (close the connection in order), -EAGAIN, -ECONNRESET: cut by a reset, as an end would look like the answer's, other -errno: cut. */
    int (*produce)(struct session *session, unsigned accept, size_t room, struct chunk *out);
    /* The clock of the connection's one timer asks: what are we waiting for? */
    enum session_phase (*phase)(const struct session *session);
    /*
     * A deadline passed, the peer ended its stream, or the server is stopping (finish the current answers, and the first one even if it is
     * yet to be asked for, then say 0). May call back (`refused` with 408, `wake`); afterwards ask phase, and produce.
     */
    void (*signal)(struct session *session, enum session_signal signal);
    void (*close)(struct session *session); /* cancels what is open (finished is called for each), frees all */
};

extern const struct protocol protocol_http1;

#endif
