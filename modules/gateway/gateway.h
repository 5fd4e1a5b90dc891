/*
 * A gateway passes requests on to servers and their responses back. What HTTP, FastCGI and others have in common; what differs between them is a table of
 * functions, `struct gateway`. Modules that pass requests on include this file.
 *
 *      gateway_answer -> gateway_connect -> opened -> send_request
 *                                           gateway_received -> head_received -> body_next -> body_closed
 */
#ifndef MODULES_GATEWAY_GATEWAY_H
#define MODULES_GATEWAY_GATEWAY_H

#include "gateway_conf.h"
#include "http/h1_reply.h"
#include "http/h1_request.h"
#include "slices.h"

struct gateway_request;

/* The protocol that is spoken to the server. Requests are written, and responses read, by these alone; all else is the same. */
struct gateway {
    const char *name;               /* of its directives: NAME_pass */
    const char *scheme, *tls_scheme; /* for the log */
    uint16_t port;                  /* where the address has none; 0: 80 or 443 */
    bool measured;                  /* a request's body has a length before it begins */
    int (*parse)(struct str text, struct gateway_target *out_target); /* what variables made: 0 or -EINVAL */
    int (*write_head)(struct gateway_request *p, struct str *out_fault); /* into p->sent.head. 0, -ENOMEM, -ENOENT (404), or -EINVAL with *out_fault, which with 0 says what was replaced */
    int (*begin)(struct gateway_request *p); /* a connection is there: 0 or -ENOMEM */
    int (*next)(struct gateway_request *p, size_t room, struct chunk *out); /* what is sent: as h1_request_next */
    enum h1_reply_step (*read)(struct gateway_request *p, struct str *in, struct str *out_part); /* as h1_reply_read; p->reply has what came */
    enum h1_reply_step (*ended)(struct gateway_request *p, bool cut);
    void (*finish)(struct gateway_request *p); /* the connection is released; accepts a request that has not begun */
    int (*rewrite_head)(struct gateway_request *p); /* fields of x->response into the client's view: 0 or -ENOMEM. NULL: they stay */
};

/* One server that was asked; for the $upstream_ variables. */
struct gateway_attempt {
    struct gateway_attempt *next;
    struct str server;
    int status;                     /* 0: no response came */
    uint64_t begun_us;
    uint64_t connect_us, header_us, total_us; /* since begun_us; UINT64_MAX: not come that far */
    uint64_t bytes_received;
    uint64_t bytes_sent;
};

enum gateway_stage {
    GATEWAY_READING_BODY,           /* the client's body is read first */
    GATEWAY_CONNECTING,             /* or waiting for a name to resolve */
    GATEWAY_SENDING,                /* the request leaves, no response yet */
    GATEWAY_RESPONDING,             /* the response's head was given to the server: its body is pulled */
    GATEWAY_DONE,
};

/* The request on its way to the server. */
enum gateway_sending {
    SENDING_WAITS,                  /* for more of the client's body */
    SENDING_BLOCKED,                /* the wire had no room for more of it */
    SENDING_DONE,                   /* all of it was given to the wire */
};

/* Whether the connection is one that has carried requests before. */
enum gateway_reuse {
    REUSE_POSSIBLE,                 /* it is new: none was idle */
    REUSE_DONE,                     /* it has carried requests before */
    REUSE_REFUSED,                  /* it is new, and so is every further one: one of them was stale */
};

/* What kind of response it is: all but the first may be quiet for long. */
enum gateway_response_kind {
    RESPONSE_PLAIN,
    RESPONSE_EVENTS,                /* text/event-stream */
    RESPONSE_UPGRADED,              /* 101: a tunnel takes over once that has left */
};

/* How the body of the response passes. */
enum gateway_transfer {
    TRANSFER_ANY,                   /* through a pipe where it is large; else copied */
    TRANSFER_COPIED,                /* there was no pipe for it, or the client's side takes none */
    TRANSFER_SPOOLED,               /* it is buffered in `spool`, however much comes */
};

/* The server that is asked, and the connection to it. */
struct gateway_upstream {
    struct upstream_group *group;
    struct upstream_tls tls;
    char proxy_header[PROXY_HEADER_WRITTEN];
    struct upstream_choice choice;
    struct upstream_waiter waiter;
    struct upstream_peer *peer;     /* valid while `connection` is there, and in its `failed` */
    struct upstream_connection *connection; /* owned until released; NULL: none */
    enum gateway_reuse reuse;
    unsigned tries;
    uint64_t begun_ms;
};

/* The request as it is sent. */
struct gateway_sent {
    struct str method_name;         /* and its method: the client's, or of proxy_method */
    enum method method;
    struct str uri;                 /* what the request line says */
    uint64_t content_length;        /* of the request, as it leaves; BODY_LENGTH_UNKNOWN: chunked */
    struct str head;                /* the same */
    struct str replacement_body;    /* sent in the place of the client's body; data NULL: that is sent */
    size_t replacement_body_at;
    struct body own;                /* and what it is pulled by */
    struct buffered_body *owned;    /* closed at the exchange's end: what was buffered of the client's body; NULL: nothing */
    struct buffered_body *buffered; /* the same, where that is still the request's body; NULL: it is passed on as it comes */
    struct h1_request request;
    enum gateway_sending state;
    bool consumed;                  /* a server that was asked before has had some of the client's body */
};

/* The response's body on its way to the client. */
struct gateway_incoming {
    struct body body;               /* of the response */
    struct buffer input;            /* its bytes that came and were not pulled; never moved while it holds any */
    size_t input_at;
    enum gateway_transfer transfer;
    struct spool *spool;            /* owned; NULL: none of it has come */
    struct pipe *pipe;              /* held: through which the body passes; NULL: it is copied */
    struct chunk spliced;           /* what is in it and was not pulled */
    struct gateway_rate_limit *rate_limit; /* NULL: it is read as fast as it comes */
    int result;                     /* once all that came was pulled: -EAGAIN: more follows; 0: it is whole; else why it broke off */
    bool awaited;                   /* next has said -EAGAIN: a wake is owed */
};

/* One exchange that is passed on. In its arena; zeroed at first. */
struct gateway_request {
    struct exchange *x;             /* NULL: never passed on */
    const struct gateway_conf *conf;
    const struct upstream_events *events; /* of connections to servers */
    struct gateway_target target;
    const struct gateway_cache *cache; /* NULL: none */
    struct gateway_cached *cached;  /* its part in the cache; NULL: none */
    struct slice_part slice;       /* of a child that has a slice of its parent's response */
    struct slicing *slicing;        /* its response is made of slices; NULL: it is not */
    struct cache_update update;     /* of a child that fetches anew what its parent answers with meanwhile */
    struct gateway_attempt *attempts, *attempt; /* all, and the newest */
    enum gateway_stage stage;
    struct gateway_upstream upstream;
    struct gateway_sent sent;
    struct gateway_incoming incoming;
    struct h1_reply reply;
    void *own_state;                /* of the gateway; zeroed at first */
    bool starting;                  /* inside `answer`, which returns what else exchange_resume would tell */
    struct str upgrade;             /* the protocol that the client asks for; empty: none */
    enum gateway_response_kind kind;
    uint64_t interims_ms;           /* LIMIT_INTERIM_MS for each 1xx that was forwarded, on the loop's clock: how far it is ahead tells how many came at once */
};

/* The key of an exchange's state. It is in no table of modules: after 101 the end of the exchange is not held back for the state. */
extern const struct module gateway_key;
extern const struct module module_gateway;

struct gateway_module_conf {
    struct str body_folder;         /* client_body_temp_path */
};

/* x's state, made where it was not there; NULL: out of memory. */
static inline struct gateway_request *gateway_request_make(struct exchange *x)
{
    return exchange_state(x, &gateway_key, sizeof(struct gateway_request));
}

/* The same where it is there; else NULL. */
static inline struct gateway_request *gateway_request_of(const struct exchange *x)
{
    return exchange_state_found(x, &gateway_key);
}

/* True where a byte of the response to the newest attempt has come. */
static inline bool gateway_has_response(const struct gateway_request *p)
{
    return p->attempt->bytes_received > 0;
}

/* Fields of x->response into the client's view. 0 or -ENOMEM. */
static inline int gateway_rewrite_head(struct gateway_request *p)
{
    return p->conf->gateway->rewrite_head ? p->conf->gateway->rewrite_head(p) : 0;
}

/* gateway.c */

/* The answer of a module that passes requests on, and its cancel. */
enum outcome gateway_answer(struct exchange *x, const struct gateway_conf *conf);
void gateway_cancel(struct exchange *x, void *state);
/* Goes on with what the cache has decided, later than inside gateway_answer. */
void gateway_resume(struct gateway_request *p, enum outcome outcome);

/* target.c */

/* What goes on the request line, by nginx's rules. 0, or a status: 404 where it leads out of the path of proxy_pass by "..". */
int gateway_target_uri(const struct gateway_request *p, struct str *out_uri);
/* "127.0.0.1:9001" for Host and $proxy_host; "localhost" for unix:. */
struct str gateway_target_host(const struct gateway_target *target);
/* "http", "https" and so on. */
const char *gateway_scheme(const struct gateway_request *p);

/* max_forwards.c */

/* Max-Forwards counts for these methods alone. */
static inline bool gateway_counts_hops(const struct exchange *x)
{
    return x->request.method == METHOD_OPTIONS || x->request.method == METHOD_TRACE;
}
/* True for these with Max-Forwards: 0, which are answered here (RFC 9110 7.6.2). */
bool gateway_is_last_hop(const struct exchange *x);
/* Answers them: 204 for OPTIONS, 405 for TRACE. */
enum outcome gateway_answer_last_hop(struct exchange *x);
/* Max-Forwards of OPTIONS and TRACE goes on as one less. 0 or -ENOMEM. */
MUST_CHECK int gateway_forward_hops(const struct gateway_request *p, struct headers *fields);

#endif
