/*
 * One socket as a byte pipe: plain, user-space TLS or kTLS; nobody above knows
 * which. The wire owns what is to be sent, in order, until it is sent; only here
 * is it decided how a chunk leaves.
 *
 * Sending is pulled: while wire_room() > 0 the owner gives the next chunk. Bytes are sealed or copied at once; a
 * file span or pipe is held (with no more room) until it has left. `room` tells the owner to go on.
 */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include "base/chunk.h"
#include "io/loop.h"
#include "tls/ktls.h"
#include "tls/tls_session.h"

struct wire;
struct wire_block;

/* What all wires of a worker share. */
struct wire_shared {
    struct loop *loop;
    struct log *log;
    struct record_sealer *sealer;
    const struct ktls_calls *ktls_calls;
    const struct ktls_support *ktls;        /* what the probe found */
    struct wire_block *free_blocks;         /* output blocks kept for reuse */
    unsigned blocks_kept;
    size_t output_bytes;                    /* held by all wires now */
    size_t output_max;                      /* past this, wires have no room */
    char *plaintext;                        /* LIMIT_RECORD_PLAINTEXT bytes: decrypted here, lent to the session */
    struct wire_counters *counters;
};

/* How the bytes of an answer left: $tls_path. */
enum wire_path { PATH_NONE, PATH_PLAIN, PATH_PLAIN_SENDFILE, PATH_USER, PATH_OPENSSL, PATH_KTLS_SEND, PATH_KTLS_SENDFILE,
                 PATH_KTLS_SPLICE, PATH_COUNT };
const char *wire_path_name(enum wire_path path);

/* Why not (or that) the kernel encrypted it: ktls_reason's names, and the wire's own. */
enum wire_reason { WIRE_REASON_KTLS_END = KTLS_REASONS, REASON_SMALL, REASON_PLAIN, REASON_BYTES, REASON_BUSY, WIRE_REASONS };
const char *wire_reason_name(unsigned reason);

struct wire_counters {
    uint64_t bytes[PATH_COUNT];
    uint64_t transfers[PATH_COUNT];
    uint64_t promotions;
    uint64_t declines[WIRE_REASONS];
    uint64_t records;
    uint64_t handshakes_full, handshakes_resumed, handshakes_failed;
};

/* What happened to the answer that is being sent; reset by wire_transfer_begin. */
struct wire_transfer {
    uint8_t path;                   /* enum wire_path: the way of most of its body */
    uint8_t reason;
    uint64_t zero_copy;             /* $bytes_zero_copy */
};

enum wire_end { WIRE_END_ORDERLY, WIRE_END_PEER_RESET, WIRE_END_TIMEOUT, WIRE_END_PROTOCOL, WIRE_END_ABORT };

struct wire_events {
    void (*opened)(struct wire *wire);                       /* ready to carry application data (after the handshake) */
    /* Bytes for the session: returns how many it took; the rest is held and offered again by wire_receive. Length 0: the peer has ended its stream. */
    size_t (*received)(struct wire *wire, struct str bytes);
    void (*room)(struct wire *wire);                         /* there was none, now there is */
    void (*closed)(struct wire *wire, enum wire_end end);    /* last event: nothing is in flight, the socket is closed */
};

struct wire_settings {
    bool sendfile;                  /* sendfile: on */
    size_t block_size;              /* output_buffers */
    size_t record_size;             /* ssl_buffer_size */
    uint64_t lingering_ms;
};

struct wire {
    const struct wire_events *events;
    const struct wire_settings *settings;
    struct wire_shared *shared;
    struct tls_session *tls;        /* NULL: plain */
    struct record_slot *slot;
    struct record_key *key;         /* NULL until OpenSSL offers it; wiped and freed at close */
    /* the rest is wire.c's: ops for receiving and sending, the queue, the state */
    struct op receive;
    struct op send;
    int fd;
    uint8_t state;
    uint8_t sealing;                /* who encrypts: enum wire_sealing, the one field */
    struct wire_transfer transfer;
    struct wire_block *first, *last;
    struct chunk span;              /* the file span or pipe that is leaving */
    struct str held;                /* received and not yet taken; a copy */
};

/*
 * Takes over a connected socket. With `context` a TLS handshake runs first. `wire` is embedded in its owner and zeroed. 0, or -ENOMEM (then fd is closed).
 * `opened` follows later, or `closed`; never inside this call.
 */
MUST_CHECK int wire_open(struct wire *wire, struct wire_shared *shared, const struct wire_events *events,
                         const struct wire_settings *settings, int fd, struct tls_context *context);

/* Asks for the next received bytes: one `received` follows (held bytes first, later in this turn). No effect while one is asked for. */
void wire_receive(struct wire *wire);

/* Bytes that may be given now; 0: wait for `room`. */
size_t wire_room(const struct wire *wire);
/* The kinds of chunk that the wire can take at the moment: bits of enum chunk_kind. */
unsigned wire_accepts(const struct wire *wire);
/* Gives the next chunk. Bytes are taken whole at once; a file span or pipe is held until it has left: its source must stay open until then (no room, or closed). */
MUST_CHECK int wire_send(struct wire *wire, const struct chunk *chunk);
/* No more chunks for now: everything queued leaves, with no record left open. */
void wire_flush(struct wire *wire);
/* True when nothing is queued or leaving. */
bool wire_drained(const struct wire *wire);

/* Marks the start of an answer for $tls_path; wire->transfer is read at its end. */
void wire_transfer_begin(struct wire *wire);

/* Releases what an idle connection does not need (buffers, cipher context). */
void wire_rest(struct wire *wire);

/*
 * Ends the connection. WIRE_END_ORDERLY: after everything queued has left: close_notify, shutdown of the sending side, lingering (at most settings->lingering_ms: received bytes are
 * dropped), close. Others: at once, without close_notify (a cut answer must not look whole). `closed` follows, never inside this call.
 */
void wire_close(struct wire *wire, enum wire_end end);

#endif
