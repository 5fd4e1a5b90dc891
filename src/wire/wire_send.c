/*
 * The output queue and its pump: one send at a time, blocks first, then the span. Records are assembled in place and
 * sealed when full or on flush, so that a head and its small body are one record and one send.
 */
#include "wire/wire_queue.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>
#include <sys/socket.h>

enum {
    OPENSSL_OVERHEAD = 320,   /* SSL3_RT_MAX_ENCRYPTED_OVERHEAD; an upper bound for the room of a block */
    MOST_BLOCKS = 8,          /* including TLS messages to a peer that reads nothing */
    RECORD_WORTHWHILE = 1024, /* the end of a block is not filled by a smaller record */
};

size_t wire_record_head(const struct wire *wire)
{
    return wire->sealing == SEALING_USER ? record_head(&wire->key) : 0;
}

static size_t sealing_overhead(const struct wire *wire)
{
    switch ((enum wire_sealing)wire->sealing) {
    case SEALING_USER:
        return record_overhead(&wire->key);
    case SEALING_OPENSSL:
    case SEALING_HANDSHAKE:
        return OPENSSL_OVERHEAD;
    case SEALING_NONE:
    case SEALING_KERNEL:
        break;
    }
    return 0;
}

static size_t full_record(const struct wire *wire)
{
    size_t size = wire->settings->record_size;

    if (size == 0 || size > LIMIT_RECORD_PLAINTEXT)
        size = LIMIT_RECORD_PLAINTEXT;
    return size;
}

/* The size of the record that begins `ahead` plaintext bytes after the sealed ones. */
static size_t record_size_at(const struct wire *wire, size_t ahead)
{
    size_t size = full_record(wire);

    if (!wire->settings->small_records || wire->sealing != SEALING_USER || size <= SMALL_RECORD_PLAINTEXT)
        return size;
    return wire->stretch + ahead < SMALL_RECORD_BYTES ? SMALL_RECORD_PLAINTEXT : size;
}

static size_t record_size(const struct wire *wire)
{
    return record_size_at(wire, 0);
}

/* Not while a record is open: its size is promised. */
static void detect_idle(struct wire *wire)
{
    if (wire->reading || (wire->last && wire->last->open))
        return;
    if (u64_sub_sat(wire->shared->loop->clock.monotonic_ms, wire->sealed_ms) >= SMALL_RECORD_REST_MS)
        wire->stretch = 0;
}

/* The capacity for block_size bytes of plaintext in records. */
size_t output_block_capacity(const struct wire *wire)
{
    size_t size = full_record(wire);
    size_t records = (wire->settings->block_size + size - 1) / size;

    return (records ? records : 1) * (size + RECORD_OVERHEAD);
}

/* Plaintext bytes that fit into `space` as records; a lower bound where small records precede full ones. */
static size_t plaintext_in(const struct wire *wire, size_t space)
{
    size_t added = sealing_overhead(wire);
    size_t size = record_size(wire);
    size_t records, room;

    if (added == 0)
        return space;
    records = (uint32_t)space / (uint32_t)(size + added);
    room = records * size;
    space -= records * (size + added);
    return space > added + RECORD_WORTHWHILE ? room + space - added : room;
}

static size_t block_room(const struct wire *wire, const struct output_block *block)
{
    size_t room = plaintext_in(wire, size_sub_sat(block->capacity, block->filled));

    return block->type || room < block->open ? 0 : room - block->open;
}

/* Control records go to the kernel without a completion, hence without `room`: they do not count. */
static unsigned count_blocks(const struct wire *wire)
{
    unsigned count = 0;

    for (const struct output_block *block = wire->first; block; block = block->next)
        count += block->type == 0;
    return count;
}

bool wire_may_add_block(const struct wire *wire)
{
    unsigned count = count_blocks(wire);

    return count == 0 || (count == 1 && wire->shared->output_bytes < wire->shared->output_max);
}

size_t wire_room(const struct wire *wire)
{
    size_t room = 0;

    if (wire->state != WIRE_OPEN || chunk_length(&wire->span) > 0 || wire->reading)
        return 0;
    if (wire->last)
        room = block_room(wire, wire->last);
    if (room == 0 && wire_may_add_block(wire))
        room = plaintext_in(wire, output_block_capacity(wire));
    return room;
}

unsigned wire_accepts(const struct wire *wire)
{
    return CHUNK_BYTES | CHUNK_FILE | (wire_may_splice(wire) ? CHUNK_PIPE : 0);
}

bool wire_drained(const struct wire *wire)
{
    return !wire->first && !wire->reading && chunk_length(&wire->span) == 0 && op_idle(&wire->send);
}

void output_block_append(struct wire *wire, struct output_block *block)
{
    block->next = NULL;
    if (wire->last)
        wire->last->next = block;
    else
        wire->first = block;
    wire->last = block;
}

struct output_block *wire_writable(struct wire *wire, bool bounded)
{
    struct output_block *block = wire->last;

    /* An open record stays current, even one that changed settings have made full. */
    if (block && (block->open > 0 || wire_record_room(wire, block) > 0))
        return block;
    if (bounded ? !wire_may_add_block(wire) : count_blocks(wire) >= MOST_BLOCKS)
        return NULL;
    block = output_block_get(wire->shared, output_block_capacity(wire));
    if (block)
        output_block_append(wire, block);
    return block;
}

size_t wire_record_room(const struct wire *wire, const struct output_block *block)
{
    size_t added = sealing_overhead(wire), size = record_size(wire), room;

    /* Usually the whole record fits, and the rest needs no counting. */
    if (added > 0 && block->type == 0 && block->open < size &&
        size_sub_sat(block->capacity, block->filled) >= size + added)
        return size - block->open;
    room = block_room(wire, block);
    return added > 0 && size_sub_sat(size, block->open) < room ? size_sub_sat(size, block->open) : room;
}

char *wire_record_end(const struct wire *wire, struct output_block *block)
{
    return block->bytes + block->filled + wire_record_head(wire) + block->open;
}

int wire_record_places(const struct wire *wire, struct output_block *block, uint64_t length, struct iovec *places)
{
    size_t room = block_room(wire, block), want = wire_record_room(wire, block);
    int most = wire->sealing == SEALING_USER ? RECORDS_AT_ONCE : 1; /* other sealers do not seal in place */
    char *at = wire_record_end(wire, block);
    size_t ahead = block->open;
    int count = 0;

    if (room > length)
        room = (size_t)length;
    while (room > 0 && count < most) {
        if (want > room)
            want = room;
        places[count++] = (struct iovec){at, want};
        at += want + sealing_overhead(wire);
        ahead += want;
        room -= want;
        want = record_size_at(wire, ahead);
    }
    return count;
}

/* OpenSSL's record layer appends the ciphertext behind `filled`, so its plaintext must be elsewhere. */
static int seal_by_openssl(struct wire *wire, struct output_block *block)
{
    struct output_block *copy = output_block_get(wire->shared, block->capacity);
    size_t length = block->open;
    ssize_t count;

    if (!copy)
        return -ENOMEM;
    memcpy(copy->bytes, block->bytes + block->filled, length);
    block->open = 0;
    count = tls_session_write(wire->tls, str_of(copy->bytes, length));
    output_block_release(wire->shared, copy);
    if (wire->state == WIRE_CLOSING)
        return -ECANCELED;
    wire->key.sequence++;
    return count < 0 ? (int)count : 0;
}

int wire_record_close(struct wire *wire)
{
    struct output_block *block = wire->last;
    size_t length = block ? block->open : 0;

    if (length == 0)
        return 0;
    switch ((enum wire_sealing)wire->sealing) {
    case SEALING_NONE:
    case SEALING_KERNEL:
        block->open = 0;
        block->filled += (uint32_t)length;
        return 0;
    case SEALING_USER:
        block->open = 0;
        return wire_seal(wire, block, RECORD_APPLICATION_DATA, length);
    case SEALING_OPENSSL:
        return seal_by_openssl(wire, block);
    case SEALING_HANDSHAKE:
        break;
    }
    return -EINVAL;
}

int wire_record_grow(struct wire *wire, struct output_block *block, size_t count)
{
    block->open += (uint32_t)count;
    return wire_record_room(wire, block) == 0 ? wire_record_close(wire) : 0;
}

static int send_bytes(struct wire *wire, struct str bytes)
{
    while (bytes.length > 0) {
        struct output_block *block = wire_writable(wire, false);
        size_t room, count;
        int rc = 0;

        if (!block)
            return -ENOMEM;
        room = wire_record_room(wire, block);
        count = bytes.length < room ? bytes.length : room;
        memcpy(wire_record_end(wire, block), bytes.data, count);
        block->open += (uint32_t)count;
        if (count == room)
            rc = wire_record_close(wire);
        if (rc < 0)
            return rc;
        bytes = str_skip(bytes, count);
    }
    return 0;
}

int wire_send(struct wire *wire, const struct chunk *chunk)
{
    if (wire->state != WIRE_OPEN)
        return -EPIPE;
    detect_idle(wire);
    switch (chunk->kind) {
    case CHUNK_BYTES:
        wire_account(wire, wire_path_of_bytes(wire), REASON_SMALL, chunk->bytes.length, chunk->bytes.length);
        wire_count(wire, wire_path_of_bytes(wire), chunk->bytes.length);
        wire->transfer.made += chunk->bytes.length;
        return send_bytes(wire, chunk->bytes);
    case CHUNK_FILE:
    case CHUNK_PIPE:
        if (chunk_length(chunk) == 0)
            return 0;
        wire->span = *chunk;
        wire_choose_sealing(wire);
        if (!wire->promoting && !wire_span_is_direct(wire))
            wire_span_fill(wire);
        return wire->state == WIRE_CLOSING ? -EPIPE : 0;
    }
    return -EOPNOTSUPP;
}

void wire_flush(struct wire *wire)
{
    bool goes_on = chunk_length(&wire->span) > 0 && !wire_span_is_direct(wire); /* the file continues the record */

    if (wire->state == WIRE_CLOSING)
        return;
    if (!wire->promoting && !goes_on && wire_record_close(wire) < 0)
        wire_fail(wire, WIRE_CLOSE_ABORT);
    else if (!wire->delivering) /* the receiver may produce more output: one send for all */
        wire_push(wire);
}

void wire_continue(struct wire *wire, bool had_room)
{
    wire_check_key_limit(wire);
    wire_push(wire);
    if (chunk_length(&wire->span) > 0 && !wire->promoting && !wire_span_is_direct(wire))
        wire_span_fill(wire);
    wire_push(wire);
    if (wire->state == WIRE_DRAINING && chunk_length(&wire->span) == 0)
        wire_flush(wire); /* the span was the last part, and the owner will not close the record */
    if (!had_room && wire_room(wire) > 0)
        wire->events->room(wire);
    if (wire->events->drained && wire->state != WIRE_CLOSING && wire_drained(wire))
        wire->events->drained(wire);
}

static void drop_sent_blocks(struct wire *wire)
{
    struct output_block *block = wire->first;

    while (block && block->from == block->filled && block->open == 0) {
        wire->first = block->next;
        output_block_release(wire->shared, block);
        block = wire->first;
    }
    if (!block)
        wire->last = NULL;
}

/* Removes what was sent from the queue. */
static void remove_sent(struct wire *wire)
{
    const struct iovec *part = wire->first->parts;

    for (struct output_block *block = wire->first; wire->leaving > 0; wire->leaving--) {
        wire->sent += part->iov_len;
        wire_count_key_use(wire, part->iov_len);
        block->from += (uint32_t)part->iov_len;
        block = block->next;
        part++;
    }
}

static void send_done(struct op *op, int result)
{
    struct wire *wire = container_of(op, struct wire, send);
    bool had_room;

    if (wire->state == WIRE_CLOSING) {
        wire_finish_close(wire);
        return;
    }
    if (result < 0) {
        wire_fail(wire, wire_close_reason_of(result));
        return;
    }
    had_room = !wire->was_full && wire_room(wire) > 0;
    if (wire->leaving > 0)
        remove_sent(wire);
    wire_continue(wire, had_room);
}

static bool is_ready(const struct output_block *block)
{
    return block && !block->type && block->filled > block->from;
}

static void send_blocks(struct wire *wire, struct output_block *first)
{
    struct output_block *block = first;
    bool more;

    do {
        first->parts[wire->leaving++] = (struct iovec){block->bytes + block->from, block->filled - block->from};
        block = block->next;
    } while (wire->leaving < 2 && first->open == 0 && is_ready(block));
    more = !block && !wire->promoting && wire_span_is_direct(wire);
    wire->send.done = send_done;
    loop_send(wire->shared->loop, &wire->send, wire->fd, first->parts, wire->leaving, more ? MSG_MORE : 0);
    /* Usually the send is complete by now: its block is reused while in the CPU cache. */
    wire->was_full = false;
    if (op_carried_out(&wire->send) && wire->send.result >= 0) {
        wire->was_full = wire_room(wire) == 0;
        remove_sent(wire);
        drop_sent_blocks(wire);
    }
}

/*
 * Everything is sent. Records in the kernel may be incomplete, and a FIN would truncate them: then the peer's end is
 * awaited. Once it came, close() follows with the same effect.
 */
static void shut_down_sending(struct wire *wire)
{
    if (wire->sealing != SEALING_KERNEL && !wire->peer_ended)
        (void)shutdown(wire->fd, SHUT_WR);
    wire_linger(wire);
}

/* close_notify follows all queued output, hence after a span. */
static void push_end(struct wire *wire)
{
    if (wire->tls && wire->end == WIRE_CLOSE_ORDERLY && !wire->notified) {
        wire->notified = true;
        tls_session_shutdown(wire->tls);
        wire_push(wire);
    } else if (wire_drained(wire)) {
        shut_down_sending(wire);
    }
}

/* Half-close: the sending direction ends. */
static void push_half(struct wire *wire)
{
    if (wire->tls && !wire->notified) {
        wire->notified = true;
        tls_session_shutdown(wire->tls);
        wire_push(wire);
    } else if (wire_drained(wire)) {
        wire->finishing = false;
        if (wire->sealing != SEALING_KERNEL)
            (void)shutdown(wire->fd, SHUT_WR);
    }
}

void wire_finish(struct wire *wire)
{
    if (wire->state != WIRE_OPEN)
        return;
    wire->finishing = true;
    wire_flush(wire);
}

/* Nothing is in flight: selects the next step. */
static void push_next(struct wire *wire)
{
    struct output_block *block;

    drop_sent_blocks(wire);
    block = wire->first;
    if (block && block->type)
        wire_push_control(wire);
    else if (is_ready(block))
        send_blocks(wire, block);
    else if (wire->promoting)
        wire_promote(wire);
    else if (wire_span_is_direct(wire))
        wire_span_push(wire);
}

void wire_push(struct wire *wire)
{
    if (wire->state >= WIRE_LINGERING)
        return;
    if (op_idle(&wire->send))
        push_next(wire);
    if (chunk_length(&wire->span) > 0 || wire->reading)
        return;
    if (wire->state == WIRE_DRAINING)
        push_end(wire);
    else if (wire->finishing && wire->state == WIRE_OPEN)
        push_half(wire);
}
