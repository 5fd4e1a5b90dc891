/*
 * Functions shared by the files of the wire, from the lowest to the highest: none calls one of a later file. Private
 * to wire/.
 *
 * The queue: blocks (first ... last), then one file span. Blocks added while the span is being sent go before the
 * rest of the span; with TLS these are only whole records of OpenSSL.
 */
#ifndef WIRE_WIRE_QUEUE_H
#define WIRE_WIRE_QUEUE_H

#include "base/limits.h"
#include "wire/output_block.h"

enum {
    RECORDS_AT_ONCE = 16, /* filled by one read */
};

/* wire_close.c */

/* Aborts: cancels ops in flight; `closed` follows from the last completion. */
void wire_fail(struct wire *wire, enum wire_close_reason end);
/*
 * In WIRE_CLOSING, called by every completion: the last one frees and calls `closed`. The wire may be freed afterwards.
 */
void wire_finish_close(struct wire *wire);
/* Drops the reference to the pipe of the span: it was sent, or the wire is closed. No effect on a file. */
void wire_release_span_pipe(struct wire *wire);
/* Maps an error of the socket. */
enum wire_close_reason wire_close_reason_of(int error);
/* Logs one line about this connection; `error` is -errno, or 0. */
void wire_log(struct wire *wire, enum log_level level, const char *what, int error);

/* wire_record.c */

/*
 * A block with room for at least one byte of an open record; `bounded`: only within the connection's share. NULL:
 * none (unbounded: out of memory, or MAX_BLOCKS are queued).
 */
struct output_block *wire_writable(struct wire *wire, bool bounded);
/* True if the connection's share allows one more block. */
bool wire_may_add_block(const struct wire *wire);
/* Plaintext bytes that fit into the open record of the block. */
size_t wire_record_room(const struct wire *wire, const struct output_block *block);
/* The size of the record head before the open plaintext. */
static inline size_t wire_record_head(const struct wire *wire)
{
    return wire->sealing == SEALING_USER ? record_head(&wire->key) : 0;
}
/* The position of the open record's next byte. */
static inline char *wire_record_end(const struct wire *wire, struct output_block *block)
{
    return block->bytes + block->filled + wire_record_head(wire) + block->open;
}
/*
 * The positions of the next `length` bytes, as far as the block has room: in the open record, and after it in
 * records with space for heads and tags. Returns the number of places, at most RECORDS_AT_ONCE; each is committed by
 * its own wire_record_grow.
 */
int wire_record_places(const struct wire *wire, struct output_block *block, uint64_t length, struct iovec *places);
/* Commits `count` bytes written at wire_record_end, and seals the record when it is full. 0 or -errno. */
MUST_CHECK int wire_record_grow(struct wire *wire, struct output_block *block, size_t count);
/*
 * Appends the bytes that fit into the open record (wire_record_room() > 0), and seals it when it is full. Bytes that
 * complete a record sealed in user space are encrypted from where they are; others are copied. Returns the number of
 * bytes appended, or -errno.
 */
MUST_CHECK ssize_t wire_record_append(struct wire *wire, struct output_block *block, struct str bytes);
/* Seals the open record of the last block, if any. 0 or -errno. */
MUST_CHECK int wire_record_close(struct wire *wire);
/* Seals one record whose plaintext is in place after the last sealed record of the block. 0 or -errno. */
MUST_CHECK int wire_seal(struct wire *wire, struct output_block *block, uint8_t type, size_t length);
/* Appends a block to the queue, which owns it. */
void output_block_append(struct wire *wire, struct output_block *block);
/* The capacity of a block for settings->block_size bytes of plaintext in records. */
size_t output_block_capacity(const struct wire *wire);

/* Mapped bytes that may be queued. */
static inline size_t wire_gather_max(const struct wire *wire)
{
    return (size_t)LIMIT_GATHER_FIRST << wire->gather_doublings;
}

/* wire_key.c */

/* True if the key can be replaced: kTLS before Linux 6.14 cannot. */
bool wire_may_rekey(const struct wire *wire);
/* Queues the next key of a kTLS wire. 0, -ENOMEM, or -ENOBUFS: too many are queued. */
MUST_CHECK int wire_queue_key(struct wire *wire, const struct record_key *key);
/* Passes the key at the front of the queue to the kernel. False: refused, and the wire is failing. */
MUST_CHECK bool wire_rekey(struct wire *wire);
/* Adds an upper bound of the kernel's records for `bytes` to the sequence number of a kTLS wire. */
void wire_count_key_use(struct wire *wire, uint64_t bytes);
/* Replaces a key near its limit, or calls `ending`, once. */
void wire_check_key_limit(struct wire *wire);
/* Calls `ending`, once. */
void wire_announce_end(struct wire *wire);
/* Bytes of a span that may be passed to the kernel before wire_check_key_limit checks again; 0: none under this key. */
uint64_t wire_key_allows(struct wire *wire);

/* wire_tls.c: receives the output of tls_session. */
extern const struct tls_output wire_tls_output;

/* wire_span.c, wire_mapped.c */

/* True if the span is sent by sendfile or splice: the socket takes plaintext, and the span is not short. */
bool wire_span_is_direct(const struct wire *wire);
/* Chooses how to send the new span, which belongs to a transfer of `whole` bytes. Maps its file if necessary. */
enum span_method wire_span_choose_method(struct wire *wire, uint64_t whole);
/* SPAN_MAPPED: adds the span to the last block, and counts it. 0 or -errno. */
MUST_CHECK int wire_span_gather(struct wire *wire);
/* The next step after wire_span_fill. */
enum wire_span_step {
    /* None: the span is read completely, or a completion follows, or the wire is failing. */
    SPAN_WAITS,
    SPAN_FULL,                      /* push, then fill again */
    SPAN_BLOCKED,                   /* push: there is no block to fill */
    SPAN_UNCACHED,                  /* wire_span_read, then push: the bytes are not cached */
};
/* Reads span bytes into blocks as far as there is room and nothing is in flight. */
MUST_CHECK enum wire_span_step wire_span_fill(struct wire *wire);
/* Reads one record's bytes from the disk; `done` calls wire_span_read_done. */
void wire_span_read(struct wire *wire, op_done *done);
/* Adds the bytes to the queue. True if the pump continues; false: the wire is failing or closed. */
MUST_CHECK bool wire_span_read_done(struct wire *wire, int result);
/* Sends the span by sendfile or splice; `done` calls wire_span_push_done. */
void wire_span_push(struct wire *wire, op_done *done);
/* Accounts for the sent bytes. True if the pump continues; false: the wire is failing or closed. */
MUST_CHECK bool wire_span_push_done(struct wire *wire, int result);

/* wire_promote.c */

/* True if bytes of a pipe can be sent by splice, or could after a hand-off of the key to the kernel. */
bool wire_may_splice(const struct wire *wire);
/* Decides whether the kernel encrypts the new span: sets `promoting`, or accounts for its path. */
void wire_choose_sealing(struct wire *wire);
/* Passes the key to the kernel; the queue is empty. False: the kernel refused, and encryption stays in user space. */
MUST_CHECK bool wire_promote(struct wire *wire);

/* wire_linger.c */

/* All output is sent and the sending side is shut down: discards input until the peer closes. */
void wire_linger(struct wire *wire);
/* WIRE_LINGERING: receives bytes to discard, after the op in flight has completed. */
void wire_linger_receive(struct wire *wire);

/* wire_push.c */

/* Starts the next send if none is in flight; at the end of an orderly close, its next step. */
void wire_push(struct wire *wire);
/* Reads the span into blocks and sends them, as far as there is room. */
void wire_fill(struct wire *wire);
/* After a send: fills, pushes, and calls `writable` if there is room again. */
void wire_continue(struct wire *wire, bool was_writable);

/* wire_turn.c */

/* Adapts unsent_max, which is not 0, to the rate at which the peer acknowledges bytes; called after a send. */
void wire_adapt_unsent(struct wire *wire);
/* After a chunk with ends_turn: limits the queue to the bytes that the socket accepts without waiting. */
void wire_end_turn(struct wire *wire);
/* After a complete send: true if the queue is empty, and the socket accepts less than one record. */
bool wire_turn_waits(struct wire *wire);

/* wire_handshake.c */

/* One step; true once the wire is open. */
bool wire_handshake_step(struct wire *wire);
/* TLS failed: the alert is sent, and nothing else. */
void wire_tls_failed(struct wire *wire);

/* wire_proxy_header.c */

/* Expects a PROXY protocol header. 0 or -ENOMEM. */
MUST_CHECK int wire_await_proxy_header(struct wire *wire);
/*
 * Collects received bytes. Returns the number of those that belong to the header, once it is complete; -EAGAIN: more
 * is needed; -EBADMSG: malformed.
 */
MUST_CHECK ssize_t wire_proxy_header_collect(struct wire *wire, struct str bytes, struct proxy_header *out);

/* wire_receive.c: starts the op that `receiving` needs. */
void wire_receive_start(struct wire *wire);

/* wire_transfer.c: accounts for a chunk of `bytes` sent by `path`, part of `of` bytes in all. */
void wire_account(struct transfer *transfer, enum wire_path path, unsigned reason, uint64_t bytes, uint64_t of);
/* The transfer that a chunk belongs to. */
static inline struct transfer *wire_transfer_of(struct wire *wire, const struct chunk *chunk)
{
    return chunk->transfer ? chunk->transfer : &wire->transfer;
}
/* Counts bytes copied into the queue or sent directly. */
void wire_count(struct wire *wire, enum wire_path path, uint64_t bytes);
/* The path of a direct span. */
enum wire_path wire_path_of_span(const struct wire *wire);
/* SEALING_OPENSSL: the reason why OpenSSL offered no key. */
unsigned wire_no_key_reason(const struct wire *wire);
/* The path of bytes in memory. */
enum wire_path wire_path_of_bytes(const struct wire *wire);

#endif
