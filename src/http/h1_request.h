/*
 * An HTTP/1.1 request as a client writes it: a head made of parsed parts alone,
 * and a body framed as it is pulled.
 */
#ifndef HTTP_H1_REQUEST_H
#define HTTP_H1_REQUEST_H

#include "base/chunk.h"
#include "http/h1_write.h"

struct h1_request_head {
    struct str method;
    struct str target;              /* visible bytes only, as it goes on the request line */
    struct headers *headers;        /* Content-Length, Transfer-Encoding, Connection and Keep-Alive among them are left out */
    struct str connection;          /* the value of Connection; empty: none, it stays open */
    bool measured;                  /* a Content-Length is written, even 0 */
    uint64_t content_length;        /* BODY_LENGTH_UNKNOWN: chunked */
};

/*
 * The head in `arena`. 0, -ENOMEM, or -EINVAL: a method, target or name that may not go out, which *out_fault names. With 0 *out_fault is empty,
 * or names a field in whose value control bytes were replaced by spaces (RFC 9110 5.5).
 */
MUST_CHECK int h1_write_request(struct arena *arena, const struct h1_request_head *head, struct str *out_fault, struct str *out_head);

/* A request on its way: the head, then the body's bytes with their framing, then trailers. */
struct h1_request {
    struct str pending;             /* leaves before anything else */
    struct body *body;              /* not owned; NULL: none */
    struct arena *arena;            /* not owned */
    struct headers *trailers;       /* not owned; read once the body has ended */
    bool chunked;
    bool last;                      /* nothing follows `pending` */
    bool held;                      /* the body is not pulled yet: -EAGAIN once `pending` was given */
    struct str part;                /* of the body, being passed on */
    uint64_t pulled;                /* body bytes so far */
    char line[H1_CHUNK_LINE];
};

/* As body->next, bytes alone: 1 a chunk, 0 all was given, -EAGAIN the body has nothing yet (it wakes), other -errno of the body. */
MUST_CHECK int h1_request_next(struct h1_request *request, size_t room, struct chunk *out);

#endif
