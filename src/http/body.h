/*
 * The body contract: bytes are pulled. Static files, proxied responses,
 * compressing wrappers and request bodies are all this.
 *
 * - `next` gives one chunk of a kind in `accept`: 1 chunk, 0 end, -EAGAIN later, other -errno: broken (the
 *   response can only be cut off).
 * - A chunk is lent until the next `next`. The caller has consumed it whole before it asks again.
 * - `room` bounds CHUNK_BYTES (never 0); a file or pipe span may be longer: whoever sends it takes it piece by piece.
 * - -EAGAIN is a promise of exactly one later `body->wake(body->owner)`; a wake only queues, and never pumps inside the caller.
 * - `close` comes once, when no op uses the body any more; a wrapper closes what it wraps. It may be called while
 *   an -EAGAIN is outstanding: then no wake follows.
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
    uint64_t length;                /* bytes that `next` will still give in all, or BODY_LENGTH_UNKNOWN */
    void (*wake)(void *owner);      /* set by who pulls */
    void *owner;
};

/* Closes a body where there is one and forgets it. */
void body_close(struct body **body);

/* Nothing at all: next is 0 at once. One shared, stateless body. */
struct body *body_empty(void);
/* Bytes that outlive the body (in the exchange's arena, or constant). NULL when out of memory. */
struct body *body_bytes(struct arena *arena, struct str bytes);
/*
 * A span of an open file. `released` (may be NULL) is called from close with `held`, to give the cache entry back.
 * Asked for CHUNK_FILE it gives the whole rest as one chunk. Asked for bytes only, it asks `read` (the owner's asynchronous read, see
 * server/module.h), or without one it preads.
 */
struct body *body_file(struct arena *arena, int fd, int64_t at, uint64_t length, void (*released)(void *held), void *held);
/* Several bodies one after the other (multipart/byteranges). Takes all of them over. */
struct body *body_concat(struct arena *arena, struct body **parts, unsigned count);

#endif
