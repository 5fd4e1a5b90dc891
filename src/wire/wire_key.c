/*
 * Limits of a key, and its replacement (rules 9 and 10). In user space every record is counted. For the kernel the
 * number is an upper bound; near the limit the exact number is read from the kernel.
 */
#include "wire/wire_queue.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>

/* The kernel's records hold at least a page, except for the last of each call. */
enum { MIN_RECORD = 4096, PER_CALL = 2 };

static uint64_t key_limit(const struct wire *wire)
{
    return wire->shared->records_per_key ? wire->shared->records_per_key : LIMIT_RECORDS_PER_KEY;
}

/* The record number from which the key is replaced; the records after it are a reserve for the current response. */
static uint64_t key_change_mark(const struct wire *wire)
{
    return key_limit(wire) - key_limit(wire) / 16;
}

bool wire_may_rekey(const struct wire *wire)
{
    return wire->sealing != SEALING_KERNEL || (wire->shared->ktls && wire->shared->ktls->rekey);
}

void wire_count_key_use(struct wire *wire, uint64_t bytes)
{
    if (wire->sealing == SEALING_KERNEL)
        wire->key.sequence += bytes / MIN_RECORD + PER_CALL;
}

/* True if `number` records were sealed. Uses the estimate if the kernel does not report the exact number. */
static bool is_past(struct wire *wire, uint64_t number)
{
    if (wire->key.sequence < number)
        return false;
    if (wire->sealing == SEALING_KERNEL && ktls_read_sequence(wire->shared->ktls_calls, wire->fd, &wire->key) == 0)
        return wire->key.sequence >= number;
    return true;
}

void wire_announce_end(struct wire *wire)
{
    if (wire->key_exhausted)
        return;
    wire->key_exhausted = true;
    if (wire->events->ending)
        wire->events->ending(wire);
}

void wire_check_key_limit(struct wire *wire)
{
    if (wire->key.sequence < key_change_mark(wire) || wire->key_exhausted || wire->rekeying ||
        !is_past(wire, key_change_mark(wire)))
        return;
    if (wire_may_rekey(wire) && tls_session_update_key(wire->tls) == 0) {
        if (wire->sealing == SEALING_OPENSSL) /* in other states the new key restarts the count */
            wire->key.sequence = 0;
        return;
    }
    if (wire->state != WIRE_CLOSING)
        wire_announce_end(wire);
}

uint64_t wire_key_allows(struct wire *wire)
{
    uint64_t end = wire->key_exhausted ? key_limit(wire) : key_change_mark(wire);

    if (wire->sealing != SEALING_KERNEL)
        return UINT64_MAX;
    if (is_past(wire, end))
        return wire->key_exhausted ? 0 : MIN_RECORD;
    return u64_sub_sat(end, wire->key.sequence) * MIN_RECORD;
}

int wire_queue_key(struct wire *wire, const struct record_key *key)
{
    struct output_block *block;

    if (wire->rekeying >= LIMIT_KEY_UPDATES) /* the peer requests key updates and does not read the answers */
        return -ENOBUFS;
    block = output_block_get(wire->shared, sizeof *key);
    if (!block)
        return -ENOMEM;
    memcpy(block->bytes, key, sizeof *key);
    block->filled = sizeof *key;
    block->type = BLOCK_KEY;
    output_block_append(wire, block);
    wire->rekeying++;
    return 0;
}

/* The peer already decrypts with the new key: if the kernel refuses the key, the connection cannot continue. */
bool wire_rekey(struct wire *wire)
{
    struct output_block *block = wire->first;
    struct record_key key;
    int error;

    memcpy(&key, block->bytes, sizeof key);
    error = ktls_rekey(wire->shared->ktls_calls, wire->fd, &key);
    record_key_wipe(&key);
    block->from = block->filled;
    wire->rekeying--;
    if (error < 0) {
        wire_log(wire, LOG_ERROR, "kTLS: the kernel refused the next key of a connection, which is closed", error);
        wire_fail(wire, WIRE_CLOSE_ABORT);
        return false;
    }
    wire->key.sequence = 0;
    wire->shared->counters->rekeyings++;
    return true;
}
