/*
 * The consumer's side of a spool: the bytes of the file first, then the blocks in memory.
 */
#include "spool_private.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>
#include <stdlib.h>

/* The window begins below file.end, so that an empty read is an error. */
static void window_filled(struct spool *spool, int result)
{
    spool->ready = str_of(spool->window, result > 0 ? (size_t)result : 0);
    spool->read_error = result > 0 ? 0 : result < 0 ? result : -EIO;
}

static void read_done(struct op *op, int result)
{
    struct spool *spool = container_of(op, struct spool, fetch);

    spool->fetching = false;
    if (spool->file.fetch_at == spool->file_at) /* otherwise it was rewound meanwhile */
        window_filled(spool, result);
    spool_notify_progress(spool);
}

/* Cached pages are read at once, others by a helper thread. */
static void read_window(struct spool *spool)
{
    struct spool_file *file = &spool->file;
    uint64_t rest = u64_sub_sat(file->end, spool->file_at);
    int result;

    if (!spool->window)
        spool->window = malloc(LIMIT_FILE_WINDOW);
    if (!spool->window) {
        spool->read_error = -ENOMEM;
        return;
    }
    file->fetch_fd = file->fd;
    file->fetch_at = spool->file_at;
    file->into = (struct iovec){spool->window, rest < LIMIT_FILE_WINDOW ? (size_t)rest : LIMIT_FILE_WINDOW};
    result = spool_file_peek(file);
    if (result != -EAGAIN) {
        window_filled(spool, result);
        return;
    }
    spool->fetching = true;
    spool->fetch.done = read_done;
    worker_offload(spool->worker, &spool->fetch, spool_file_fetch, file);
}

static int next_read(struct spool *spool, size_t room, struct chunk *out)
{
    if (!spool->fetching && str_empty(spool->ready) && !spool->read_error)
        read_window(spool);
    if (spool->fetching)
        return -EAGAIN;
    if (str_empty(spool->ready))
        return spool->read_error;
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = str_slice(spool->ready, 0, room)};
    spool->ready = str_skip(spool->ready, out->bytes.length);
    spool->file_at += out->bytes.length;
    return 1;
}

static int next_from_file(struct spool *spool, unsigned accept, size_t room, struct chunk *out)
{
    if (!(accept & CHUNK_FILE) || spool->fetching || !str_empty(spool->ready))
        return next_read(spool, room, out);
    *out = (struct chunk){.kind = CHUNK_FILE};
    out->file.fd = spool->file.fd;
    out->file.at = (int64_t)spool->file_at;
    out->file.length = u64_sub_sat(spool->file.end, spool->file_at);
    spool->file_at = spool->file.end;
    return 1;
}

/* The rest of the current block, with `keeps`. */
static int next_spooled(struct spool *spool, size_t room, struct chunk *out)
{
    if (!spool->reading) {
        spool->reading = spool->first;
        spool->reading_at = spool->first ? spool->first->at : 0;
    }
    while (spool->reading && spool->reading_at == spool->reading->end && spool->reading->next) {
        spool->reading = spool->reading->next;
        spool->reading_at = spool->reading->at;
    }
    if (!spool->reading || spool->reading_at == spool->reading->end)
        return 0;
    *out = (struct chunk){.kind = CHUNK_BYTES};
    out->bytes = str_slice(str_of(spool->reading->bytes + spool->reading_at, spool->reading->end - spool->reading_at),
                           0, room);
    spool->reading_at += out->bytes.length;
    return 1;
}

int spool_next(struct spool *spool, unsigned accept, size_t room, struct chunk *out)
{
    struct block *block;

    spool_release_detached(spool);
    if (spool->file_at < spool->file.end)
        return next_from_file(spool, accept, room, out);
    if (spool->writing)
        return -EAGAIN;
    if (spool->settings.keeps)
        return next_spooled(spool, room, out);
    block = spool->first;
    if (!block)
        return 0;
    spool->current = block;
    *out = (struct chunk){.kind = CHUNK_BYTES,
                          .bytes = str_slice(str_of(block->bytes + block->at, block->end - block->at), 0, room)};
    spool_advance(spool, out->bytes.length);
    return 1;
}

void spool_rewind(struct spool *spool)
{
    spool->reading = NULL;
    spool->file_at = 0;
    spool->ready = STR("");
    spool->read_error = 0;
}
