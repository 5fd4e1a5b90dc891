/*
 * The interface of a protocol to the connection, which passes received bytes in (consume) and pulls chunks to send
 * (produce). HTTP/1 and HTTP/2 implement it.
 */
#ifndef HTTP_PROTOCOL_H
#define HTTP_PROTOCOL_H

#include "base/chunk.h"
#include "base/clock.h"
#include "http/exchange.h"
#include "http/protocol_counters.h"

struct protocol;

/* The public part of every session. */
struct session {
    const struct protocol *protocol;
};

/* Events of a session for the server (`owner` was passed to open). The server may answer inside the call or later. */
struct exchange_events {
    /* A request head is complete; the body may still arrive. The server answers by exchange_respond. */
    void (*begun)(void *owner, struct exchange *x);
    /*
     * The head was rejected: x has the parsed part, and `status` is the response status (400, 408, 413, 414, 431,
     * 501, 505 ...). The server responds with an error page; the session then closes the connection if
     * `x->response.close_after`.
     */
    void (*rejected)(void *owner, struct exchange *x, int status);
    /*
     * Called once for each exchange that was begun or rejected, when the wire has consumed the response, or when the
     * response was aborted (x->cancelled). The server logs the exchange and releases its state: x and its arena are
     * freed afterwards, unless a reference of exchange_hold remains.
     */
    void (*finished)(void *owner, struct exchange *x);
    /*
     * produce has output again after -EAGAIN, or consume accepts bytes again. The callback only queues the connection;
     * later the owner calls consume with the unconsumed bytes, and produce.
     */
    void (*wake)(void *owner);
    /*
     * The client closed its sending side before x finished (FIN or close_notify). It may still read; the server may
     * abort. May be NULL.
     */
    void (*client_closed)(void *owner, struct exchange *x);
    /*
     * The first bytes of a plain connection are the beginning of HTTP/2's preface (RFC 9113 3.3): consume has taken
     * PREFACE_HEAD, and the owner continues with protocol_http2 after consume returns. May be NULL: 505.
     */
    void (*preface)(void *owner);
    /* Debug log: a frame of HTTP/2 was received or queued. NULL: none, and no text is formatted. */
    void (*trace)(void *owner, struct str text);
};
/* The part of HTTP/2's preface that has the form of an HTTP/1 request head. */
#define PREFACE_HEAD STR("PRI * HTTP/2.0\r\n\r\n")

/* Settings of a session; they outlive it. */
struct session_settings {
    size_t header_buffer_size;      /* client_header_buffer_size */
    size_t large_header_size;       /* size of one large buffer: the longest line */
    size_t head_max;                /* longest head: number * size of large_client_header_buffers */
    unsigned max_headers;
    size_t body_buffer_size;        /* client_body_buffer_size */
    unsigned keepalive_requests;    /* at least 1 */
    bool keepalive;                 /* keepalive_timeout is not 0 */
    bool underscores_in_headers;
    bool merge_slashes;
    struct str server_header;       /* value of Server; empty: none */
    struct {
        bool enabled;               /* http2: a plain connection may begin with the preface */
        /* http2_max_concurrent_streams. */
        unsigned max_concurrent_streams;
        uint32_t body_preread_size; /* http2_body_preread_size: initial receive window of a stream */
        uint32_t chunk_size;        /* http2_chunk_size: maximum payload of DATA */
        /* client_header_timeout ... of streams. */
        uint64_t header_timeout_ms, body_timeout_ms, send_timeout_ms, min_rate;
        bool connect_protocol;      /* a location can switch protocols: extended CONNECT (RFC 8441) is offered */
    } http2;
};

enum session_phase {
    SESSION_IDLE,                   /* between requests: keepalive_timeout; holds no buffer and no arena */
    SESSION_HEAD,                   /* a head is arriving: client_header_timeout from its first byte */
    SESSION_BODY,                   /* request body bytes are outstanding: client_body_timeout between reads */
    SESSION_WAITING,                /* the server is producing a response */
    SESSION_SENDING,                /* send_timeout between writes */
    SESSION_BLOCKED,                /* HTTP/2: responses wait for windows of the client: send_timeout */
    SESSION_CLOSING,                /* HTTP/2: the first GOAWAY was sent, and no stream is open: `deadline` */
    SESSION_OVER,
};

/*
 * SESSION_DEADLINE: the time of `deadline` has come. SESSION_DRAIN: the current request is the last one, and idle
 * connections close. SESSION_RETIRE: the next response announces the close (Connection: close), so that the client
 * sends no further request.
 */
enum session_signal { SESSION_TIMEOUT, SESSION_DEADLINE, SESSION_PEER_CLOSED, SESSION_DRAIN, SESSION_RETIRE };

/* Shared by all sessions of a worker, which outlives them. */
struct session_shared {
    struct arena_pool *arenas;
    const struct clock *clock;
    struct protocol_counters *counters;
};

struct protocol {
    const char *alpn;
    struct session *(*open)(const struct session_settings *settings, const struct exchange_events *events, void *owner,
                            const struct session_shared *shared);
    /*
     * Returns the bytes consumed; fewer is backpressure (offer the rest after the next wake). Cannot fail: malformed
     * input becomes a rejected request.
     */
    size_t (*consume)(struct session *session, struct str bytes);
    /*
     * As `next` of a body: 1: a chunk; 0: the end, the owner closes the connection; -EAGAIN; -ECONNRESET: abort by RST,
     * because a FIN would mark the end of the response; other -errno: abort.
     */
    int (*produce)(struct session *session, unsigned accept, size_t room, struct chunk *out);
    /* The state of the session, which selects the timeout of the connection. */
    enum session_phase (*phase)(const struct session *session);
    /*
     * Returns the newest exchange in progress whose head was received, and the number of such exchanges; NULL: none.
     * The function may be NULL.
     */
    const struct exchange *(*current)(const struct session *session, unsigned *out_count);
    /*
     * Returns the time (monotonic clock in milliseconds) at which SESSION_DEADLINE is due; UINT64_MAX: never. Such a
     * session measures the timeouts of its streams itself, in place of those of the phases HEAD, BODY, BLOCKED and
     * CLOSING. The function may be NULL.
     */
    uint64_t (*deadline)(const struct session *session);
    /*
     * Reports a timeout, the close of the peer's sending side, or the stop of the server. After SESSION_DRAIN the
     * session completes the responses in progress, a new connection also the response to its first request; then
     * produce returns 0. May call events (`rejected` with 408, `client_closed`, `wake`). The owner calls phase and
     * produce afterwards.
     */
    void (*signal)(struct session *session, enum session_signal signal);
    void (*close)(struct session *session); /* cancels open exchanges (`finished` for each) and frees the session */
};

extern const struct protocol protocol_http1, protocol_http2;

#endif
