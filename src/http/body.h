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
/* Bytes that are somebody's: `released` is called once, with `held`, when the body is closed. NULL when out of memory (`released` is not called). */
struct body *body_lent(struct arena *arena, struct str bytes, void (*released)(void *held), void *held);
/*
 * A span of an open file. `released` (may be NULL) is called once, when nothing reads from fd any more, with `held`: to give the
 * cache entry back. Asked for CHUNK_FILE it gives the whole rest as one chunk; asked for bytes only, it reads through
 * the reader of body_file_read_with, and has -ENOTSUP without one. NULL when out of memory (`released` is not called).
 */
struct body *body_file(struct arena *arena, int fd, int64_t at, uint64_t length, void (*released)(void *held), void *held);

/* One read that a file body asks for; it outlives the body and its arena. */
struct body_read {
    int fd;
    int64_t at;
    char *into;
    size_t length;
};

/* The server's asynchronous read (compressors want bytes; this folder touches no descriptor). */
struct body_reader {
    /* Bytes read (0: the file ends there), -errno, or -EAGAIN: then body_read_done follows once, never inside this call. */
    int (*read)(struct body_reader *reader, struct body_read *read);
    /* Nobody waits for it any more; body_read_done still follows. May be NULL. */
    void (*cancel)(struct body_reader *reader, struct body_read *read);
};
/* `reader` outlives the body. Only for bodies made by body_file. */
void body_file_read_with(struct body *body, struct body_reader *reader);
/* Ends a read that had said -EAGAIN: bytes, 0 or -errno. `read` is gone afterwards. */
void body_read_done(struct body_read *read, int result);

/* Several bodies one after the other (multipart/byteranges). Takes all of them over; NULL when out of memory (then not). */
struct body *body_concat(struct arena *arena, struct body **parts, unsigned count);

#endif
