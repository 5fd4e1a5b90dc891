/*
 * A spool: buffers bytes in order while they arrive faster than they are consumed. A limited amount stays in memory;
 * beyond it helper threads write to an unnamed temporary file. If no file can be written, the producer must wait
 * while the memory is full: no byte is lost.
 */
#ifndef MODULES_GATEWAY_SPOOL_H
#define MODULES_GATEWAY_SPOOL_H

#include "base/chunk.h"

struct spool;
struct worker;

/* Copied, including the directory. */
struct spool_settings {
    uint64_t memory;                /* bytes in memory before writing starts, at least 1 */
    uint64_t block;                 /* block size */
    uint64_t file_max;              /* maximum of bytes written; 0: no file */
    struct str directory;           /* absolute directory of the file */
    bool keeps;                     /* consumed bytes are kept: spool_rewind */
};

/* Events for the owner, from the loop, never inside a call of the owner. */
struct spool_events {
    /* Bytes or room may be available again; or spool_wake was called. */
    void (*progress)(void *owner);
    /* Called once: writing has stopped. `doing` is the failed operation. All bytes remain available. */
    void (*failed)(void *owner, const char *doing, int error);
};

/* Creates a spool. `worker` and `events` outlive it. NULL when out of memory. Ended by spool_close. */
struct spool *spool_create(struct worker *worker, const struct spool_settings *settings,
                           const struct spool_events *events,
                           void *owner);
/* Closes the spool: no event follows. Memory used by helper threads is freed later. Accepts NULL. */
void spool_close(struct spool *spool);

/*
 * Creates another spool with the same contents: it shares the file and copies the memory. The first must have
 * `keeps`, and nothing is added to either afterwards. 0 or -errno.
 */
MUST_CHECK int spool_copy(const struct spool *spool, const struct spool_events *events, void *owner,
                          struct spool **out_copy);

/* Appends a copy, also to a full spool: the owner must check spool_full. 0 or -ENOMEM. */
MUST_CHECK int spool_append(struct spool *spool, struct str bytes);
/* Returns true if no bytes should be added until `progress`, or until bytes were consumed. */
bool spool_full(const struct spool *spool);
/*
 * Returns true if the spool is full and no write is pending or possible: only consuming makes room. Consumed bytes
 * are not kept from then on.
 */
bool spool_streams(struct spool *spool);
/* Total of bytes added. */
uint64_t spool_length(const struct spool *spool);

/*
 * As body->next. 1: a chunk, valid until the next call; 0: all bytes so far are consumed; -EAGAIN: `progress`
 * follows; other -errno: the file cannot be read. With CHUNK_FILE in `accept` the rest of the file is one chunk, and
 * the file stays open until spool_close.
 */
MUST_CHECK int spool_next(struct spool *spool, unsigned accept, size_t room, struct chunk *out);
/* Restarts consuming at the first byte. Requires `keeps`. */
void spool_rewind(struct spool *spool);
/* Schedules a call of `progress`. */
void spool_wake(struct spool *spool);

#endif
