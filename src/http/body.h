/*
 * The interface of a body, from which the consumer pulls bytes. Static files, proxied responses, encoders and request
 * bodies implement it.
 *
 * - `next` returns 1 with one chunk of a kind in `accept`; 0 at the end; -EAGAIN if no bytes are available now; or
 *   another -errno: the message can only be aborted. *out is defined only after 1.
 * - A chunk is valid until the following `next`. The consumer uses all of it before that call.
 * - `room` is the maximum length of CHUNK_BYTES in bytes, never 0. A file or pipe span may be longer.
 * - After -EAGAIN the body calls `body->wake(body->owner)` exactly once. The callback queues work; it must not call
 *   `next`.
 * - `close` is called once, when no op uses the body any more; a wrapper closes the wrapped body. After `close` no wake
 *   follows, even if one is outstanding.
 */
#ifndef HTTP_BODY_H
#define HTTP_BODY_H

#include "base/arena.h"
#include "base/chunk.h"

#define BODY_LENGTH_UNKNOWN UINT64_MAX

struct body;

struct body_ops {
    int (*next)(struct body *body, unsigned accept, size_t room, struct chunk *out);
    void (*close)(struct body *body);
};

struct body {
    const struct body_ops *ops;
    uint64_t length;                /* remaining bytes, or BODY_LENGTH_UNKNOWN */
    void (*wake)(void *owner);      /* set by the consumer */
    void *owner;
};

/* Closes *body unless it is NULL, and sets it to NULL. */
void body_close(struct body **body);

/* The empty body: shared and stateless. */
struct body *body_empty(void);
/* A body of bytes that outlive it (in the exchange's arena, or constant). NULL when out of memory. */
struct body *body_bytes(struct arena *arena, struct str bytes);
/*
 * A body of bytes that another object owns: closing it calls `released` once with `resource`. NULL when out of memory
 * (`released` is not called).
 */
struct body *body_referenced(struct arena *arena, struct str bytes, void (*released)(void *resource), void *resource);
/*
 * A body of a span of an open file. `released` (may be NULL) is called once with `resource` when the body does not use
 * fd any more, to release a cache entry. If `accept` has CHUNK_FILE, `next` returns the whole rest as one chunk;
 * otherwise it reads bytes through the reader of body_file_read_with, and returns -ENOTSUP without one. NULL when out
 * of memory (`released` is not called).
 */
struct body *body_file(struct arena *arena, int fd, int64_t at, uint64_t length, void (*released)(void *resource),
                       void *resource);

/* One read requested by a file body. Valid until body_read_done, even if the body and its arena are freed before. */
struct body_read {
    int fd;
    int64_t at;
    char *into;
    size_t length;
    uint64_t rest;                  /* bytes of the body from `at` on: the reader may read them ahead */
};

/* Asynchronous reads by the server, for bodies whose consumer needs bytes: http/ uses no descriptor. */
struct body_reader {
    /* The bytes read (0: end of file), -errno, or -EAGAIN: body_read_done follows once, never inside this call. */
    int (*read)(struct body_reader *reader, struct body_read *read);
    /* Cancels a read whose result is not needed; body_read_done still follows. May be NULL. */
    void (*cancel)(struct body_reader *reader, struct body_read *read);
};
/* Sets the reader of a body made by body_file. `reader` outlives the body. */
void body_file_read_with(struct body *body, struct body_reader *reader);
/* Completes a read that returned -EAGAIN: bytes, 0 or -errno. The caller must not use `read` afterwards. */
void body_read_done(struct body_read *read, int result);

/* Concatenates bodies (multipart/byteranges). Takes ownership of them, unless it returns NULL (out of memory). */
struct body *body_concat(struct arena *arena, struct body **parts, unsigned count);

#endif
