/*
 * The state of a spool, shared by spool.c (adding and writing bytes, closing) and spool_read.c (consuming them).
 */
#ifndef MODULES_GATEWAY_SPOOL_PRIVATE_H
#define MODULES_GATEWAY_SPOOL_PRIVATE_H

#include "server/module.h"
#include "spool.h"
#include "spool_file.h"

struct block {
    struct block *next;
    size_t at, end;                 /* unconsumed and unwritten bytes */
    char bytes[];
};

struct spool {
    struct worker *worker;
    const struct spool_events *events;  /* NULL once closed */
    void *owner;
    struct spool_settings settings;
    struct block *first, *last;         /* owned */
    struct block *current;              /* the block of the last returned chunk; NULL: none */
    struct block *detached;             /* owned: `current` after its removal from the list */
    struct block *reading;              /* with `keeps`: the next bytes; NULL: the front of the first block */
    size_t reading_at;                  /* offset in it */
    uint64_t memory;                    /* bytes in the list */
    uint64_t length;
    struct spool_file file;
    uint64_t file_at;                   /* offset of the next bytes */
    int failed;                         /* error that stopped writing; 0: none */
    bool writing, fetching;
    char *window;                       /* owned: bytes of the file, for consumers without CHUNK_FILE */
    struct str ready;                   /* unconsumed bytes of the window */
    int read_error;                     /* error of reading; 0: none */
    struct op write, fetch, wake;
};

/* Removes `count` bytes, which were written or consumed, from the front of the list. */
void spool_advance(struct spool *spool, uint64_t count);
/* Frees the block of the last returned chunk, if it was removed from the list. */
void spool_release_detached(struct spool *spool);
/* Calls `progress`; frees a closed spool when nothing is pending. */
void spool_notify_progress(struct spool *spool);

#endif
