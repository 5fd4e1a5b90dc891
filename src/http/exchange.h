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
    bool expects_continue;
    uint64_t bytes;                 /* head and body received, for $request_length */
};

struct response {
    int status;                     /* 0: none yet */
    struct headers headers;         /* without framing: Content-Length, Transfer-Encoding, Connection, Date and Server are the session's */
    struct headers trailers;
    struct body *body;              /* NULL: none. body->length decides Content-Length or chunked */
    bool head_sent;
    bool close_after;               /* the connection must end with this response */
    uint64_t body_bytes_sent;       /* counted by the session as the wire pulls */
    uint64_t bytes_sent;            /* with head and framing */
};

struct exchange {
    struct arena arena;
    struct request request;
    struct response response;
    void *session;                  /* the protocol's own */
    void *owner;                    /* the server's own part (route, variables, module state), made when the head is whole */
    uint64_t started_us;            /* loop clock when its first byte came */
    bool cancelled;                 /* the client is gone: nobody resumes */
};

/* Names of methods (RFC 9110 9); METHOD_OTHER for tokens that are none of ours. Case matters. */
enum method method_parse(struct str name);

#endif
