/*
 * The part in memory is a list of blocks in order. The first blocks are written to the file, so that the file always
 * has the earlier bytes. A block is not consumed while it is written. The file only grows, because pages that sendfile
 * has passed to the network must not change.
 */
#include "spool_private.h"

#include "base/saturate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

struct spool *spool_create(struct worker *worker, const struct spool_settings *settings,
                           const struct spool_events *events, void *owner)
{
    struct spool *spool = calloc(1, sizeof(*spool));

    if (!spool)
        return NULL;
    spool->worker = worker;
    spool->settings = *settings;
    spool->events = events;
    spool->owner = owner;
    spool->file.fd = -1;
    if (settings->file_max > 0) {
        spool->file.directory = strndup(settings->directory.data, settings->directory.length);
        if (!spool->file.directory) {
            free(spool);
            return NULL;
        }
    }
    return spool;
}

static void drop_block(struct spool *spool, struct block *block)
{
    if (block == spool->current)
        spool->detached = block;
    else
        free(block);
}

void spool_advance(struct spool *spool, uint64_t count)
{
    spool->memory = u64_sub_sat(spool->memory, count);
    while (count > 0) {
        struct block *block = spool->first;
        size_t here = block->end - block->at;

        if (count < here) {
            block->at += count;
            return;
        }
        count -= here;
        block->at = block->end;
        spool->first = block->next;
        if (!spool->first)
            spool->last = NULL;
        drop_block(spool, block);
    }
}

void spool_release_detached(struct spool *spool)
{
    spool->current = NULL;
    free(spool->detached);
    spool->detached = NULL;
}

static struct block *add_block(struct spool *spool)
{
    struct block *block = malloc(sizeof(*block) + spool->settings.block);

    if (!block)
        return NULL;
    block->next = NULL;
    block->at = block->end = 0;
    if (spool->last)
        spool->last->next = block;
    else
        spool->first = block;
    spool->last = block;
    return block;
}

static void write_blocks(struct spool *spool);

int spool_append(struct spool *spool, struct str bytes)
{
    while (bytes.length > 0) {
        struct block *block = spool->last;
        size_t count;

        if (!block || block->end == spool->settings.block)
            block = add_block(spool);
        if (!block)
            return -ENOMEM;
        count = size_sub_sat(spool->settings.block, block->end);
        if (count > bytes.length)
            count = bytes.length;
        memcpy(block->bytes + block->end, bytes.data, count);
        block->end += count;
        spool->memory += count;
        spool->length += count;
        bytes = str_skip(bytes, count);
    }
    write_blocks(spool);
    return 0;
}

bool spool_full(const struct spool *spool)
{
    return spool->memory >= spool->settings.memory;
}

uint64_t spool_length(const struct spool *spool)
{
    return spool->length;
}

/* Blocks that are being written are still in memory, and are copied. */
int spool_copy(const struct spool *spool, const struct spool_events *events, void *owner, struct spool **out_copy)
{
    const struct spool_settings settings = {
        .memory = UINT64_MAX, .block = spool->memory ? spool->memory : 1, .keeps = true};
    struct spool *copy = spool_create(spool->worker, &settings, events, owner);
    int error = copy ? 0 : -ENOMEM;

    if (copy && spool->file.end > 0) {
        copy->file.fd = fcntl(spool->file.fd, F_DUPFD_CLOEXEC, 0);
        copy->file.end = copy->length = spool->file.end;
        error = copy->file.fd < 0 ? -errno : 0;
    }
    for (const struct block *block = spool->first; block && error == 0; block = block->next)
        error = spool_append(copy, str_of(block->bytes + block->at, block->end - block->at));
    if (error < 0)
        spool_close(copy);
    else
        *out_copy = copy;
    return error;
}

static bool may_write(const struct spool *spool)
{
    return !spool->failed && spool->file.end < spool->settings.file_max;
}

bool spool_streams(struct spool *spool)
{
    if (!spool_full(spool) || spool->writing || may_write(spool))
        return false;
    spool->settings.keeps = false;
    return true;
}

static void file_closed(struct op *op, int result);

/* Frees a closed spool once no operation is pending and a helper thread has closed the file; close(2) may block. */
static void spool_free_when_idle(struct spool *spool)
{
    if (spool->events || !op_idle(&spool->write) || !op_idle(&spool->fetch) || !op_idle(&spool->wake))
        return;
    spool_advance(spool, spool->memory);
    if (spool->file.fd >= 0) {
        spool->write.done = file_closed;
        worker_offload(spool->worker, &spool->write, spool_file_close, &spool->file);
        return;
    }
    free(spool->window);
    free(spool->file.directory);
    free(spool);
}

static void file_closed(struct op *op, int result)
{
    struct spool *spool = container_of(op, struct spool, write);

    if (spool->file.fd >= 0) /* the task was not started */
        (void)spool_file_close(&spool->file);
    spool_free_when_idle(spool);
}

void spool_notify_progress(struct spool *spool)
{
    if (spool->events)
        spool->events->progress(spool->owner);
    else
        spool_free_when_idle(spool);
}

static void spool_fail(struct spool *spool, int error)
{
    spool->failed = error;
    if (spool->events)
        spool->events->failed(spool->owner,
                              spool->file.fd < 0 ? "creating a temporary file" : "writing a temporary file", error);
}

static void write_done(struct op *op, int result)
{
    struct spool *spool = container_of(op, struct spool, write);

    spool->writing = false;
    if (spool->events && result < 0) {
        spool_fail(spool, result);
    } else if (spool->events) {
        spool_advance(spool, (uint64_t)result);
        spool->file.end += (uint64_t)result;
        write_blocks(spool);
    }
    spool_notify_progress(spool);
}

/* Starts to write the first blocks, at most SPOOL_FILE_PARTS. */
static void write_blocks(struct spool *spool)
{
    uint64_t room = u64_sub_sat(spool->settings.file_max, spool->file.end);
    struct spool_file *file = &spool->file;

    if (!spool_full(spool) || spool->writing || !may_write(spool))
        return;
    file->count = 0;
    for (struct block *block = spool->first; block && file->count < SPOOL_FILE_PARTS && room > 0;
         block = block->next) {
        size_t here = block->end - block->at;

        if (here > room)
            here = (size_t)room;
        file->parts[file->count++] = (struct iovec){block->bytes + block->at, here};
        room -= here;
    }
    spool->writing = true;
    spool->write.done = write_done;
    worker_offload(spool->worker, &spool->write, spool_file_write, file);
}

static void wake_done(struct op *op, int result)
{
    spool_notify_progress(container_of(op, struct spool, wake));
}

void spool_wake(struct spool *spool)
{
    spool->wake.done = wake_done;
    if (op_idle(&spool->wake))
        worker_timer(spool->worker, &spool->wake, 0);
}

void spool_close(struct spool *spool)
{
    if (!spool)
        return;
    spool->events = NULL;
    spool_release_detached(spool);
    spool_free_when_idle(spool);
}
