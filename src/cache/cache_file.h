/*
 * One stored response as a file: the body from offset 0, so that a hit is sent as a span of the file; then the key,
 * the stored head, and a mark with their lengths and checksums. An update of the head (after a 304) is appended with a
 * mark of its own: the last mark is valid.
 *
 * A file is written under a temporary name and renamed when it is complete. Its name consists of its hash and its
 * sequence number, so that no two versions have the same name. Functions that access files may wait for the disk: call
 * them on helper threads.
 */
#ifndef CACHE_CACHE_FILE_H
#define CACHE_CACHE_FILE_H

#include "base/buffer.h"
#include "cache/cache_zone.h"

#define CACHE_LEVELS 3

/* The directory of a cache, with subdirectories named by the last digits of the hash. */
struct cache_directory {
    int fd;                         /* owned by its opener */
    unsigned levels[CACHE_LEVELS];  /* digits per level; 0: no more levels */
};

/* A running checksum: detects a file that was not completely written. */
struct cache_checksum {
    uint64_t state;
    uint64_t length;
    unsigned char part[8];
};
/* Adds the next bytes; cache_checksum_end returns the checksum of all bytes. A zeroed struct is valid and empty. */
void cache_checksum_add(struct cache_checksum *sum, struct str bytes);
uint64_t cache_checksum_end(const struct cache_checksum *sum);

/* Hashes a key: SHA-256, truncated. */
void cache_hash_key(struct str key, struct cache_hash *out);

/* A file being written. Zeroed except for fd -1 before cache_file_create. */
struct cache_writer {
    const struct cache_directory *directory;
    struct cache_id id;
    int fd;
    uint64_t length;                /* bytes of the body written so far */
    struct cache_checksum sum;
};

/*
 * Creates the file and missing directories. If the cache manager deleted the file before it was locked, creates it
 * again. Returns 0 or -errno; -ESTALE: too many attempts.
 */
MUST_CHECK int cache_file_create(struct cache_writer *writer);
/* Appends to the body. Returns 0 or -errno (-ENOSPC: the disk is full). */
MUST_CHECK int cache_file_write(struct cache_writer *writer, struct str bytes);
/* Appends `length` bytes of the file `from`, from `at` on, to the body. 0; -EBADMSG: the file is shorter; or -errno. */
MUST_CHECK int cache_file_copy(struct cache_writer *writer, int from, uint64_t at, uint64_t length);
/*
 * Writes key, head and mark, and renames the file to its name under `hash`, which may differ from that at creation:
 * writer->id then has it. Returns 0 with the file's size, or -errno.
 */
MUST_CHECK int cache_file_complete(struct cache_writer *writer, const struct cache_hash *hash, struct str key,
                                   struct str head, uint64_t *out_size);
/* Closes the file, and deletes it if it is incomplete. Accepts one that was never created. */
void cache_file_discard(struct cache_writer *writer);

/* An opened file. */
struct cache_opened {
    int fd;
    uint64_t body_length;
    unsigned updates;               /* number of updates of the head */
    struct buffer text;             /* key and head, and a small body */
    struct str key, head;           /* slices of it */
    struct str content;             /* data NULL: the body is only in the file */
};

/*
 * Opens a file if the last mark within `size` bytes (0: the whole file) is valid, and for a file written before the
 * machine's last boot the body, too. Bodies up to `content_max` bytes are read. Returns 0; -ENOENT; -EBADMSG:
 * invalid; or -errno.
 */
MUST_CHECK int cache_file_open(const struct cache_directory *directory, const struct cache_id *id, uint64_t size,
                               size_t content_max, struct cache_opened *out);
/* Closes the descriptor, and frees the text. */
void cache_opened_close(struct cache_opened *opened);

/* The start of a file's text. */
struct cache_file_start {
    struct str key;
    struct str head;                /* its first bytes */
    uint64_t body_length;
};
/*
 * Reads the key and at most `head_max` bytes of the head of a file of `size` valid bytes, without a check of its
 * checksums. Replaces the contents of `text`, into which *out points. Returns 0 or -errno, as cache_file_open.
 */
MUST_CHECK int cache_file_read_start(const struct cache_directory *directory, const struct cache_id *id, uint64_t size,
                                     size_t head_max, struct buffer *text, struct cache_file_start *out);

/*
 * Appends another head after the file's valid bytes, and makes it valid in the zone, under a lock of the file.
 * Returns 0; -EBUSY: another update is in progress, or the file was updated or replaced in the meantime; or -errno.
 * Readers with the old size still see the old head.
 */
MUST_CHECK int cache_file_update(const struct cache_directory *directory, struct cache_zone *zone,
                                 const struct cache_id *id, const struct cache_view *known, struct str head);

/* Deletes a file; it may be absent. */
void cache_file_delete(const struct cache_directory *directory, const struct cache_id *id);

/*
 * Deletes a temporary file in `directory`. Returns 0; -EWOULDBLOCK: a process writes it, or has not yet released its
 * lock; or another -errno.
 */
int cache_file_remove_unfinished(int directory, const char *name);

/* "c/29/HASH.SEQUENCE", relative to the directory, in at least CACHE_NAME bytes. */
#define CACHE_NAME 160
void cache_file_name(const struct cache_directory *directory, const struct cache_id *id, char *into);
/* Parses the name of an entry in the innermost directory; false: not a cache file. */
bool cache_file_parse_name(const char *name, struct cache_id *out_id);
/* Returns true for the name of a temporary file. */
bool cache_file_is_temporary(const char *name);

#endif
