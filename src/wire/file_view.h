/*
 * A mapped part of a cached file, from which the kernel sends. The process never reads the memory, since a page of a
 * file that was truncated meanwhile is a fault: for send(2) that is EFAULT. Private to wire/.
 */
#ifndef WIRE_FILE_VIEW_H
#define WIRE_FILE_VIEW_H

#include "wire/wire.h"

struct file_view {
    unsigned references;
    int fd;                         /* the file; not owned, open until the end of its run */
    int64_t at;                     /* file offset of `bytes` */
    size_t length;
    uint64_t checked_ms;            /* time of the last probe of the page cache */
    const char *bytes;              /* inside the mapping */
    void *mapping;
    size_t mapping_length;
};

/*
 * Returns the bytes of the file at [at, at + length) in *view. If *view does not have them, maps a part of the `run`
 * bytes that begin at `at`, and replaces *view. NULL: they are not in the page cache, or cannot be mapped; *view may
 * then be NULL.
 */
const char *file_view_cover(struct wire_shared *shared, struct file_view **view, int fd, int64_t at, size_t length,
                            uint64_t run);
/* True if *view has these bytes, whether they are still in the page cache or not. `view` may be NULL. */
bool file_view_has(const struct file_view *view, int fd, int64_t at, size_t length);
/* Releases a reference, and sets *view to NULL. Accepts NULL in *view. */
void file_view_release(struct wire_shared *shared, struct file_view **view);

#endif
