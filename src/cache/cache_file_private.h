/*
 * Shared by cache_file.c (open, update, delete), cache_file_write.c (create) and cache_file_mark.c (the end of a file).
 */
#ifndef CACHE_CACHE_FILE_PRIVATE_H
#define CACHE_CACHE_FILE_PRIVATE_H

#include "cache/cache_file.h"

/* The end of a file and of each update. */
struct cache_mark {
    uint64_t magic;
    struct cache_id id;
    uint64_t body_length;
    uint64_t body_sum;
    uint32_t key_length;
    uint32_t head_length;
    uint32_t updates;
    uint32_t unused;
    unsigned char boot[16];         /* boot id: files of the current boot need no check of the body */
    uint64_t sum;                   /* over key, head, and all above */
};

_Static_assert(sizeof(struct cache_mark) == 88, "the mark has no holes");

/* Opens a file below the directory, without following links. A descriptor or -errno. */
MUST_CHECK int cache_open_beneath(int directory, const char *name, int flags, mode_t mode);
/* Reads the kernel's boot id; zeros if there is none. */
void cache_boot_id(unsigned char into[16]);
/* Writes all bytes at the offset. 0 or -errno. */
MUST_CHECK int cache_write_all(int fd, struct str bytes, uint64_t at);
/* Reads exactly `length` bytes. 0; -EBADMSG: the file is shorter; or -errno. */
MUST_CHECK int cache_read_exactly(int fd, char *into, size_t length, uint64_t at);

/* The checksum over key, head, and the mark before its `sum`. */
uint64_t cache_mark_sum(const struct cache_mark *mark, struct str key, struct str head);
/*
 * Writes key, head and mark by one call, so that they are usually contiguous on disk. Sets the rest of the mark. 0 or
 * -errno.
 */
MUST_CHECK int cache_mark_write(int fd, struct cache_mark *mark, struct str key, struct str head, uint64_t at);
/*
 * Reads the mark that ends at `size`, and checks that its lengths fit into the bytes before it. 0; -EBADMSG: invalid;
 * or -errno.
 */
MUST_CHECK int cache_mark_read(int fd, const struct cache_id *id, uint64_t size, struct cache_mark *out);

#endif
