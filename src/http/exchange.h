/*
 * One exchange: a request, its response, and the memory of both. HTTP/1.1 and
 * HTTP/2 both produce it; modules never learn which protocol it was.
 */
#ifndef HTTP_EXCHANGE_H
#define HTTP_EXCHANGE_H

#include "base/arena.h"
#include "http/body.h"
#include "http/headers.h"
#include "http/status.h"

enum method { METHOD_GET, METHOD_HEAD, METHOD_POST, METHOD_PUT, METHOD_DELETE, METHOD_OPTIONS, METHOD_PATCH, METHOD_CONNECT,
              METHOD_TRACE, METHOD_OTHER };

enum http_version { HTTP_1_0 = 10, HTTP_1_1 = 11, HTTP_2 = 20 };

struct request {
    enum method method;
    enum http_version version;
    struct str method_name;
    struct str line;                /* the request line as it came, for $request */
    struct str target;              /* as it came, for $request_uri (origin-form; absolute-form reduced to path and query) */
    struct str path;                /* decoded and normalised, begins with "/" (or is "*" for OPTIONS *), cannot leave the root; for $uri */
    struct str query;               /* after "?", data NULL where there is none */
    struct str host;                /* lower case, without port; from the target or Host (RFC 9112 3.2.2); empty in HTTP/1.0 without Host */
    uint16_t port;                  /* from Host, 0 where none */
    struct headers headers;
    struct headers trailers;        /* complete once the body gave its end */
    struct body *body;              /* pulled by modules; body_empty() where there is none. The session's: never closed by modules */
    uint64_t content_length;        /* or BODY_LENGTH_UNKNOWN for chunked */
    uint64_t body_limit;            /* set by exchange_limit_body; 0: none */
    bool expects_continue;
    uint64_t bytes;                 /* head and body received, for $request_length */
};

struct response {
    struct { int status; struct str text; } reason; /* of a server behind this one, for this status alone; empty: the standard phrase */
    int status;                     /* 0: none yet; 101: what the client says from then on is not HTTP, and is left to who takes the connection over */
    struct headers headers;         /* without framing: Content-Length, Transfer-Encoding, Connection, Date and Server are the session's */
    struct headers trailers;
    struct body *body;              /* NULL: none. body->length decides Content-Length or chunked */
    struct str head;                /* as it leaves, from the status line on, in the arena; data NULL: not written yet, or not in HTTP/1's words */
    bool head_sent;
    bool close_after;               /* the connection must end with this response */
    uint64_t body_bytes_sent;       /* counted by the session as the wire pulls */
    uint64_t bytes_sent;            /* with head and framing */
    struct str fault;               /* why the session sent a bare 500, cut the answer or replaced control bytes of a field; for the error log at `finished` */
};

struct exchange;

/* What a protocol does for its exchanges; called through the functions below. */
struct exchange_ops {
    void (*answer)(struct exchange *x);
    int (*inform)(struct exchange *x, int status, const struct headers *headers);
};

struct exchange {
    struct arena arena;             /* holds this struct too */
    unsigned holds;                 /* the session's own, and one for each exchange_hold */
    const struct exchange_ops *ops;
    const struct session_settings *settings; /* the session's; whoever routes may put others in their place */
    struct request request;
    struct response response;
    void *session;                  /* the protocol's own; NULL once `finished` has been called */
    void *owner;                    /* the server's own part (route, variables, module state), made when the head is whole */
    uint64_t started_us;            /* loop clock when its first byte came */
    bool cancelled;                 /* the client is gone: nobody resumes */
};

/*
 * For protocols: a zeroed exchange of `size` bytes (at least sizeof(struct exchange), which stands at its beginning),
 * in its own arena, held once, with an empty request body. NULL when out of memory.
 */
struct exchange *exchange_create(struct arena_pool *pool, size_t size);
/* Keeps x and its arena past `finished`, for whoever still has an operation in flight with memory in it. */
void exchange_hold(struct exchange *x);
/* Lets go; the last one frees x and its arena. Accepts NULL. */
void exchange_release(struct exchange *x);

/*
 * The most bytes that this request's body may have (client_max_body_size; 0: no limit), before anything was pulled. 0, or 413 where
 * the request already says that it has more; past the limit a chunked body's next gives -EMSGSIZE.
 */
MUST_CHECK int exchange_limit_body(struct exchange *x, uint64_t bytes);
/* The status for an error of request.body's next: 413 for -EMSGSIZE, 408 for -ETIMEDOUT, 500 for -ENOMEM, else 400. */
int exchange_body_status(int error);

/*
 * x->response is ready (status, headers, body): the session frames and sends it. Once per exchange; allowed inside `begun` and `refused`.
 * Ignored for a cancelled exchange.
 */
void exchange_answer(struct exchange *x);
/*
 * Sends an interim response (103 and others; 100 is the session's own) ahead of the answer; no effect in HTTP/1.0, and dropped where LIMIT_INTERIM_BYTES of
 * earlier ones wait for the client. The fields are copied. 0, -ENOMEM, or -EINVAL for a status or field that may not go out.
 */
MUST_CHECK int exchange_inform(struct exchange *x, int status, const struct headers *headers);

/*
 * Names of methods (RFC 9110 9); METHOD_OTHER for tokens that are none of ours. Case matters. Whoever would answer 405 answers
 * 501 for METHOD_OTHER; CONNECT never comes this far (sessions refuse it with 501).
 */
enum method method_parse(struct str name);

#endif
