/*
 * A gateway passes requests to upstream servers, and their responses to clients. This is the part that HTTP, gRPC and
 * FastCGI share; `struct gateway` is the table of functions of one protocol. Modules that pass requests on include
 * this file.
 *
 *      gateway_handler -> gateway_begin -> gateway_opened -> send_request
 *      gateway_received -> head_received -> body_next -> body_closed
 */
#ifndef MODULES_GATEWAY_GATEWAY_H
#define MODULES_GATEWAY_GATEWAY_H

#include "gateway_conf.h"
#include "http/h1_reply.h"
#include "http/h1_request.h"
#include "slices.h"

struct gateway_request;
struct gateway_stream;
struct h2_client_request;

/* The protocol of the upstream server: formats requests and parses responses. */
struct gateway {
    const char *name;                               /* part of its directives' names: NAME_pass */
    const char *scheme, *tls_scheme;                /* for the log */
    uint16_t port;                                  /* default port; 0: 80 or 443 */
    bool needs_content_length;                      /* request bodies need a length in advance */
    /* HTTP/2: `begin` to `finish` are not called. NULL: a request has a connection of its own. */
    const struct gateway_streams *streams;
    /* Parses a target made from variables. 0 or -EINVAL. */
    int (*parse)(struct str text, struct gateway_target *out_target);
    /*
     * Writes p->sent.head or p->sent.h2. 0 (*out_fault: a replaced value), -ENOMEM, -ENOENT (404), or -EINVAL with
     * *out_fault.
     */
    int (*write_head)(struct gateway_request *p, struct str *out_fault);
    int (*begin)(struct gateway_request *p);        /* called when connected: 0 or -ENOMEM */
    /* The bytes to send: as h1_request_next. */
    int (*next)(struct gateway_request *p, size_t room, struct chunk *out);
    /* Parses received bytes into p->reply: as h1_reply_read. */
    enum h1_reply_step (*read)(struct gateway_request *p, struct str *in, struct str *out_part);
    enum h1_reply_step (*ended)(struct gateway_request *p, bool truncated);
    /* Called on release of the connection, also if `begin` was not called. */
    void (*finish)(struct gateway_request *p);
    /* Sets x->response for an error of this server; false or NULL: an error page. */
    bool (*respond_error)(struct gateway_request *p, int status);
    int (*rewrite_head)(struct gateway_request *p); /* rewrites fields of x->response: 0 or -ENOMEM. NULL: none */
};

/* Requests as streams of shared connections: h2/stream.h. The functions take the place of those of upstream_pool.h. */
struct gateway_streams {
    int (*connect)(struct gateway_request *p);  /* sets p->upstream.stream: as upstream_connect */
    void (*begin)(struct gateway_request *p);   /* sends p->sent.h2, and receives the response */
    void (*receive)(struct gateway_request *p); /* there is room for more of the response */
    void (*wake)(struct gateway_request *p);    /* the request body has more */
    /* True while the next step is the server's: the timeout of reading applies. */
    bool (*awaits_response)(const struct gateway_request *p);
    void (*set_timeout)(struct gateway_request *p, uint64_t timeout_ms);
    void (*release)(struct gateway_request *p); /* an incomplete stream is cancelled */
};

/* One attempt, for the $upstream_ variables. */
struct gateway_attempt {
    struct gateway_attempt *next;
    struct str server;
    int status;                                 /* 0: no response */
    uint64_t begun_us;
    uint64_t connect_us, header_us, total_us;   /* since begun_us; UINT64_MAX: not reached */
    uint64_t bytes_received;
    uint64_t bytes_sent;
};

enum gateway_stage {
    GATEWAY_READING_BODY,           /* buffering the client's body */
    GATEWAY_CONNECTING,             /* or resolving a name */
    GATEWAY_SENDING,                /* sending, no response yet */
    GATEWAY_RESPONDING,             /* the head was passed on; the body is being pulled */
    GATEWAY_DONE,
};

/* The state of sending the request. */
enum gateway_sending {
    SENDING_WAITS,                  /* for more of the client's body */
    SENDING_BLOCKED,                /* the wire has no room */
    SENDING_DONE,                   /* all bytes were given to the wire */
};

/* Whether the connection was used for an earlier request. */
enum gateway_reuse {
    REUSE_POSSIBLE,                 /* new: there was no idle one */
    REUSE_DONE,                     /* reused */
    REUSE_REFUSED,                  /* new, as are all further ones: an idle one was stale */
};

/* The kind of response. All but the first may be idle for LIMIT_PROXY_IDLE_MS. */
enum gateway_response_kind {
    RESPONSE_PLAIN,
    RESPONSE_EVENTS,                /* text/event-stream */
    RESPONSE_UPGRADED,              /* 101: the connection becomes a tunnel once it is sent */
    RESPONSE_TUNNEL,                /* 101 to extended CONNECT: request.tunnel and the response body are the tunnel */
};

/* How the response body is passed to the client. */
enum gateway_transfer {
    TRANSFER_ANY,                   /* spliced if large, else copied */
    TRANSFER_COPIED,                /* copied: there is no pipe, or the client connection does not accept pipes */
    TRANSFER_SPOOLED,               /* buffered in `spool` as fast as it arrives */
};

/* The selected server and the connection to it. */
struct gateway_upstream {
    /* Of a target with variables: may be freed while there is no connection, see upstream_pool_target_of. */
    struct upstream_group *group;
    struct upstream_transport transport;
    char proxy_header[PROXY_HEADER_WRITTEN];
    struct upstream_choice choice;
    struct upstream_waiter waiter;
    struct upstream_peer *peer;     /* valid with a connection or stream, and when it is lost */
    /* Owned until released; NULL: none. */
    struct upstream_connection *connection;
    struct gateway_stream *stream;  /* over HTTP/2, in place of `connection` */
    enum gateway_reuse reuse;
    unsigned tries;
    unsigned refusals;              /* of streams that the server did not process */
    bool unprocessed;               /* the server did not process the newest attempt: any method may be repeated */
    uint64_t begun_ms;
};

/* The request as sent. */
struct gateway_sent {
    struct str method_name;         /* the client's, or that of proxy_method */
    enum method method;
    struct str uri;                 /* of the request line */
    uint64_t content_length;        /* BODY_LENGTH_UNKNOWN: chunked */
    struct str head;                /* formatted request head */
    struct h2_client_request *h2;   /* over HTTP/2, in place of `head` */
    struct str replacement_body;    /* replaces the client's body; data NULL: not replaced */
    size_t replacement_body_at;
    struct body own;                /* the body that pulls it */
    struct buffered_body *owned;    /* closed at the end of the exchange: the buffered client body; NULL: none */
    struct buffered_body *buffered; /* the same while it is the request's body; NULL: the body is streamed */
    struct h1_request request;
    enum gateway_sending state;
    bool consumed;                  /* an earlier attempt consumed a part of the client's body */
};

/* The response body between the upstream server and the client. */
struct gateway_incoming {
    struct body body;               /* of the response */
    struct buffer input;            /* received, not yet pulled; never reallocated while it has bytes */
    size_t input_at;
    enum gateway_transfer transfer;
    struct spool *spool;            /* owned; NULL: no bytes received */
    struct pipe *pipe;              /* referenced: the body is spliced; NULL: it is copied */
    struct chunk spliced;           /* bytes in the pipe, not pulled */
    /* NULL: no limit. */
    struct gateway_rate_limit *rate_limit;
    int result;                     /* after all received bytes: -EAGAIN: more follow; 0: complete; else the error */
    bool was_full;                  /* the last receive had LIMIT_RECEIVE_BYTES or more */
    bool wake_pending;              /* next returned -EAGAIN: the body must be woken */
};

/* A subrequest that replaces a HEAD by a GET (proxy_cache_convert_head). */
enum gateway_for_head {
    FOR_HEAD_NOT,
    FOR_HEAD_FETCHES,
    FOR_HEAD_REDIRECTED,            /* the reply has X-Accel-Redirect, which the parent follows */
};

/* The gateway's state of one exchange. In its arena; zeroed at first. */
struct gateway_request {
    struct exchange *x;                     /* NULL: not passed on */
    const struct gateway_conf *conf;
    const struct upstream_events *events;   /* of connections to upstream servers */
    struct gateway_target target;
    const struct gateway_cache *cache;      /* NULL: none */
    struct gateway_cached *cached;          /* NULL: no cache */
    struct slice_part slice;                /* for a subrequest that fetches a slice of its parent's response */
    struct slice_request *slice_request;    /* the response is assembled from slices; NULL: it is not */
    struct cache_update update;             /* for a subrequest that updates an entry in the background */
    enum gateway_for_head for_head;
    /* The response is a 304 by the client's conditions: the body is stored and not sent. */
    bool not_modified;
    bool detached;                          /* gateway_detach: `x` is the subrequest */
    /* All, and the newest. */
    struct gateway_attempt *attempts, *attempt;
    enum gateway_stage stage;
    struct gateway_upstream upstream;
    struct gateway_sent sent;
    struct gateway_incoming incoming;
    struct h1_reply reply;
    void *own_state;                        /* private to the gateway; zeroed at first */
    bool starting;                          /* during `handler`, which returns the outcome instead of exchange_resume */
    struct str upgrade;                     /* the protocol requested by the client; empty: none */
    struct str websocket_accept;            /* expected Sec-WebSocket-Accept of the 101; empty: the client checks it */
    enum gateway_response_kind kind;
    /* Limits forwarded 1xx: the clock or later, plus LIMIT_INTERIM_MS for each. */
    uint64_t interims_ms;
};

/*
 * The key of an exchange's state. It is not in the table of modules: after 101 the exchange ends without waiting for
 * this state.
 */
extern const struct module gateway_key;
extern const struct module module_gateway;

struct gateway_module_conf {
    struct str body_directory;         /* client_body_temp_path */
};

/* Returns x's state, created if necessary; NULL: out of memory. */
static inline struct gateway_request *gateway_request_make(struct exchange *x)
{
    return exchange_state(x, &gateway_key, sizeof(struct gateway_request));
}

/* Returns x's state, or NULL. */
static inline struct gateway_request *gateway_request_of(const struct exchange *x)
{
    return exchange_state_found(x, &gateway_key);
}

/* True while there is a connection, or a stream. */
static inline bool gateway_is_connected(const struct gateway_request *p)
{
    return p->upstream.connection || p->upstream.stream;
}

/* True if a byte of the newest attempt's response has arrived. */
static inline bool gateway_has_response(const struct gateway_request *p)
{
    return p->attempt->bytes_received > 0;
}

/* Rewrites fields of x->response for the client. 0 or -ENOMEM. */
static inline int gateway_rewrite_head(struct gateway_request *p)
{
    return p->conf->gateway->rewrite_head ? p->conf->gateway->rewrite_head(p) : 0;
}

/* gateway.c: the handler of a module that passes requests on, and its cancellation. */
enum outcome gateway_handler(struct exchange *x, const struct gateway_conf *conf);
void gateway_cancel(struct exchange *x, void *state);
/* Continues after an asynchronous decision of the cache. */
void gateway_resume(struct gateway_request *p, enum outcome outcome);

/* target.c: the request target by nginx's rules. 0, or a status: 404 if ".." leaves the path of proxy_pass. */
int gateway_target_uri(const struct gateway_request *p, struct str *out_uri);
/* "127.0.0.1:9001" for Host and $proxy_host; "localhost" for unix:. */
struct str gateway_target_host(const struct gateway_target *target);
/* "http", "https" and so on. */
const char *gateway_scheme(const struct gateway_request *p);

/* max_forwards.c: Max-Forwards applies to these methods only. */
static inline bool gateway_counts_hops(const struct exchange *x)
{
    return x->request.method == METHOD_OPTIONS || x->request.method == METHOD_TRACE;
}
/* True if Max-Forwards is 0: this server answers (RFC 9110 7.6.2). */
bool gateway_is_last_hop(const struct exchange *x);
/* Responds with 204 to OPTIONS, and with 405 to TRACE. */
enum outcome gateway_respond_last_hop(struct exchange *x);
/* Decrements Max-Forwards of OPTIONS and TRACE. 0 or -ENOMEM. */
MUST_CHECK int gateway_forward_hops(const struct gateway_request *p, struct headers *fields);

#endif
