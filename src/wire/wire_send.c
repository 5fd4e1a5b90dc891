/*
 * Adds chunks of the owner to the queue: bytes are copied into the open record, a span is read into it or waits for
 * the blocks before it. wire_push.c sends the queue.
 */
#include "wire/wire_queue.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>

unsigned wire_accepts(const struct wire *wire)
{
    return CHUNK_BYTES | CHUNK_FILE | (wire_may_splice(wire) ? CHUNK_PIPE : 0);
}

/* No effect while a record is open: wire_room has announced its size. */
static void detect_idle(struct wire *wire)
{
    if (wire->reading || (wire->last && wire->last->open))
        return;
    if (u64_sub_sat(wire->shared->loop->clock.monotonic_ms, wire->sealed_ms) >= SMALL_RECORD_REST_MS)
        wire->sent_since_idle = 0;
}

static int send_bytes(struct wire *wire, struct str bytes)
{
    while (bytes.length > 0) {
        struct output_block *block = wire_writable(wire, false);
        ssize_t count;

        if (!block)
            return -ENOMEM;
        count = wire_record_append(wire, block, bytes);
        if (count < 0)
            return (int)count;
        bytes = str_skip(bytes, (size_t)count);
    }
    return 0;
}

static int add_chunk(struct wire *wire, const struct chunk *chunk)
{
    struct transfer *transfer;

    switch (chunk->kind) {
    case CHUNK_BYTES:
        transfer = wire_transfer_of(wire, chunk);
        wire_account(transfer, wire_path_of_bytes(wire), REASON_SMALL, chunk->bytes.length, chunk->bytes.length);
        wire_count(wire, wire_path_of_bytes(wire), chunk->bytes.length);
        transfer->in_memory += chunk->bytes.length;
        return send_bytes(wire, chunk->bytes);
    case CHUNK_FILE:
    case CHUNK_PIPE:
        if (chunk_length(chunk) == 0)
            return 0;
        wire->span = *chunk;
        if (chunk->kind == CHUNK_PIPE)
            (void)pipe_hold(chunk->pipe.source);
        wire_choose_sealing(wire);
        if (wire->span_method == SPAN_MAPPED)
            return wire_span_gather(wire);
        if (!wire->promoting && !wire_span_is_direct(wire))
            wire_fill(wire);
        return wire->state == WIRE_CLOSING ? -EPIPE : 0;
    }
    return -EOPNOTSUPP;
}

int wire_send(struct wire *wire, const struct chunk *chunk)
{
    int error;

    if (wire->state != WIRE_OPEN)
        return -EPIPE;
    detect_idle(wire);
    error = add_chunk(wire, chunk);
    wire->turn_ended = chunk->ends_turn;
    if (wire->turn_ended && error == 0)
        wire_end_turn(wire);
    return error;
}

void wire_finish(struct wire *wire)
{
    if (wire->state != WIRE_OPEN)
        return;
    wire->finishing = true;
    wire_flush(wire);
}
