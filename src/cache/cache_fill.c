/*
 * Stores a response while it is sent: bytes are collected in one buffer while a helper thread writes another. A
 * response that fits into one buffer costs one task: create, write, complete, rename.
 */
#include "cache/cache_store_private.h"

#include "base/limits.h"

#include <errno.h>
#include <stdlib.h>

struct cache_fill *cache_fill_begin(struct cache_store *store, struct str key, const struct cache_origin *origin,
                                    uint64_t fill_lock)
{
    struct cache_fill *fill = calloc(1, sizeof(*fill));
    char *copy = malloc(key.length + 1);

    if (!fill || !copy) {
        free(fill);
        free(copy);
        return NULL;
    }
    memcpy(copy, key.data, key.length);
    fill->key = str_of(copy, key.length);
    fill->store = store;
    fill->fill_lock = fill_lock;
    fill->origin = *origin;
    fill->writer = (struct cache_writer){.directory = &store->conf->directory, .fd = -1};
    cache_hash_key(key, &fill->writer.id.hash);
    fill->key_hash = fill->writer.id.hash;
    fill->writer.id.sequence = cache_zone_sequence(store->conf->zone);
    return fill;
}

static void fill_free(struct cache_fill *fill)
{
    if (fill->ended)
        fill->ended(fill);
    cache_store_fill_unlock(fill->store, &fill->origin.hash, fill->fill_lock);
    cache_entry_unref(fill->before.entry);
    cache_entry_unref(fill->after.entry);
    buffer_finish(&fill->filling);
    buffer_finish(&fill->writing);
    buffer_finish(&fill->head);
    free((char *)(uintptr_t)fill->key.data);
    free(fill);
}

/* Runs on a helper thread: writes the buffer, and at the end completes the file. */
static int write_work(void *argument)
{
    struct cache_fill *fill = argument;
    int error = fill->writer.fd < 0 ? cache_file_create(&fill->writer) : 0;

    if (error == 0)
        error = cache_file_write(&fill->writer, buffer_str(&fill->writing));
    if (error == 0 && fill->last)
        error = cache_file_complete(&fill->writer, &fill->key_hash, fill->key, buffer_str(&fill->head), &fill->size);
    if (error < 0)
        cache_file_discard(&fill->writer);
    return error;
}

/* Copies at most LIMIT_CACHE_COPY bytes of a splice, which bounds the duration of a task. */
static int copy_piece(struct cache_fill *fill, struct cache_splice *splice)
{
    uint64_t length = splice->left < LIMIT_CACHE_COPY ? splice->left : LIMIT_CACHE_COPY;
    struct str content = splice->entry->content;
    int error = fill->writer.fd < 0 ? cache_file_create(&fill->writer) : 0;

    if (error == 0 && content.data)
        error = cache_file_write(&fill->writer, str_slice(content, (size_t)splice->at, (size_t)(splice->at + length)));
    else if (error == 0)
        error = cache_file_copy(&fill->writer, splice->entry->fd, splice->at, length);
    splice->at += length;
    splice->left -= length;
    if (error < 0)
        cache_file_discard(&fill->writer);
    return error;
}

static int copy_before(void *argument)
{
    struct cache_fill *fill = argument;

    return copy_piece(fill, &fill->before);
}

static int copy_after(void *argument)
{
    struct cache_fill *fill = argument;

    return copy_piece(fill, &fill->after);
}

static int discard_work(void *argument)
{
    struct cache_fill *fill = argument;

    cache_file_discard(&fill->writer);
    return 0;
}

/* Logs a failure to store, once per second. */
static void log_failure(struct cache_store *store, int error)
{
    if (error == -ENOSPC || error == -EDQUOT)
        cache_manager_shrink(store->cache_manager);
    if (error == -ECANCELED || !log_limit_allows(&store->failures, store->loop->clock.monotonic_ms))
        return;
    log_write(store->log, LOG_CRIT, "cache \"" STR_FMT "\": responses are sent without being stored (%d: %s)",
              STR_ARG(store->conf->name), -error, strerror(-error));
}

static void publish_fill(struct cache_fill *fill)
{
    struct cache_store *store = fill->store;
    struct cache_victims victims = {0};

    if (cache_zone_publish(store->conf->zone, &fill->writer.id, fill->size, &fill->origin, cache_now_s(store),
                           &victims) < 0)
        cache_victims_add(&victims, &fill->writer.id);
    cache_store_delete(store, &victims);
}

static void continue_writing(struct cache_fill *fill);

static void discard_done(struct op *op, int result)
{
    struct cache_fill *fill = container_of(op, struct cache_fill, op);

    if (result < 0) /* no helper thread ran discard_work */
        cache_file_discard(&fill->writer);
    fill_free(fill);
}

/* Frees the fill: its file is complete or does not exist, or is incomplete and is deleted first. */
static void close_fill(struct cache_fill *fill)
{
    if (fill->writer.fd < 0) {
        fill_free(fill);
        return;
    }
    fill->op.done = discard_done;
    loop_offload(fill->store->loop, &fill->op, discard_work, fill);
}

static void write_done(struct op *op, int result)
{
    struct cache_fill *fill = container_of(op, struct cache_fill, op);
    bool was_last = fill->last;

    fill->in_flight = false;
    fill->writing.length = 0;
    if (result < 0) {
        fill->error = result;
        log_failure(fill->store, result);
    } else if (was_last) {
        publish_fill(fill);
    }
    if (fill->ending && (was_last || fill->error)) {
        close_fill(fill);
        return;
    }
    if (!fill->error)
        continue_writing(fill);
    if (fill->must_wait && fill->writable) {
        fill->must_wait = false;
        fill->writable(fill->owner); /* may end the fill */
    }
}

static void offload_work(struct cache_fill *fill, int (*work)(void *argument))
{
    fill->in_flight = true;
    fill->op.done = write_done;
    loop_offload(fill->store->loop, &fill->op, work, fill);
}

/* Starts the next task: the prepended copy, a write of LIMIT_CACHE_WRITE bytes or the rest, or the appended copy. */
static void continue_writing(struct cache_fill *fill)
{
    struct buffer gathered = fill->filling;

    if (fill->in_flight)
        return;
    if (fill->before.left > 0) {
        offload_work(fill, copy_before);
    } else if (fill->ending && gathered.length == 0 && fill->after.left > 0) {
        offload_work(fill, copy_after);
    } else if (gathered.length >= LIMIT_CACHE_WRITE || fill->ending) {
        fill->filling = fill->writing;
        fill->writing = gathered;
        fill->last = fill->ending && fill->after.left == 0;
        offload_work(fill, write_work);
    }
}

void cache_fill_prepend(struct cache_fill *fill, struct cache_entry *entry, uint64_t at, uint64_t length)
{
    fill->before = (struct cache_splice){cache_entry_ref(entry), at, length};
    continue_writing(fill);
}

void cache_fill_append(struct cache_fill *fill, struct cache_entry *entry, uint64_t at, uint64_t length)
{
    fill->after = (struct cache_splice){cache_entry_ref(entry), at, length};
}

void cache_fill_add(struct cache_fill *fill, struct str bytes)
{
    if (fill->error)
        return;
    if (buffer_append(&fill->filling, bytes) < 0)
        fill->error = -ENOMEM;
    else
        continue_writing(fill);
}

bool cache_fill_must_wait(struct cache_fill *fill)
{
    fill->must_wait = !fill->error && fill->in_flight && fill->filling.length >= LIMIT_CACHE_QUEUED;
    return fill->must_wait;
}

static void fill_finish(struct cache_fill *fill)
{
    fill->writable = NULL;
    fill->ending = true;
    if (fill->in_flight)
        return;
    if (fill->error)
        close_fill(fill);
    else
        continue_writing(fill);
}

void cache_fill_end(struct cache_fill *fill, struct str head)
{
    if (!fill->error)
        fill->error = buffer_append(&fill->head, head);
    fill_finish(fill);
}

void cache_fill_end_as(struct cache_fill *fill, struct str key, struct str head)
{
    char *copy = malloc(key.length + 1);

    if (!copy) {
        cache_fill_discard(fill);
        return;
    }
    memcpy(copy, key.data, key.length);
    free((char *)(uintptr_t)fill->key.data);
    fill->key = str_of(copy, key.length);
    cache_hash_key(key, &fill->key_hash);
    cache_fill_end(fill, head);
}

void cache_fill_discard(struct cache_fill *fill)
{
    if (!fill)
        return;
    if (!fill->error)
        fill->error = -ECANCELED;
    fill_finish(fill);
}
