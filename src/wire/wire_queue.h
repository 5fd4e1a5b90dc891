/*
 * Functions shared by the files of the wire. Private to wire/.
 *
 * The queue: blocks (first ... last), then one file span. Blocks added while the span is being sent go before the
 * rest of the span; with TLS these are only whole records of OpenSSL.
 */
#ifndef WIRE_WIRE_QUEUE_H
#define WIRE_WIRE_QUEUE_H

#include "wire/output_block.h"

enum {
    RECORDS_AT_ONCE = 16, /* filled by one read */
};

/* wire.c: aborts: cancels ops in flight; `closed` follows from the last completion. */
void wire_fail(struct wire *wire, enum wire_close_reason end);
/*
 * In WIRE_CLOSING, called by every completion: the last one frees and calls `closed`. The wire may be gone afterwards.
 */
void wire_finish_close(struct wire *wire);
/* Maps an error of the socket. */
enum wire_close_reason wire_close_reason_of(int error);
/* One line at `level` about this connection. */
void wire_log(struct wire *wire, enum log_level level, const char *what, int error);

/* wire_receive.c: starts the op that `receiving` needs. */
void wire_receive_start(struct wire *wire);
/* Everything is sent and the sending side is shut down: discards input until the peer closes. */
void wire_linger(struct wire *wire);

/* wire_send.c: starts the next send if none is in flight; at the end of an orderly close, its next step. */
void wire_push(struct wire *wire);
/* After a send: fills, pushes, and calls `room` if there is room again. */
void wire_continue(struct wire *wire, bool had_room);
/*
 * A block with room for at least one byte of an open record; `bounded`: only within the connection's share. NULL:
 * none (unbounded: out of memory, or far too much is queued).
 */
struct output_block *wire_writable(struct wire *wire, bool bounded);
/* True if the connection's share allows one more block. */
bool wire_may_add_block(const struct wire *wire);
/* Plaintext bytes that fit into the open record of the block. */
size_t wire_record_room(const struct wire *wire, const struct output_block *block);
/* The position of the open record's next byte. */
char *wire_record_end(const struct wire *wire, struct output_block *block);
/*
 * The positions of the next `length` bytes, as far as the block has room: in the open record, and behind it in
 * records with space for heads and tags. Returns the number of places, at most RECORDS_AT_ONCE; each is committed by
 * its own wire_record_grow.
 */
int wire_record_places(const struct wire *wire, struct output_block *block, uint64_t length, struct iovec *places);
/* Commits `count` bytes written at wire_record_end, and seals the record when it is full. 0 or -errno. */
MUST_CHECK int wire_record_grow(struct wire *wire, struct output_block *block, size_t count);
/* Seals the open record of the last block, if any. 0 or -errno. */
MUST_CHECK int wire_record_close(struct wire *wire);
/* The size of the record head before the open plaintext. */
size_t wire_record_head(const struct wire *wire);
void output_block_append(struct wire *wire, struct output_block *block);
size_t output_block_capacity(const struct wire *wire);

/* wire_receive.c: keeps unconsumed bytes for the next wire_receive. False: out of memory. */
bool wire_keep_unread(struct wire *wire, struct str plain, struct str cipher);
/* Lends decrypted bytes to the owner, then the plaintext of `cipher`. */
void wire_deliver(struct wire *wire, struct str plain, struct str cipher);

/* wire_proxy_header.c: expects a PROXY protocol header. 0 or -ENOMEM. */
MUST_CHECK int wire_await_proxy_header(struct wire *wire);
/* Processes bytes received while the header is expected. */
void wire_receive_proxy_header(struct wire *wire, struct str lent);

/* wire_tls.c: receives the output of tls_session. */
extern const struct tls_output wire_tls_output;
/* Seals one record whose plaintext is in place behind the block's last one. 0 or -errno. */
MUST_CHECK int wire_seal(struct wire *wire, struct output_block *block, uint8_t type, size_t length);
/* Appends finished bytes to the queue. 0 or -ENOMEM. */
MUST_CHECK int wire_append(struct wire *wire, struct str bytes);
/* Gives the control record or the key at the front of the queue to the kernel. */
void wire_push_control(struct wire *wire);

/* wire_key.c: true if a peer's KeyUpdate can be answered. */
bool wire_may_rekey(const struct wire *wire);
/* Queues the next key of a kTLS wire. 0, -ENOMEM, or -ENOBUFS: too many are queued. */
MUST_CHECK int wire_queue_key(struct wire *wire, const struct record_key *key);
/* Gives the key at the front of the queue to the kernel. False: refused, and the wire is failing. */
MUST_CHECK bool wire_rekey(struct wire *wire);
/* Counts bytes given to the kernel as an upper bound of records. */
void wire_count_key_use(struct wire *wire, uint64_t bytes);
/* Replaces a key near its limit, or calls `ending`, once. */
void wire_check_key_limit(struct wire *wire);
/* Calls `ending`, once. */
void wire_announce_end(struct wire *wire);
/* Bytes of a span that may be given to the kernel before wire_check_key_limit checks again; 0: none under this key. */
uint64_t wire_key_allows(struct wire *wire);

/* wire_span.c: true if the span is sent by sendfile or splice. */
bool wire_span_is_direct(const struct wire *wire);
/* Reads span bytes into blocks as far as there is room. */
void wire_span_fill(struct wire *wire);
/* Sends the span by sendfile or splice. */
void wire_span_push(struct wire *wire);

/*
 * wire_promote.c: true if bytes of a pipe can be sent by splice, or could after a hand-off of the key to the kernel.
 */
bool wire_may_splice(const struct wire *wire);
/* Decides who encrypts the span just given: sets `promoting`, or accounts for its path. */
void wire_choose_sealing(struct wire *wire);
/* The queue is empty: gives the key to the kernel, or continues in user space; then pushes. */
void wire_promote(struct wire *wire);

/* wire_transfer.c: accounts for a chunk of `bytes` sent by `path`, part of `of` bytes in all. */
void wire_account(struct wire *wire, enum wire_path path, unsigned reason, uint64_t bytes, uint64_t of);
/* Counts bytes copied into the queue or sent directly. */
void wire_count(struct wire *wire, enum wire_path path, uint64_t bytes);
/* The path of a direct span. */
enum wire_path wire_path_of_span(const struct wire *wire);
/* SEALING_OPENSSL: the reason why OpenSSL offered no key. */
unsigned wire_no_key_reason(const struct wire *wire);
/* The path of bytes in memory. */
enum wire_path wire_path_of_bytes(const struct wire *wire);

#endif
