/*
 * A spool: bytes that come faster than they are taken, kept in their order. So many of them stay in memory; where more
 * come, helper threads write them to a temporary file that has no name. They are taken from the file first, then from
 * memory. Where no file can be written it is memory alone, and whoever fills it has to wait: no byte is lost.
 */
#ifndef MODULES_GATEWAY_SPOOL_H
#define MODULES_GATEWAY_SPOOL_H

#include "base/chunk.h"

struct spool;
struct worker;

/* Copied, the folder too. */
struct spool_settings {
    uint64_t memory;                /* bytes kept there before some are written, from 1 on */
    uint64_t block;                 /* and in pieces of that size */
    uint64_t file_max;              /* bytes that are written in all, at most; 0: none are */
    struct str folder;              /* of the file: absolute */
    bool keeps;                     /* what was taken can be taken again: spool_rewind */
};

/* What the owner is told, each from the loop, never inside a call of the owner. */
struct spool_events {
    /* There may be something to take, or room, where there was none; or spool_wake was called. */
    void (*moved)(void *owner);
    /* Once: nothing more is written to the file. "doing" says what failed. What was put stays, and will be taken. */
    void (*failed)(void *owner, const char *doing, int error);
};

/* `worker` and `events` outlive it, NULL when out of memory. Ended by spool_close. */
struct spool *spool_create(struct worker *worker, const struct spool_settings *settings, const struct spool_events *events,
                           void *owner);
/* The owner lets go: no event follows. What helper threads still use is freed when they are done. Accepts NULL. */
void spool_close(struct spool *spool);

/*
 * Another one with all that this one keeps, for who takes it beside: the same file, and a copy of what is in memory. The first must keep, and nothing is put into
 * either from then on. 0 or -errno.
 */
MUST_CHECK int spool_copy(const struct spool *spool, const struct spool_events *events, void *owner, struct spool **out_copy);

/* Appends a copy. 0 or -ENOMEM. A full spool takes it, too: it is the owner that stops. */
MUST_CHECK int spool_append(struct spool *spool, struct str bytes);
/* Nothing should be put until `moved`, or until something was taken. */
bool spool_full(const struct spool *spool);
/* Full, and nothing of it is being written: only taking makes room. What was taken cannot be had again from here on. */
bool spool_streams(struct spool *spool);
/* Bytes that were put in all. */
uint64_t spool_length(const struct spool *spool);

/*
 * As body->next: 1 a chunk, lent until the next call; 0 all was taken, for now; -EAGAIN `moved` follows; other -errno: the file cannot be
 * read. With CHUNK_FILE in `accept` the file's rest is one chunk, and the file stays open until spool_close.
 */
MUST_CHECK int spool_next(struct spool *spool, unsigned accept, size_t room, struct chunk *out);
/* What was put is taken again from its beginning. Only where it keeps. */
void spool_rewind(struct spool *spool);
/* `moved` follows. */
void spool_wake(struct spool *spool);

#endif
