/*
 * The file of a spool: created and unlinked by the first write, then written and read. The spool does not change these
 * fields while a helper thread uses them. Private to the spool.
 */
#ifndef MODULES_GATEWAY_SPOOL_FILE_H
#define MODULES_GATEWAY_SPOOL_FILE_H

#include <stdint.h>
#include <sys/uio.h>

#define SPOOL_FILE_PARTS 64

struct spool_file {
    char *directory;
    int fd;                                 /* -1: not created */
    uint64_t end;                           /* bytes written: offset of the next write */
    struct iovec parts[SPOOL_FILE_PARTS];   /* to be written */
    unsigned count;
    int fetch_fd;                           /* the next read: descriptor, offset and buffer */
    uint64_t fetch_at;
    struct iovec into;
};

/* Functions for helper threads; `file` is a struct spool_file. */

/* Creates the file if necessary, and writes the parts. Returns the bytes written, fewer after an error, or -errno. */
int spool_file_write(void *file);
/* Reads into `into`. Returns the bytes read, 0 at the end, or -errno. */
int spool_file_fetch(void *file);
/* Closes the file, and sets fd to -1. 0. */
int spool_file_close(void *file);
/* As spool_file_fetch, but does not wait for the disk: -EAGAIN. */
int spool_file_peek(const struct spool_file *file);

#endif
