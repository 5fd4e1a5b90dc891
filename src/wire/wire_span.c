/*
 * Sends a span of a file or a pipe: by sendfile or splice if the kernel encrypts or the connection is plain, else it
 * is read into the open record and sealed in place. Uncached bytes are read asynchronously, one record at a time,
 * while earlier output is sent.
 */
#include "wire/wire_queue.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>

bool wire_span_is_direct(const struct wire *wire)
{
    return chunk_length(&wire->span) > 0 && wire->span_method == SPAN_DIRECT &&
           (wire->sealing == SEALING_NONE || wire->sealing == SEALING_KERNEL);
}

/*
 * Aborts the connection, because the rest of the response cannot be sent and the client must detect that it is
 * incomplete (rule 13).
 */
static void span_abort(struct wire *wire, int error)
{
    const char *what = wire->span.kind == CHUNK_PIPE ? "a pipe that is being sent could not be read"
                       : error                       ? "reading a file that is being sent failed"
                                                     : "a file was truncated while it was sent";

    wire_log(wire, LOG_ERROR, what, error);
    wire_fail(wire, WIRE_CLOSE_ABORT);
}

static size_t span_piece_length(const struct wire *wire, size_t room)
{
    return chunk_length(&wire->span) < room ? (size_t)chunk_length(&wire->span) : room;
}

/* Counted only when sent: the rest of an aborted span was not. */
static void span_sent(struct wire *wire, enum wire_path path, uint64_t bytes)
{
    chunk_advance(&wire->span, bytes);
    wire_count(wire, path, bytes);
    if (chunk_length(&wire->span) == 0)
        wire_release_span_pipe(wire);
}

/*
 * Records are not sealed ahead of the socket: a record sealed while an earlier one is queued leaves the CPU cache
 * before it is sent (measured: a fifth more time per byte), and the socket buffer keeps the connection busy.
 */
static bool may_fill(const struct wire *wire)
{
    return chunk_length(&wire->span) > 0 && !wire->reading && wire->state != WIRE_CLOSING &&
           op_idle(&wire->send);
}

/* Commits `count` bytes at their places and seals full records. */
static int commit_records(struct wire *wire, struct output_block *block, const struct iovec *places, size_t count)
{
    int rc = 0;

    for (; rc == 0 && count > 0; places++) {
        size_t length = count < places->iov_len ? count : places->iov_len;

        rc = wire_record_grow(wire, block, length);
        count -= length;
    }
    return rc;
}

/*
 * The bytes that are read without a helper thread. If the page cache lacks a file, these are the bytes that a helper
 * thread has read ahead: a read of others would start readahead on the loop's thread.
 */
static uint64_t readable_length(struct wire *wire)
{
    uint64_t until = wire_transfer_of(wire, &wire->span)->fetched_kib * 1024ull;
    uint64_t length = chunk_length(&wire->span), ahead;

    if (wire->span.kind != CHUNK_FILE || until == 0)
        return length;
    ahead = u64_sub_sat(until, (uint64_t)wire->span.file.at);
    return length < ahead ? length : ahead;
}

static ssize_t read_span(const struct wire *wire, const struct iovec *places, int count)
{
    ssize_t result;

    if (wire->span.kind == CHUNK_FILE)
        return count ? loop_read_cached(wire->span.file.fd, wire->span.file.at, places, count) : -EAGAIN;
    do {
        result = readv(wire->span.pipe.source->from, places, count);
    } while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : result;
}

/* True if the rest fits into one more block: both are sent by one call. */
static bool ends_in_another(const struct wire *wire)
{
    return wire->span.kind == CHUNK_FILE && chunk_length(&wire->span) <= wire->settings->block_size &&
           wire_may_add_block(wire);
}

enum wire_span_step wire_span_fill(struct wire *wire)
{
    while (may_fill(wire)) {
        struct output_block *block = wire_writable(wire, true);
        struct iovec places[RECORDS_AT_ONCE];
        ssize_t count;

        if (!block) {
            if (wire->first)
                return SPAN_BLOCKED;
            wire_fail(wire, WIRE_CLOSE_ABORT); /* out of memory, and no completion will call this again */
            return SPAN_WAITS;
        }
        count = read_span(wire, places, wire_record_places(wire, block, readable_length(wire), places));
        if (count == -EAGAIN && wire->span.kind == CHUNK_FILE)
            return SPAN_UNCACHED;
        if (count <= 0) {
            span_abort(wire, (int)count);
            return SPAN_WAITS;
        }
        span_sent(wire, wire_path_of_bytes(wire), (uint64_t)count);
        if (commit_records(wire, block, places, (size_t)count) < 0)
            wire_fail(wire, WIRE_CLOSE_ABORT);
        else if (chunk_length(&wire->span) > 0 && wire_record_room(wire, block) == 0 && !ends_in_another(wire))
            return SPAN_FULL;
    }
    return SPAN_WAITS;
}

/* The bytes to read ahead: of the span, or of the run of spans that it begins. */
static uint64_t ahead_length(const struct wire *wire)
{
    uint64_t length = chunk_length(&wire->span), run = wire->span.file.run;

    if (length < run)
        length = run;
    return length < LIMIT_READ_AHEAD ? length : LIMIT_READ_AHEAD;
}

void wire_span_read(struct wire *wire, op_done *done)
{
    struct output_block *block = output_block_get(wire->shared, output_block_capacity(wire));
    const uint64_t ahead = ahead_length(wire), until_kib = ((uint64_t)wire->span.file.at + ahead + 1023) / 1024;

    if (!block || wire_record_close(wire) < 0) {
        output_block_release(wire->shared, block);
        wire_fail(wire, WIRE_CLOSE_ABORT);
        return;
    }
    wire->reading = block;
    block->reader = wire;
    block->read = (struct op){.done = done};
    wire_transfer_of(wire, &wire->span)->fetched_kib = until_kib < UINT32_MAX ? (uint32_t)until_kib : UINT32_MAX;
    loop_read(wire->shared->loop, &block->read, wire->span.file.fd, wire->span.file.at, wire_record_end(wire, block),
              span_piece_length(wire, wire_record_room(wire, block)), ahead);
}

bool wire_span_read_done(struct wire *wire, int result)
{
    struct output_block *block = wire->reading;

    if (wire->state == WIRE_CLOSING) {
        wire_finish_close(wire);
        return false;
    }
    wire->reading = NULL;
    output_block_append(wire, block);
    if (result <= 0) {
        span_abort(wire, result);
        return false;
    }
    span_sent(wire, wire_path_of_bytes(wire), (uint64_t)result);
    if (wire_record_grow(wire, block, (size_t)result) == 0)
        return true;
    wire_fail(wire, WIRE_CLOSE_ABORT);
    return false;
}

void wire_span_push(struct wire *wire, op_done *done)
{
    struct loop *loop = wire->shared->loop;
    uint64_t allowed = wire_key_allows(wire);
    uint64_t length = chunk_length(&wire->span) < allowed ? chunk_length(&wire->span) : allowed;

    if (length == 0) {
        wire_log(wire, LOG_ERROR, "a response exceeds the usage limit of its key", 0);
        wire_fail(wire, WIRE_CLOSE_ABORT);
        return;
    }
    wire->send.done = done;
    if (wire->span.kind == CHUNK_PIPE)
        loop_splice(loop, &wire->send, wire->span.pipe.source->from, wire->fd, (size_t)length, wire->small_send_buffer);
    else
        loop_sendfile_part(loop, &wire->send, wire->fd, wire->span.file.fd, wire->span.file.at, length,
                           u64_sub_sat(wire->span.file.run, length), wire->small_send_buffer);
}

/* True if the source ended early. A pipe contains all requested bytes: only an empty result is an error. */
static bool is_incomplete(const struct wire *wire, int result)
{
    const struct op *op = &wire->send;

    return wire->span.kind == CHUNK_PIPE ? result == 0 : result >= 0 && op->file.progress != op->file.length;
}

bool wire_span_push_done(struct wire *wire, int result)
{
    bool broken = is_incomplete(wire, result);
    uint64_t sent = result > 0 ? (uint64_t)result : 0;

    if (wire->span.kind == CHUNK_FILE)
        sent = wire->send.file.progress;
    wire->sent += sent;
    wire_transfer_of(wire, &wire->span)->zero_copy += sent;
    span_sent(wire, wire_path_of_span(wire), sent);
    if (wire->state == WIRE_CLOSING) {
        wire_finish_close(wire);
        return false;
    }
    wire_count_key_use(wire, sent);
    if (result < 0 && result != -ECANCELED) /* cancelled in favour of a record of OpenSSL */
        wire_fail(wire, wire_close_reason_of(result));
    else if (broken)
        span_abort(wire, 0);
    else
        return true;
    return false;
}
