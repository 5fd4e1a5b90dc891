/*
 * One stored answer as a file: its body from the first byte on, so that a hit is a plain span of a file, and behind
 * it its key, what its owner notes of it (the head), and a mark that says how long each is, with sums over all. What is
 * noted anew (after a 304) is written behind that, with a mark of its own: the last mark counts.
 *
 * A file is written under another name and renamed once it is whole. Its name is its hash and its sequence number, so that
 * no two versions ever share one. Everything here may wait for a disk: for helper threads.
 */
#ifndef CACHE_CACHE_FILE_H
#define CACHE_CACHE_FILE_H

#include "base/buffer.h"
#include "cache/cache_zone.h"

#define CACHE_LEVELS 3

/* Where files lie: a folder, and folders in it named by the last digits of the hash. */
struct cache_folder {
    int fd;                         /* owned by whoever opened it */
    unsigned levels[CACHE_LEVELS];  /* digits of each; 0: no more */
};

/* A running sum over a body: tells a file that was not written out from one that was. */
struct cache_sum {
    uint64_t state;
    uint64_t length;
    unsigned char part[8];
};
void cache_sum_add(struct cache_sum *sum, struct str bytes);
uint64_t cache_sum_end(const struct cache_sum *sum);

/* The hash of a key: SHA-256, cut. */
void cache_hash_key(struct str key, struct cache_hash *out);

/* A file that is being made. Zeroed but for fd -1 before cache_file_create. */
struct cache_making {
    const struct cache_folder *folder;
    struct cache_id id;
    int fd;
    uint64_t length;                /* of the body, as far as it was written */
    struct cache_sum sum;
};

/*
 * 0 or -errno. Folders that are missing are made. Where a walk took the file before it was locked, it is made again;
 * -ESTALE: too often.
 */
MUST_CHECK int cache_file_create(struct cache_making *making);
/* More of the body. 0 or -errno (-ENOSPC: the disk is full). */
MUST_CHECK int cache_file_write(struct cache_making *making, struct str bytes);
/* Key, head and mark; then it has its name. 0 with the file's size, or -errno. */
MUST_CHECK int cache_file_complete(struct cache_making *making, struct str key, struct str head, uint64_t *out_size);
/* Closes it; what has no name yet is deleted. Accepts one that was never created. */
void cache_file_discard(struct cache_making *making);

/* A file that was opened. */
struct cache_opened {
    int fd;
    uint64_t body_length;
    unsigned updates;               /* how often it was noted anew */
    struct buffer text;             /* key and head, and the body where it is small */
    struct str key, head;           /* slices of it */
    struct str content;             /* data NULL: the body is in the file alone */
};

/*
 * Opens a file and believes it only where its last mark within `size` bytes (0: all there are) is right, and its body too, where it was written before the
 * machine was last started. Bodies up to `content_max` bytes are read. 0; -ENOENT; -EBADMSG: not to be used; or -errno.
 */
MUST_CHECK int cache_file_open(const struct cache_folder *folder, const struct cache_id *id, uint64_t size, size_t content_max,
                               struct cache_opened *out);
void cache_opened_close(struct cache_opened *opened);

/*
 * Notes another head behind those bytes of the file that count, and makes it count in the zone. Nobody else does so at that time. 0; -EBUSY: somebody does, or has
 * done; or -errno. The file is as it was for whoever knows its old size.
 */
MUST_CHECK int cache_file_update(const struct cache_folder *folder, struct cache_zone *zone, const struct cache_id *id,
                                 const struct cache_view *known, struct str head);

/* Deletes a file; that it is gone already does not matter. */
void cache_file_delete(const struct cache_folder *folder, const struct cache_id *id);

/* Deletes a file that was being made, in the folder `folder`, unless somebody still makes it. */
void cache_file_remove_unfinished(int folder, const char *name);

/* "c/29/HASH.SEQUENCE" into `into` (at least CACHE_NAME bytes); beneath the folder. */
#define CACHE_NAME 160
void cache_file_name(const struct cache_folder *folder, const struct cache_id *id, char *into);
/* The name of an entry in the last folder; false where it is none of ours. */
bool cache_file_parse_name(const char *name, struct cache_id *out_id);
/* True for the name that a file has while it is made. */
bool cache_file_is_temporary(const char *name);

#endif
