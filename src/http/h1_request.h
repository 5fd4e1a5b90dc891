/*
 * Writes an HTTP/1.1 request: a head from parsed parts, and a body framed as it is pulled.
 */
#ifndef HTTP_H1_REQUEST_H
#define HTTP_H1_REQUEST_H

#include "base/chunk.h"
#include "http/h1_write.h"

struct h1_request_head {
    struct str method;
    struct str target;              /* for the request line; visible bytes only */
    struct headers *headers;        /* Content-Length, Transfer-Encoding, Connection and Keep-Alive in it are skipped */
    struct str connection;          /* value of Connection; empty: none, persistent */
    bool send_content_length;       /* send Content-Length, even 0 */
    uint64_t content_length;        /* BODY_LENGTH_UNKNOWN: chunked */
};

/*
 * Checks a head, also for HTTP/2, and replaces control bytes in its fields by spaces. 0, -ENOMEM, or -EINVAL, as
 * h1_write_request.
 */
MUST_CHECK int h1_check_request(struct arena *arena, const struct h1_request_head *head, struct str *out_fault);
/*
 * Formats the head in `arena`. 0, -ENOMEM, or -EINVAL: a method, target or name that must not be sent, named by
 * *out_fault. With 0, *out_fault is empty or names a field whose control bytes were replaced by spaces (RFC 9110
 * 5.5).
 */
MUST_CHECK int h1_write_request(struct arena *arena, const struct h1_request_head *head, struct str *out_fault,
                                struct str *out_head);

/* A request being sent: the head, the body with its framing, then trailers. */
struct h1_request {
    struct str pending;             /* sent first */
    struct body *body;              /* not owned; NULL: none */
    struct arena *arena;            /* not owned */
    struct headers *trailers;       /* not owned; used once the body has ended */
    bool chunked;
    bool last;                      /* nothing follows `pending` */
    bool body_not_pulled;           /* the body is not pulled yet: -EAGAIN after `pending` */
    struct str part;                /* of the body, being sent */
    uint64_t pulled;                /* body bytes so far */
    char line[H1_CHUNK_LINE];
};

/*
 * Returns 1 with a chunk of at most `room` bytes; 0 at the end of the request; -EAGAIN if the body has no bytes now (it
 * calls `wake` later) or if body_not_pulled; or another -errno of the body.
 */
MUST_CHECK int h1_request_next(struct h1_request *request, size_t room, struct chunk *out);

#endif
