/*
 * What the files of the wire ask of each other. Private to wire.
 *
 * The queue is: blocks (first ... last), then one file span. Whatever is added while the span is leaving goes
 * before the rest of the span, which is right for TLS: only records of OpenSSL come then, each whole.
 */
#ifndef WIRE_WIRE_QUEUE_H
#define WIRE_WIRE_QUEUE_H

#include "wire/wire_block.h"

enum {
    RECORDS_AT_ONCE = 16, /* filled by one read */
};

/* wire.c */

/* Ends at once: cancels what is in flight; `closed` follows from its last completion. */
void wire_fail(struct wire *wire, enum wire_end end);
/* In WIRE_DEAD, from every completion: the last one frees and tells the owner. The wire may be gone
 * afterwards. */
void wire_bury(struct wire *wire);
/* What an error of the socket means. */
enum wire_end wire_end_of(int error);
/* One line at `level` about this connection. */
void wire_log(struct wire *wire, enum log_level level, const char *what, int error);

/* wire_receive.c */

/* Starts what `receiving` asks for. */
void wire_receive_start(struct wire *wire);
/* Everything has left and our side is shut down: drops what still comes until the peer has ended, too. */
void wire_linger(struct wire *wire);

/* wire_send.c */

/* Starts the next send where none is in flight; at the end of an orderly close, the next step of that. */
void wire_push(struct wire *wire);
/* After something has left: fills, pushes, and tells the owner where there is room again. */
void wire_go_on(struct wire *wire, bool had_room);
/* A block with room for at least one byte of an open record; `bounded`: only within the connection's share.
 * NULL: none (where not bounded: out of memory, or far too much is queued). */
struct wire_block *wire_writable(struct wire *wire, bool bounded);
/* Whether the connection's share has room for one more block. */
bool wire_may_have_another(const struct wire *wire);
/* Plaintext bytes that the open record of the block can still take. */
size_t wire_record_room(const struct wire *wire, const struct wire_block *block);
/* Where the open record's next byte goes. */
char *wire_record_end(const struct wire *wire, struct wire_block *block);
/*
 * Where the next `length` bytes go, as far as the block has room: into the open record, and behind it into records whose heads and tags are
 * left free. Returns the places used, at most RECORDS_AT_ONCE; each is filled by a wire_record_grow of its own.
 */
int wire_record_places(const struct wire *wire, struct wire_block *block, uint64_t length, struct iovec *places);
/* Takes `count` bytes that were put at wire_record_end, and seals the record when it is full. 0 or -errno. */
MUST_CHECK int wire_record_grow(struct wire *wire, struct wire_block *block, size_t count);
/* Seals the open record of the last block, if any. 0 or -errno. */
MUST_CHECK int wire_record_close(struct wire *wire);
/* A record head's place before the open plaintext. */
size_t wire_record_head(const struct wire *wire);
void wire_block_append(struct wire *wire, struct wire_block *block);
size_t wire_block_capacity(const struct wire *wire);

/* wire_receive.c */

/* Keeps what nobody takes now, for the next wire_receive. False: out of memory. */
bool wire_hold(struct wire *wire, struct str plain, struct str cipher);
/* Lends decrypted bytes to the owner, then what `cipher` becomes. */
void wire_deliver(struct wire *wire, struct str plain, struct str cipher);

/* wire_greeting.c */

/* A header of the PROXY protocol comes first. 0 or -ENOMEM. */
MUST_CHECK int wire_await_greeting(struct wire *wire);
/* Bytes came while it is awaited. */
void wire_greet(struct wire *wire, struct str lent);

/* wire_tls.c */

/* What tls_session passes out. */
extern const struct tls_output wire_tls_output;
/* Seals one record whose plaintext lies in place behind the block's last one. 0 or -errno. */
MUST_CHECK int wire_seal(struct wire *wire, struct wire_block *block, uint8_t type, size_t length);
/* Finished bytes to the end of the queue. 0 or -ENOMEM. */
MUST_CHECK int wire_append(struct wire *wire, struct str bytes);
/* Gives the kernel the control record or the key at the front of the queue. */
void wire_push_control(struct wire *wire);

/* wire_key.c */

/* True where a peer's KeyUpdate can be answered. */
bool wire_may_rekey(const struct wire *wire);
/* The next key of a promoted wire, behind all that is queued. 0, -ENOMEM, or -ENOBUFS: too many wait already. */
MUST_CHECK int wire_queue_key(struct wire *wire, const struct record_key *key);
/* Gives it to the kernel, now that it is at the front of the queue. False: refused, and the wire is failing. */
MUST_CHECK bool wire_rekey(struct wire *wire);
/* Counts what the kernel was given: its records are not told, so rather too many. */
void wire_spend(struct wire *wire, uint64_t bytes);
/* Replaces a key that wears out, or tells the owner, once. */
void wire_wear(struct wire *wire);
/* Tells the owner, once, that the connection may not go on for long. */
void wire_must_end(struct wire *wire);
/* Bytes of a span that the kernel may be given before wire_wear looks again; 0: none under this key. */
uint64_t wire_key_allows(struct wire *wire);

/* wire_span.c */

/* True where the span leaves by sendfile or splice. */
bool wire_span_is_direct(const struct wire *wire);
/* Moves span bytes into blocks, as far as there is room. */
void wire_span_fill(struct wire *wire);
/* Sends the span by sendfile or splice. */
void wire_span_push(struct wire *wire);

/* wire_promote.c */

/* True where the bytes of a pipe can leave by splice, or could once the kernel is given the key. */
bool wire_may_splice(const struct wire *wire);
/* Decides who will encrypt the span just given: sets `promoting`, or accounts for the way it goes. */
void wire_decide(struct wire *wire);
/* The queue is drained: hands the key to the kernel, or goes on in user space; then pushes. */
void wire_promote(struct wire *wire);

/* wire_transfer.c */

/* A chunk of `bytes` was given that is to leave by `path`, together with others: `of` bytes in all. */
void wire_account(struct wire *wire, enum wire_path path, unsigned reason, uint64_t bytes, uint64_t of);
/* Counts bytes that were copied into the queue, or sent past it. */
void wire_count(struct wire *wire, enum wire_path path, uint64_t bytes);
/* The path of a span that is direct. */
enum wire_path wire_path_of_span(const struct wire *wire);
/* SEALING_OPENSSL: why OpenSSL offered no key. */
unsigned wire_no_key_reason(const struct wire *wire);
/* The path of bytes that are given as bytes. */
enum wire_path wire_path_of_bytes(const struct wire *wire);

#endif
