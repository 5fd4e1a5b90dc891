/*
 * One exchange: a request, its response, and their memory. All protocol versions use the same struct, so that modules
 * do not depend on the version.
 */
#ifndef HTTP_EXCHANGE_H
#define HTTP_EXCHANGE_H

#include "base/arena.h"
#include "base/transfer.h"
#include "http/body.h"
#include "http/headers.h"
#include "http/status.h"

enum method { METHOD_GET, METHOD_HEAD, METHOD_POST, METHOD_PUT, METHOD_DELETE, METHOD_OPTIONS, METHOD_PATCH,
              METHOD_CONNECT, METHOD_TRACE, METHOD_OTHER };

enum http_version { HTTP_1_0 = 10, HTTP_1_1 = 11, HTTP_2 = 20 };

struct request {
    enum method method;
    enum http_version version;
    struct str method_name;
    struct str line;                /* the request line as received, or formatted from HTTP/2, for $request */
    /* As received, for $request_uri (origin-form; absolute-form reduced to path and query). */
    struct str target;
    /* Decoded and normalised, begins with "/" (or is "*" for OPTIONS *), cannot leave the root; for $uri. */
    struct str path;
    struct str query;               /* after "?"; data NULL: none */
    /* Lower case, without port; from the target or Host (RFC 9112 3.2.2); empty in HTTP/1.0 without Host. */
    struct str host;
    uint16_t port;                  /* from the target or Host; 0: none */
    struct headers headers;
    struct headers trailers;        /* complete once the body has ended */
    /* Pulled by modules; body_empty() if there is none. Owned by the session: modules never close it. */
    struct body *body;
    /* Extended CONNECT (RFC 8441), presented as GET with Upgrade: the client's bytes after a 101; NULL: not used. */
    struct body *tunnel;
    uint64_t content_length;        /* BODY_LENGTH_UNKNOWN: chunked, or HTTP/2 without Content-Length */
    uint64_t body_limit;            /* set by exchange_limit_body; 0: none */
    uint32_t stream_id;             /* HTTP/2; 0: HTTP/1 */
    bool expects_continue;
    uint64_t bytes;                 /* bytes of head and body received, for $request_length */
};

struct response {
    /* From an upstream server, for this status only; empty: the standard phrase. */
    struct { int status; struct str text; } reason;
    /* 0: none yet; 101: protocol upgrade of the connection, or with extended CONNECT of `tunnel` and `body`. */
    int status;
    /* Without framing: the session writes Content-Length, Transfer-Encoding, Connection, Date and Server. */
    struct headers headers;
    struct headers trailers;
    struct body *body;              /* NULL: none; body->length selects Content-Length or chunked */
    struct str head;                /* the serialised head, in the arena; data NULL: not written yet, or not HTTP/1 */
    bool head_sent;
    uint8_t reset_code;             /* the error code of HTTP/2 that ends an aborted response; 0: INTERNAL_ERROR */
    bool close_after;               /* the connection closes after this response; in HTTP/2: GOAWAY before it */
    uint64_t body_bytes_sent;       /* counted by the session when pulled */
    uint64_t bytes_sent;            /* including head and framing */
    /* The reason for a bare 500, an aborted response or replaced control bytes; for the error log at `finished`. */
    struct str fault;
};

struct exchange;

/* Implemented by each protocol; called through the functions below. */
struct exchange_ops {
    void (*respond)(struct exchange *x);
    int (*inform)(struct exchange *x, int status, const struct headers *headers);
    bool (*abort)(struct exchange *x); /* NULL: only the connection can be closed */
};

struct exchange {
    struct arena arena;             /* contains this struct, too */
    unsigned holds;                 /* references: one of the session and one per exchange_hold */
    const struct exchange_ops *ops;
    /* The session's; routing may replace them. */
    const struct session_settings *settings;
    struct request request;
    struct response response;
    struct transfer transfer;       /* of the response; updated by the wire */
    void *session;                  /* the protocol's session; NULL after `finished` */
    /* The server's request state (route, variables, module state), created when the head is complete. */
    void *owner;
    uint64_t started_us;            /* loop clock at its first byte */
    bool cancelled;                 /* the client has disconnected or reset the stream: processing must not resume */
};

/*
 * For protocols: creates a zeroed exchange of `size` bytes (at least sizeof(struct exchange), which comes first) in
 * its own arena, with one reference and an empty request body. NULL when out of memory.
 */
struct exchange *exchange_create(struct arena_pool *pool, size_t size);
/* Adds a reference, for an operation that uses memory of x: x and its arena may then outlive `finished`. */
void exchange_hold(struct exchange *x);
/* Drops a reference; the last one frees x and its arena. Accepts NULL. */
void exchange_release(struct exchange *x);

/*
 * Sets the limit of the request body (client_max_body_size; 0: none) before it is pulled. 0, or 413 if
 * Content-Length exceeds it. `next` of a body of unknown length returns -EMSGSIZE past the limit.
 */
MUST_CHECK int exchange_limit_body(struct exchange *x, uint64_t bytes);
/*
 * The status for an error of request.body's next: 413 for -EMSGSIZE, 408 for -ETIMEDOUT, 500 for -ENOMEM, else 400.
 */
int exchange_body_status(int error);

/*
 * Sends x->response (status, headers, body). Once per exchange; allowed inside `begun` and `rejected`. Ignored for a
 * cancelled exchange.
 */
void exchange_respond(struct exchange *x);
/*
 * Sends an interim response (103 and others; the session sends 100) ahead of the response. No effect in HTTP/1.0;
 * dropped if LIMIT_INTERIM_BYTES of earlier ones are queued. The fields are copied. 0, -ENOMEM, or -EINVAL for a
 * status or field that must not be sent.
 */
MUST_CHECK int exchange_inform(struct exchange *x, int status, const struct headers *headers);

/*
 * Ends an exchange without a response, instead of exchange_respond (`return: 444`): HTTP/2 resets the stream, and
 * `finished` follows later. False: the protocol can only close the connection.
 */
MUST_CHECK bool exchange_abort(struct exchange *x);

/*
 * Parses a method (RFC 9110 9), case-sensitive; METHOD_OTHER for unknown tokens. A module answers METHOD_OTHER with
 * 501 instead of 405; sessions reject CONNECT with 501.
 */
enum method method_parse(struct str name);

#endif
