/*
 * The TLS side of the queue: OpenSSL's output is queued in order and sealed in place; on a kTLS socket its records
 * go to the kernel with their type.
 */
#include "wire/wire_queue.h"

#include "base/limits.h"

#include <errno.h>

/* Appends finished bytes to the queue. 0 or -ENOMEM. */
static int append_bytes(struct wire *wire, struct str bytes)
{
    while (bytes.length > 0) {
        struct output_block *block = wire->last;
        size_t count;

        if (!block || block->type || block->open || block->filled >= block->capacity) {
            block = output_block_get(wire->shared, output_block_capacity(wire));
            if (!block)
                return -ENOMEM;
            output_block_append(wire, block);
        }
        count = block->capacity - block->filled;
        if (count > bytes.length)
            count = bytes.length;
        memcpy(block->bytes + block->filled, bytes.data, count);
        block->filled += (uint32_t)count;
        bytes = str_skip(bytes, count);
    }
    return 0;
}

static void append_ciphertext(void *owner, struct str bytes)
{
    struct wire *wire = owner;

    if (wire->state != WIRE_CLOSING && append_bytes(wire, bytes) < 0)
        wire_fail(wire, WIRE_CLOSE_ABORT);
}

static int seal_control(struct wire *wire, uint8_t type, struct str plaintext)
{
    int rc = wire_record_close(wire);

    while (rc == 0 && plaintext.length > 0) {
        struct output_block *block = wire_writable(wire, false);
        size_t count;

        if (!block)
            return -ENOMEM;
        count = wire_record_room(wire, block);
        if (count > plaintext.length)
            count = plaintext.length;
        memcpy(wire_record_end(wire, block), plaintext.data, count);
        rc = wire_seal(wire, block, type, count);
        plaintext = str_skip(plaintext, count);
    }
    return rc;
}

/* Queues a whole record with its type for the kernel, after the open record: only the last block may have one. */
static int queue_control(struct wire *wire, uint8_t type, struct str plaintext)
{
    struct output_block *block;
    int rc = wire_record_close(wire);

    if (rc < 0)
        return rc;
    if (plaintext.length > LIMIT_RECORD_PLAINTEXT)
        return -EMSGSIZE;
    block = output_block_get(wire->shared, plaintext.length);
    if (!block)
        return -ENOMEM;
    memcpy(block->bytes, plaintext.data, plaintext.length);
    block->filled = (uint32_t)plaintext.length;
    block->type = type;
    output_block_append(wire, block);
    return 0;
}

/*
 * Interrupts the span: its rest is sent after the record. A file may take minutes, and the peer expects the answer to a
 * KeyUpdate before further application data (RFC 8446 4.6.3).
 */
static void interrupt_span(struct wire *wire)
{
    if (!op_idle(&wire->send) && (wire->send.verb == OP_SENDFILE || wire->send.verb == OP_SPLICE))
        loop_cancel(wire->shared->loop, &wire->send);
}

static void control_record(void *owner, uint8_t type, struct str plaintext)
{
    struct wire *wire = owner;
    int rc;

    if (wire->state == WIRE_CLOSING)
        return;
    if (wire->sealing == SEALING_KERNEL)
        rc = queue_control(wire, type, plaintext);
    else
        rc = seal_control(wire, type, plaintext);
    if (rc < 0)
        wire_fail(wire, WIRE_CLOSE_ABORT);
    else if (wire->sealing == SEALING_KERNEL)
        interrupt_span(wire);
}

static void key_ready(void *owner, const struct record_key *key)
{
    struct wire *wire = owner;

    if (wire->state == WIRE_CLOSING)
        return;
    if ((wire->sealing == SEALING_KERNEL ? wire_queue_key(wire, key) : wire_record_close(wire)) < 0) {
        wire_fail(wire, WIRE_CLOSE_ABORT);
        return;
    }
    if (wire->sealing == SEALING_KERNEL)
        return;
    record_key_wipe(&wire->key);
    wire->key = *key;
    wire->sealing = SEALING_USER;
}

/*
 * Rule 9: if the kernel's key cannot be replaced, a request for a new one is not answered. The peer decrypts with the
 * old key until the response is complete, and the connection ends.
 */
static bool may_update_key(void *owner)
{
    struct wire *wire = owner;

    if (wire_may_rekey(wire))
        return true;
    wire_log(wire, LOG_INFO, "kTLS: the peer requested a new key; the connection is closed after this response", 0);
    wire_announce_end(wire);
    return false;
}

static uint64_t tls_now_ms(void *owner)
{
    const struct wire *wire = owner;

    return wire->shared->loop->clock.monotonic_ms;
}

static struct cipher_context_cache *cipher_contexts(void *owner)
{
    const struct wire *wire = owner;

    return wire->shared->cipher_contexts;
}

const struct tls_output wire_tls_output = {
    .ciphertext = append_ciphertext,
    .record = control_record,
    .key_ready = key_ready,
    .may_update_key = may_update_key,
    .now_ms = tls_now_ms,
    .cipher_contexts = cipher_contexts,
};
