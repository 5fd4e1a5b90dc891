/*
 * Each read that waits for the disk is one operation of the loop. It is never cancelled: its memory outlives the body.
 */
#include "server/file_reader.h"

#include <errno.h>
#include <stdlib.h>

struct pending {
    struct op op;
    struct body_read *read;
};

static void read_ended(struct op *op, int result)
{
    struct pending *pending = container_of(op, struct pending, op);
    struct body_read *read = pending->read;

    free(pending);
    body_read_done(read, result);
}

static int read_file_range(struct body_reader *reader, struct body_read *read)
{
    struct iovec part = {.iov_base = read->into, .iov_len = read->length};
    ssize_t count = loop_read_cached(read->fd, read->at, &part, 1);
    struct pending *pending;

    if (count != -EAGAIN)
        return (int)count;
    pending = calloc(1, sizeof(*pending));
    if (!pending)
        return -ENOMEM;
    pending->op.done = read_ended;
    pending->read = read;
    loop_read(container_of(reader, struct file_reader, reader)->loop, &pending->op, read->fd, read->at,
              read->into, read->length, read->rest);
    return -EAGAIN;
}

void file_reader_init(struct file_reader *reader, struct loop *loop)
{
    *reader = (struct file_reader){.reader = {.read = read_file_range}, .loop = loop};
}
