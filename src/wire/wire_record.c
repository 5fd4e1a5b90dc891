/*
 * Assembles records in place in the last block of the queue, and seals them when full or on flush, so that a head and
 * its small body are one record and one send.
 */
#include "wire/wire_queue.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>

enum {
    OPENSSL_OVERHEAD = 320,   /* SSL3_RT_MAX_ENCRYPTED_OVERHEAD; an upper bound for the room of a block */
    MAX_BLOCKS = 8,           /* including TLS messages to a peer that reads nothing */
    RECORD_WORTHWHILE = 1024, /* the end of a block is not filled by a smaller record */
};

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
    return wire->sent_since_idle + ahead < SMALL_RECORD_BYTES ? SMALL_RECORD_PLAINTEXT : size;
}

static size_t record_size(const struct wire *wire)
{
    return record_size_at(wire, 0);
}

/* The same value for all states but one, so that most connections share blocks of the pool. */
static size_t capacity_overhead(const struct wire *wire)
{
    return wire->sealing == SEALING_OPENSSL ? OPENSSL_OVERHEAD : RECORD_OVERHEAD;
}

size_t output_block_capacity(const struct wire *wire)
{
    size_t size = full_record(wire);
    size_t records = (wire->settings->block_size + size - 1) / size;

    return (records ? records : 1) * (size + capacity_overhead(wire));
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

/* Control records go to the kernel without a completion, hence without `writable`: they do not count. */
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
    if (wire->turn_room == TURN_QUEUE_FULL)
        return 0;
    if (wire->last && !gather_has_room(wire->last->gather, wire_gather_max(wire)))
        return 0;
    if (wire->last)
        room = block_room(wire, wire->last);
    if (room == 0 && wire_may_add_block(wire))
        room = plaintext_in(wire, output_block_capacity(wire));
    return room;
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
    if (bounded ? !wire_may_add_block(wire) : count_blocks(wire) >= MAX_BLOCKS)
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

int wire_record_places(const struct wire *wire, struct output_block *block, uint64_t length, struct iovec *places)
{
    size_t room = block_room(wire, block), want = wire_record_room(wire, block);
    int max = wire->sealing == SEALING_USER ? RECORDS_AT_ONCE : 1; /* in other states nothing is sealed in place */
    char *at = wire_record_end(wire, block);
    size_t ahead = block->open;
    int count = 0;

    if (room > length)
        room = (size_t)length;
    while (room > 0 && count < max) {
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

/* Seals the parts, `length` bytes in all, after the last sealed record of the block. */
static int seal_parts(struct wire *wire, struct output_block *block, uint8_t type, const struct iovec *parts, int count,
                      size_t length)
{
    ssize_t sealed = record_seal(wire->shared->cipher_contexts, &wire->key, &wire->cipher_context, type, parts, count,
                                 block->bytes + block->filled);

    if (sealed < 0) {
        wire_log(wire, LOG_ERROR, "encrypting a TLS record failed", (int)sealed);
        return (int)sealed;
    }
    block->filled += (uint32_t)sealed;
    wire->sealed_ms = wire->shared->loop->clock.monotonic_ms;
    if (wire->sent_since_idle < SMALL_RECORD_BYTES)
        wire->sent_since_idle += (uint32_t)length;
    wire->shared->counters->records++;
    return 0;
}

int wire_seal(struct wire *wire, struct output_block *block, uint8_t type, size_t length)
{
    struct iovec part = {block->bytes + block->filled + record_head(&wire->key), length};

    return seal_parts(wire, block, type, &part, 1, length);
}

/* OpenSSL appends the ciphertext at `filled`, so the plaintext is copied to another buffer first. */
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

ssize_t wire_record_append(struct wire *wire, struct output_block *block, struct str bytes)
{
    size_t room = wire_record_room(wire, block), count = bytes.length < room ? bytes.length : room;
    char *end = wire_record_end(wire, block);
    struct iovec parts[] = {{end - block->open, block->open}, {(char *)(uintptr_t)bytes.data, count}};
    size_t whole = block->open + count;
    int rc = 0;

    if (count == room && wire->sealing == SEALING_USER) {
        int first = block->open > 0 ? 0 : 1;

        block->open = 0;
        rc = seal_parts(wire, block, RECORD_APPLICATION_DATA, parts + first, 2 - first, whole);
        return rc < 0 ? rc : (ssize_t)count;
    }
    memcpy(end, bytes.data, count);
    block->open += (uint32_t)count;
    if (count == room)
        rc = wire_record_close(wire);
    return rc < 0 ? rc : (ssize_t)count;
}

int wire_record_grow(struct wire *wire, struct output_block *block, size_t count)
{
    block->open += (uint32_t)count;
    return wire_record_room(wire, block) == 0 ? wire_record_close(wire) : 0;
}
