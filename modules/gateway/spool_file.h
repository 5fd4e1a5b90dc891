/*
 * The file of a spool, as helper threads see it: made when first written to, without a name from then on, and written
 * and read for the spool, which touches none of it meanwhile. Private to the spool.
 */
#ifndef MODULES_GATEWAY_SPOOL_FILE_H
#define MODULES_GATEWAY_SPOOL_FILE_H

#include <stdint.h>
#include <sys/uio.h>

#define SPOOL_FILE_PARTS 64

struct spool_file {
    char *folder;
    int fd;                         /* -1: not made */
    uint64_t end;                   /* bytes written: where the next go */
    struct iovec parts[SPOOL_FILE_PARTS]; /* to be written */
    unsigned count;
    int fetch_fd;                   /* what is to be read */
    uint64_t fetch_at;
    struct iovec into;
};

/* Works for helper threads; `file` is a struct spool_file. */

/* Makes the file where there is none, and writes the parts: bytes, fewer only where an error came after them, or -errno. */
int spool_file_write(void *file);
/* Reads into `into`: bytes, 0 at the end, or -errno. */
int spool_file_fetch(void *file);
/* Closes it: fd is -1. 0. */
int spool_file_close(void *file);
/* As spool_file_fetch, but never waits for a disk: -EAGAIN. */
int spool_file_peek(const struct spool_file *file);

#endif
