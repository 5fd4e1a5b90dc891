/*
 * One socket as a byte pipe: plain, user-space TLS or kTLS; nobody above knows
 * which. The wire owns what is to be sent, in order, until it is sent; only here
 * is it decided how a chunk leaves.
 *
 * Sending is pulled: while wire_room() > 0 the owner gives the next chunk, and
 * wire_flush ends the round. Bytes are copied at once and sealed when a record is
 * full or at the flush; a file span is held, without more room, until it has been
 * read or sent. `room` tells the owner to go on.
 */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include "base/chunk.h"
#include "io/loop.h"
#include "tls/ktls.h"
#include "tls/tls_session.h"
#include "wire/pipe_pool.h"
#include "wire/proxy_header.h"

struct wire;
struct wire_block;
struct wire_held;
struct wire_greeting;

/* How the bytes of an answer left: $tls_path. */
enum wire_path {
    PATH_NONE,
    PATH_PLAIN,
    PATH_PLAIN_SENDFILE,
    PATH_PLAIN_SPLICE,
    PATH_USER,
    PATH_OPENSSL,
    PATH_KTLS_SEND,
    PATH_KTLS_SENDFILE,
    PATH_KTLS_SPLICE,
    PATH_COUNT
};
/* "-", "plain", "plain-sendfile", "plain-splice", "user", "openssl", "ktls-send", "ktls-sendfile", "ktls-splice". */
const char *wire_path_name(enum wire_path path);

/* Why the kernel encrypted it not (or that it did: KTLS_OK): enum ktls_reason, and the wire's own. $tls_path_reason. */
enum wire_reason {
    REASON_SMALL = KTLS_REASONS,    /* "small": below ssl_ktls_threshold */
    REASON_BYTES,                   /* "bytes": made in memory (compressed, generated), nothing to send from a file */
    REASON_SENDFILE_OFF,            /* "sendfile-off" */
    REASON_SUITE,                   /* "suite": CBC or CCM, which neither we nor the kernel seal */
    REASON_FRAGMENT,                /* "max-fragment": the client limits its records (RFC 6066 4), which the kernel cannot */
    REASON_PLAIN,                   /* "plain": not TLS, so that nothing was declined */
    WIRE_REASONS
};
const char *wire_reason_name(unsigned reason);

struct tls_resumption;

struct wire_counters {
    uint64_t bytes[PATH_COUNT];     /* that went this way; a span's when they have left, or were sealed */
    uint64_t transfers[PATH_COUNT];
    uint64_t promotions;
    uint64_t declines[WIRE_REASONS]; /* of answers, by the reason why they were not sent by the kernel */
    uint64_t records;               /* sealed in user space */
    uint64_t rekeyings;             /* second keys taken by the kernel */
    uint64_t handshakes_full, handshakes_resumed, handshakes_failed;
};

/* What all wires of a worker share. */
struct wire_shared {
    struct loop *loop;
    struct log *log;
    struct record_sealer *sealer;
    const struct ktls_calls *ktls_calls;
    const struct ktls_support *ktls; /* what the probe found */
    struct wire_block *free_blocks; /* output blocks kept for reuse */
    unsigned blocks_kept;
    size_t output_bytes;            /* in blocks of all wires now */
    size_t output_max;              /* past this, a wire gets no second block */
    uint64_t records_per_key;       /* 0: LIMIT_RECORDS_PER_KEY; tests want less */
    struct pipe_pool pipes;         /* for what is received into a pipe */
    char *plaintext;                /* LIMIT_RECORD_PLAINTEXT bytes: decrypted here, lent to the owner */
    struct wire_counters *counters;
};

/* Fields loop, log, ktls, counters and output_max are set by the caller. 0 or -ENOMEM (then nothing is held). */
MUST_CHECK int wire_shared_init(struct wire_shared *shared);
/* No wire may be open. Accepts a zeroed struct. */
void wire_shared_finish(struct wire_shared *shared);

/* What happened to the answer that is being sent. */
struct wire_transfer {
    uint64_t largest;               /* bytes of the longest chunk, which decides path and reason */
    uint64_t total;                 /* bytes given in all */
    uint64_t made;                  /* of them, as bytes in memory */
    uint64_t zero_copy;             /* $bytes_zero_copy */
    uint8_t path;                   /* enum wire_path */
    uint8_t reason;                 /* enum ktls_reason or wire_reason */
};

enum wire_end {
    WIRE_END_ORDERLY,
    WIRE_END_PEER_RESET,            /* the peer went away */
    WIRE_END_TIMEOUT,
    WIRE_END_PROTOCOL,              /* TLS failed */
    WIRE_END_ABORT,                 /* cut off on purpose: the answer cannot be finished */
    WIRE_END_REFUSED,               /* cut off on purpose: the peer is to have no answer */
    WIRE_END_BROKEN,                /* cut off by a reset: the peer would take an end for an orderly one */
};

struct wire_events {
    /*
     * Where it is not NULL, the connection begins with a header of the PROXY protocol, before TLS: here it is, once, before `opened`. Without one, or with a bad
     * one, the wire is closed.
     */
    void (*greeted)(struct wire *wire, const struct proxy_header *header);
    /* Ready to carry application data: after the handshake, if there is one. */
    void (*opened)(struct wire *wire);
    /*
     * Received bytes: returns how many it took. While it takes all, more may follow from what has already
     * come; what it leaves is held and offered again after the next wire_receive. Length 0, once: the peer has ended its stream.
     */
    size_t (*received)(struct wire *wire, struct str bytes);
    /* wire_receive_pipe: so many bytes are in the pipe. NULL where that is never asked for. */
    void (*piped)(struct wire *wire, size_t count);
    /* There was no room, now there is. The owner goes on and flushes, as in any round. */
    void (*room)(struct wire *wire);
    /* Everything given has left, or lingering has begun: another wait begins for the owner's clock. Only from completions. May be NULL. */
    void (*drained)(struct wire *wire);
    /* The connection may not go on for long (the key is worn out, or could not be replaced): finish the answer, then close in order. May be NULL. */
    void (*ending)(struct wire *wire);
    /*
     * Last event: nothing is in flight. wire->tls and wire->fd may be asked until it returns, and are closed then; the wire's
     * memory is the owner's again.
     */
    void (*closed)(struct wire *wire, enum wire_end end);
};

struct wire_settings {
    bool sendfile;                  /* sendfile: on */
    size_t block_size;              /* output_buffers: plaintext bytes of one output block; a connection has at most two */
    size_t record_size;             /* ssl_buffer_size: plaintext bytes of one record, at most LIMIT_RECORD_PLAINTEXT */
    bool small_records;             /* ssl_dyn_rec_enable: records of one segment first, and after a rest */
    uint64_t lingering_ms;          /* for the owner's timer: how long wire_lingering may last */
    bool delay;                     /* tcp_nodelay: off: the kernel may hold back a small end until what went before is confirmed */
    bool reset_timed_out;           /* reset_timedout_connection: what ends by WIRE_END_TIMEOUT or _REFUSED ends with a reset */
};

/* Who encrypts: one field in one place, which changes only between two records. */
enum wire_sealing {
    SEALING_NONE,                   /* plain TCP */
    SEALING_HANDSHAKE,              /* OpenSSL, until it offers the key */
    SEALING_USER,                   /* we, record by record */
    SEALING_OPENSSL,                /* OpenSSL by SSL_write: it offered no key */
    SEALING_KERNEL,                 /* kTLS */
};

enum wire_state {
    WIRE_HANDSHAKE,
    WIRE_OPEN,
    WIRE_DRAINING,                  /* close asked for; what is queued leaves first */
    WIRE_LINGERING,                 /* our side is shut down; received bytes are dropped until the peer ends its own */
    WIRE_DEAD,                      /* ops are being cancelled; then `closed` */
};

struct wire {
    const struct wire_events *events;
    const struct wire_settings *settings;
    struct wire_shared *shared;
    struct tls_session *tls;        /* owned; NULL: plain */
    struct op receive;              /* receiving, watching, and the deferred last step */
    struct op send;                 /* one or two blocks, one span or one kernel record at a time */
    struct wire_block *first, *last; /* owned: what is to be sent, in order */
    struct wire_block *reading;     /* owned: a cold span's bytes are read from disk into it; joins the queue afterwards */
    struct chunk span;              /* leaves after the blocks; length 0: none */
    struct wire_greeting *greeting; /* owned: what came of a header of the PROXY protocol; NULL: none is awaited */
    struct wire_held *held;         /* owned: received and not yet taken */
    struct pipe *pipe;              /* held: what is received goes there */
    struct record_key key;          /* SEALING_USER and SEALING_KERNEL */
    struct record_slot *slot;       /* of the sealer, which may take it away */
    uint64_t sealed_ms;             /* when the last record was sealed */
    uint32_t stretch;               /* plaintext sealed since the last rest, counted up to SMALL_RECORD_BYTES and some */
    struct wire_transfer transfer;
    uint64_t sent;                  /* bytes: see wire_bytes_sent */
    uint64_t received;              /* bytes; from WIRE_LINGERING on those that were dropped */
    int fd;
    uint32_t pipe_most;             /* bytes asked for, into `pipe` */
    uint8_t state;                  /* enum wire_state */
    uint8_t sealing;                /* enum wire_sealing */
    uint8_t end;                    /* enum wire_end, in WIRE_DEAD */
    uint8_t refused;                /* enum ktls_reason: the kernel said no, it is not asked again */
    bool promoting;                 /* the span waits for the queue to drain, then for the kernel */
    bool narrow;                    /* SEALING_KERNEL: the send buffer holds few segments */
    bool receiving;                 /* the owner has asked for bytes */
    bool watching;                  /* or, as long as it has not, for a reset */
    bool delivering;                /* inside `received` or `opened` */
    bool was_full;                  /* there was no room before the send in flight */
    bool peer_ended;
    bool cut;                       /* and TLS did not say that it would */
    bool spoke_http;
    bool finishing;                 /* wire_finish: the end goes behind what is queued */
    bool notified;                  /* close_notify was queued */
    bool tail_seen;                 /* wire_unacknowledged: at the last look */
    bool worn;                      /* `ending` was called */
    uint8_t rekeying;               /* keys in the queue, for the kernel */
    uint8_t leaving;                /* blocks of the send in flight that were not yet counted as sent */
};

/*
 * Takes over a connected socket, TCP with TCP_NODELAY (listeners hand it down): bytes are given to it when they shall leave. With `context` a TLS
 * handshake runs first. `wire` is embedded in its owner and zeroed; `shared`, `events` and `settings` outlive it.
 * 0, or -ENOMEM (then fd is closed). `opened` follows later, or `closed`; never inside this call.
 */
MUST_CHECK int wire_open(struct wire *wire, struct wire_shared *shared, const struct wire_events *events,
                         const struct wire_settings *settings, int fd, struct tls_context *context);

/*
 * The same as the client of a TLS server: `context` is of tls_client_context_create, and `name` is whom its certificate must name. `opened` follows
 * once the handshake is over, or `closed`. `resumption` (NULL: none) is what the server gave before, for a shorter handshake.
 */
MUST_CHECK int wire_open_client(struct wire *wire, struct wire_shared *shared, const struct wire_events *events,
                                const struct wire_settings *settings, int fd, struct tls_context *context, struct str name,
                                const struct tls_resumption *resumption);

/*
 * Other settings from now on; they outlive the wire. Without effect where a record is open under another size of records, whose
 * room is promised already.
 */
void wire_settle(struct wire *wire, const struct wire_settings *settings);

/* Asks for received bytes: `received` follows (held bytes first, later in this turn). No effect while asked for. */
void wire_receive(struct wire *wire);
/* True where bytes may be received into a pipe: it is plain, nothing is held, and nothing is asked for. */
bool wire_pipes(const struct wire *wire);
/*
 * Asks for received bytes, at most `most`, in an empty pipe: wire_pipes() is true. `piped` follows, or `received` of length 0. The pipe is held until then, or
 * until the wire is closed: bytes may still get into it as long as that is so.
 */
void wire_receive_pipe(struct wire *wire, struct pipe *pipe, size_t most);
/* False where bytes have come that nobody has asked for yet. Plain wires only. */
bool wire_silent(const struct wire *wire);
/*
 * Watches for a reset while nothing is asked for (the owner has as many bytes as it wants, or the peer has ended its stream): then
 * `closed`. Ends with the next wire_receive.
 */
void wire_watch(struct wire *wire);

/* Bytes that may be given now; 0: wait for `room`. */
size_t wire_room(const struct wire *wire);
/* The kinds of chunk that the wire can take at the moment: bits of enum chunk_kind. */
unsigned wire_accepts(const struct wire *wire);
/*
 * Gives the next chunk; wire_room() > 0. Bytes (at most wire_room) are copied; a span of a file or a pipe may be of any length (all of it is in the
 * pipe), and its source stays open until there is room again, or `closed`. 0 or -errno; after an error only wire_close helps.
 */
MUST_CHECK int wire_send(struct wire *wire, const struct chunk *chunk);
/* No more chunks for now: everything queued leaves, with no record left open. */
void wire_flush(struct wire *wire);
/*
 * Nothing more will be given, but the other direction goes on: after what is queued has left the peer is told, by close_notify where there is TLS and
 * the end of TCP's stream (not on a promoted socket: see wire_unacknowledged).
 */
void wire_finish(struct wire *wire);
/* True when nothing is queued or leaving: then the wire holds no memory but its own (the live cipher context is the sealer's, which takes it when another needs it). */
bool wire_drained(const struct wire *wire);

/* Marks the end of an answer: counts its transfer and starts a new one. Returns what is to be logged. */
struct wire_transfer wire_transfer_end(struct wire *wire);

/* Bytes of the span given last that have not been read or sent: what a cut answer lacks. May be asked until `closed` returns. */
uint64_t wire_unsent(const struct wire *wire);

/* Where the peer connected to; AF_UNSPEC: not known. */
void wire_own_address(const struct wire *wire, union proxy_address *out);

/*
 * What the peer has taken, and what has come from it: where it is to take something, or to say something, a timer that sees no change
 * between two looks has found a peer that stands still. Only differences mean something.
 */
uint64_t wire_bytes_sent(const struct wire *wire);
uint64_t wire_bytes_received(const struct wire *wire);
/* The same of what has reached the peer's machine, as far as TCP tells. Costs a system call. */
uint64_t wire_bytes_confirmed(const struct wire *wire);
/* True once our side is shut down: the owner bounds this time by settings->lingering_ms. */
static inline bool wire_lingering(const struct wire *wire)
{
    return wire->state == WIRE_LINGERING;
}
/*
 * True where the end of the socket would lose bytes of ours: the kernel drops records of a kTLS socket that have not reached TCP
 * (KTLS.md, section 2), and it is known to have none only once TCP has nothing left, in two looks. To the owner such a lingering is still a
 * send: wire_bytes_sent tells whether the peer takes what it gets. A look costs a system call or two.
 */
bool wire_unacknowledged(struct wire *wire);

/*
 * Ends the connection. WIRE_END_ORDERLY: after everything queued has left: close_notify, shutdown of the sending side, lingering (received bytes are
 * dropped, at most LIMIT_LINGERING_BYTES), close. Others: at once, without close_notify (a cut answer must not look whole). `closed` follows, never
 * inside this call. May be called again to hurry an orderly end.
 */
void wire_close(struct wire *wire, enum wire_end end);

/* After `received` of length 0: TLS ended without close_notify (RFC 8446 6.1), so that anybody may have cut off what follows. */
static inline bool wire_cut(const struct wire *wire)
{
    return wire->cut;
}

/* True while what is received is early data (RFC 8446 2.3): it may be somebody's replay, and nobody has proved yet to be the peer. */
static inline bool wire_early(const struct wire *wire)
{
    return wire->tls && tls_session_early(wire->tls);
}

/* True where the peer spoke plain HTTP to a TLS port: `opened` was called, the wire is plain, and the bytes that came are gone. */
static inline bool wire_spoke_http(const struct wire *wire)
{
    return wire->spoke_http;
}

#endif
