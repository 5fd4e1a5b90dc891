/*
 * One socket as a byte stream: plain, user-space TLS or kTLS; code above does not depend on which. The wire owns
 * queued output until it is sent, in order, and decides how each chunk is sent.
 *
 * Sending is pulled: while wire_room() > 0 the owner adds the next chunk by wire_send, and wire_flush ends the round.
 * Bytes are copied at once and sealed when a record is full or on flush. A file span stays queued, and there is no room
 * after it, until it is read or sent. Then the event `writable` follows.
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
struct output_block;
struct wire_unread;
struct wire_proxy_header;

/* How the bytes of a response were sent: $tls_path. */
enum wire_path {
    PATH_NONE,
    PATH_PLAIN,
    PATH_PLAIN_SENDFILE,
    PATH_PLAIN_SPLICE,
    PATH_PLAIN_MAPPED,
    PATH_USER,
    PATH_OPENSSL,
    PATH_KTLS_SEND,
    PATH_KTLS_SENDFILE,
    PATH_KTLS_SPLICE,
    PATH_KTLS_MAPPED,
    PATH_COUNT
};
/*
 * "-", "plain", "plain-sendfile", "plain-splice", "plain-mapped", "user", "openssl", "ktls-send", "ktls-sendfile",
 * "ktls-splice", "ktls-mapped".
 */
const char *wire_path_name(enum wire_path path);

/* The reason why the kernel did not encrypt (KTLS_OK: it did): enum ktls_reason, continued. $tls_path_reason. */
enum wire_reason {
    REASON_SMALL = KTLS_REASONS,    /* "small": below ssl_ktls_threshold */
    REASON_USER_FASTER,             /* "user-faster": ssl_ktls: auto, and user space took less CPU time */
    REASON_BYTES,                   /* "bytes": produced in memory (compressed, generated), not from a file */
    REASON_SENDFILE_OFF,            /* "sendfile-off" */
    REASON_SUITE,                   /* "suite": CBC or CCM, unsupported by the record layer and by the kernel */
    /* "max-fragment": the client limits record sizes (RFC 6066 4), which the kernel cannot. */
    REASON_FRAGMENT,
    REASON_PLAIN,                   /* "plain": not TLS */
    WIRE_REASONS
};
/* The name of an enum ktls_reason or wire_reason, as listed. */
const char *wire_reason_name(unsigned reason);

struct tls_resumption;

struct wire_counters {
    uint64_t bytes[PATH_COUNT];         /* sent by this path; those of a span are counted when sent or sealed */
    uint64_t transfers[PATH_COUNT];
    uint64_t promotions;
    uint64_t declines[WIRE_REASONS];    /* responses not encrypted by the kernel, by reason */
    uint64_t records;                   /* sealed in user space */
    uint64_t rekeyings;                 /* next keys (KeyUpdate) accepted by the kernel */
    uint64_t handshakes_full, handshakes_resumed, handshakes_failed;
};

/* Shared by all wires of a worker. */
struct wire_shared {
    struct loop *loop;
    struct log *log;
    struct cipher_context_cache *cipher_contexts;
    const struct ktls_calls *ktls_calls;
    const struct ktls_support *ktls;        /* result of the probe */
    const struct ktls_choice *ktls_choice;  /* for ssl_ktls: auto; NULL: the kernel encrypts bodies of every size */
    const struct aead_choice *aead;         /* NULL: OpenSSL encrypts; read by wire_shared_init only */
    struct output_block *free_blocks;       /* output blocks kept for reuse */
    unsigned free_block_count;
    size_t output_bytes;                    /* in output blocks of all wires */
    size_t output_max;                      /* above it, a wire gets no second block */
    unsigned file_views;                    /* of all wires */
    uint64_t records_per_key;               /* 0: LIMIT_RECORDS_PER_KEY; tests use less */
    struct pipe_pool pipes;                 /* for receiving into a pipe */
    /* RECORD_INNER_MAX bytes: the decryption buffer, read by the owner during `received`. */
    char *plaintext;
    struct wire_counters *counters;
    struct log_limit memory_failures;       /* limits log messages about failed allocations */
};

/* The caller has set the fields loop, log, ktls, counters and output_max. 0 or -ENOMEM (nothing to finish then). */
MUST_CHECK int wire_shared_init(struct wire_shared *shared);
/* No wire may be open. Accepts a zeroed struct. */
void wire_shared_finish(struct wire_shared *shared);

enum wire_close_reason {
    WIRE_CLOSE_ORDERLY,
    WIRE_CLOSE_PEER_RESET,            /* reset by the peer */
    WIRE_CLOSE_TIMEOUT,
    WIRE_CLOSE_PROTOCOL,              /* TLS failure */
    WIRE_CLOSE_ABORT,                 /* aborted: the response cannot be completed */
    WIRE_CLOSE_REFUSED,               /* aborted: the peer gets no response */
    WIRE_CLOSE_BROKEN,                /* aborted by RST, because a FIN would mark the end of the response */
};

struct wire_events {
    /*
     * If not NULL, a PROXY protocol header precedes TLS: called once with it, before `opened`. Without a valid
     * header the wire is closed.
     */
    void (*proxy_header)(struct wire *wire, const struct proxy_header *header);
    /* Ready for application data: after the handshake, if any. */
    void (*opened)(struct wire *wire);
    /*
     * Passes received bytes to the owner, which returns the number that it has consumed. If it has consumed all, the
     * event may follow again for bytes that were received at once with these. The wire keeps the others, and passes
     * them again after the next wire_receive. Length 0, once: end of stream.
     */
    size_t (*received)(struct wire *wire, struct str bytes);
    /* wire_receive_pipe: `count` bytes are in the pipe. May be NULL if that is not used. */
    void (*piped)(struct wire *wire, size_t count);
    /* wire_room() > 0 again. The owner calls wire_send and wire_flush. */
    void (*writable)(struct wire *wire);
    /*
     * All output was sent, or lingering began: the owner restarts its timeout. Called from completions only. May be
     * NULL.
     */
    void (*drained)(struct wire *wire);
    /*
     * The connection must end soon: its key is near its limit, or the peer has requested a new one, but the key cannot
     * be replaced. The owner completes the response, then closes. May be NULL.
     */
    void (*ending)(struct wire *wire);
    /*
     * TLS failed: no more is received or accepted. Queued output and the alert are still sent, and `closed` follows
     * with WIRE_CLOSE_PROTOCOL once the peer has read the alert and closed. The owner limits this time, or closes.
     * Called from completions only; not called if the wire closes at once. May be NULL.
     */
    void (*tls_failed)(struct wire *wire);
    /*
     * The last event: nothing is in flight. wire->tls and wire->fd are valid until it returns and are closed then;
     * the memory of the wire belongs to the owner again.
     */
    void (*closed)(struct wire *wire, enum wire_close_reason end);
};

struct wire_settings {
    bool sendfile;                  /* sendfile: on */
    /* output_buffers: plaintext bytes of one output block; at most two per connection. */
    size_t block_size;
    size_t record_size;             /* ssl_buffer_size: plaintext bytes per record, at most LIMIT_RECORD_PLAINTEXT */
    bool small_records;             /* ssl_dyn_rec_enable: one-segment records first and after an idle period */
    uint64_t lingering_ms;          /* lingering_timeout, enforced by the owner's timer */
    bool delay;                     /* tcp_nodelay: off: Nagle's algorithm */
    /* reset_timedout_connection: WIRE_CLOSE_TIMEOUT and WIRE_CLOSE_REFUSED close by RST. */
    bool reset_timed_out;
};

/* The component that encrypts; changes only between two records. */
enum wire_sealing {
    SEALING_NONE,                   /* plain TCP */
    SEALING_HANDSHAKE,              /* OpenSSL, until it offers the key */
    SEALING_USER,                   /* the record layer, record by record */
    SEALING_OPENSSL,                /* OpenSSL by SSL_write: no key was offered */
    SEALING_KERNEL,                 /* kTLS */
};

/*
 * How a file span is sent where the socket takes plaintext: plain connections and kernel TLS. Chosen once for each
 * span, because the open record is closed before a direct one.
 */
enum span_method {
    SPAN_DIRECT,                    /* sendfile; splice for pipes */
    SPAN_READ,                      /* with "sendfile: off": read into blocks */
    SPAN_COPIED,                    /* read into a block */
    /* A part of a longer run: sent from the mapped file, together with the bytes around it. */
    SPAN_MAPPED,
};

enum turn_room {
    TURN_ROOM_UNKNOWN = 0,
    TURN_QUEUE_FULL = UINT8_MAX,    /* as much is queued as the socket accepts without waiting */
};

enum wire_state {
    WIRE_HANDSHAKE,
    WIRE_OPEN,
    WIRE_DRAINING,                  /* closing; queued output is sent first */
    WIRE_LINGERING,                 /* the sending side is shut down; input is discarded until the peer closes */
    WIRE_CLOSING,                   /* ops are being cancelled; `closed` follows */
};

struct wire {
    const struct wire_events *events;
    const struct wire_settings *settings;
    struct wire_shared *shared;
    struct tls_session *tls;            /* owned; NULL: plain */
    struct op receive;                  /* receives, watches, and the deferred last step */
    struct op send;                     /* one or two blocks, one span or one kernel record at a time */
    struct output_block *first, *last;  /* owned: queued output, in order */
    /* Owned: destination of a disk read for an uncached span; joins the queue afterwards. */
    struct output_block *reading;
    struct chunk span;                  /* sent after the blocks; length 0: none */
    /* Owned: PROXY protocol header being received; NULL: none is expected. */
    struct wire_proxy_header *proxy_header;
    struct wire_unread *unread;         /* owned: received, not consumed */
    struct pipe *pipe;                  /* referenced: destination of wire_receive_pipe */
    struct record_key key;              /* SEALING_USER and SEALING_KERNEL */
    /* The cache may evict it and set this to NULL. */
    struct cipher_context *cipher_context;
    uint64_t sealed_ms;                 /* time of the last sealed record */
    uint32_t sent_since_idle;           /* plaintext since the last idle period; counting stops at SMALL_RECORD_BYTES */
    uint32_t unsent_max;                /* wire_limit_unsent, doubled unsent_doublings times; 0: no limit */
    uint32_t confirmed;                 /* wire_bytes_confirmed at the time confirmed_ms, modulo 2^32 */
    int fd;
    struct transfer transfer;           /* of chunks without a transfer of their own */
    uint64_t sent;                      /* bytes: see wire_bytes_sent */
    uint64_t received;                  /* bytes; from WIRE_LINGERING on the discarded ones */
    uint32_t pipe_max;                  /* bytes requested into `pipe` */
    uint16_t confirmed_ms;              /* modulo 2^16 */
    uint8_t state;                      /* enum wire_state */
    uint8_t sealing;                    /* enum wire_sealing */
    uint8_t end;                        /* enum wire_close_reason, in WIRE_CLOSING */
    uint8_t ktls_failure;               /* enum ktls_reason: enabling kTLS failed, and is not tried again */
    bool promoting;                     /* the span waits for an empty queue, then for the kernel */
    uint8_t span_method;                /* enum span_method */
    uint8_t gather_doublings;           /* at most LIMIT_GATHER_FIRST << gather_doublings bytes are gathered */
    bool receiving;                     /* wire_receive is pending */
    bool receives_large;                /* the pending request is by wire_receive_large */
    bool watching;                      /* wire_watch is pending */
    bool delivering;                    /* inside `received` or `opened` */
    bool turn_ended;                    /* the last chunk had ends_turn */
    uint8_t unsent_doublings;
    uint8_t turn_room;                  /* full records that the socket accepts at once, or enum turn_room */
    bool was_full;                      /* there was no room before the send in flight */
    uint8_t rekeying;                   /* keys queued for the kernel */
    uint8_t blocks_in_flight;           /* blocks in flight, not yet counted as sent */
    bool small_send_buffer : 1;         /* SEALING_KERNEL: the send buffer holds few segments */
    bool peer_ended : 1;
    bool truncated : 1;                 /* end of stream without close_notify */
    bool got_plain_http : 1;
    bool finishing : 1;                 /* wire_finish: the end follows the queued output */
    bool close_notify_queued : 1;
    bool unacknowledged_before : 1;     /* result of the last check of wire_unacknowledged */
    bool key_exhausted : 1;             /* `ending` was called */
};

/*
 * Takes over a connected socket, with TCP_NODELAY if it is TCP (inherited from the listener). With `context` a TLS
 * handshake runs first. `wire` is embedded in its owner and zeroed; `shared`, `events` and `settings` outlive it. 0,
 * or -ENOMEM (fd is closed then). `opened` or `closed` follows later, never inside this call.
 */
MUST_CHECK int wire_open(struct wire *wire, struct wire_shared *shared, const struct wire_events *events,
                         const struct wire_settings *settings, int fd, struct tls_context *context);

/*
 * As wire_open, for the client of a TLS server: `context` is from tls_client_context_create, and the certificate
 * must match `name`. `opened` follows after the handshake, or `closed`. `resumption` (may be NULL): the server's
 * session for resumption.
 */
MUST_CHECK int wire_open_client(struct wire *wire, struct wire_shared *shared, const struct wire_events *events,
                                const struct wire_settings *settings, int fd, struct tls_context *context,
                                struct str name, const struct tls_resumption *resumption);

/*
 * Limits the bytes that are queued in the socket and not sent to `bytes` (TCP_NOTSENT_LOWAT, tcp(7)), because a more
 * urgent response cannot overtake them. If the peer acknowledges more than `bytes` in UNSENT_MS, the limit is raised to
 * the bytes acknowledged in that time, at most `bytes` << UNSENT_DOUBLINGS.
 *
 * After a chunk with `ends_turn`, wire_room() is 0 while a send is in flight, or while as much is queued as the socket
 * accepts without waiting. At most one record, after response heads of less than half a record, then waits for the
 * socket. No effect on Unix sockets.
 */
void wire_limit_unsent(struct wire *wire, uint32_t bytes);

/*
 * Changes the settings, which must outlive the wire. No effect if the record size differs while a record is open, whose
 * room wire_room has announced.
 */
void wire_apply_settings(struct wire *wire, const struct wire_settings *settings);

/*
 * Requests input: `received` follows (unread bytes first, later in this loop iteration). No effect while a request
 * is pending.
 */
void wire_receive(struct wire *wire);
/*
 * As wire_receive, for the rest of a large body: up to LIMIT_RECEIVE_LARGE bytes are received at once, as a large op of
 * the loop (rule 7 of io/loop.h). Over TLS `received` gets them in several calls, one for each record.
 */
void wire_receive_large(struct wire *wire);
/* True if wire_receive_pipe is possible: a plain connection, no unread bytes, no request pending. */
bool wire_can_receive_pipe(const struct wire *wire);
/*
 * Requests at most `max` bytes in an empty pipe; wire_can_receive_pipe() is true. `piped` follows, or `received` of
 * length 0. The wire references the pipe until then or until it is closed: bytes may still arrive in it.
 */
void wire_receive_pipe(struct wire *wire, struct pipe *pipe, size_t max);
/* False if unrequested bytes have arrived. Plain connections only. */
bool wire_has_no_input(const struct wire *wire);
/*
 * Detects a reset while no input is requested (the owner has enough, or the stream ended): `closed` follows. Ends
 * with the next wire_receive.
 */
void wire_watch(struct wire *wire);

/* Bytes that wire_send accepts now; 0: wait for `writable`. */
size_t wire_room(const struct wire *wire);
/* The kinds of chunk that the wire accepts now: bits of enum chunk_kind. */
unsigned wire_accepts(const struct wire *wire);
/*
 * Adds the next chunk; wire_room() > 0. Bytes (at most wire_room) are copied or encrypted before the return. A span of
 * a file or a pipe may have any length (the pipe must contain all of it). The owner keeps the file open until there is
 * room again, or `closed`; the wire references the pipe. 0 or -errno; after an error only wire_close is allowed.
 */
MUST_CHECK int wire_send(struct wire *wire, const struct chunk *chunk);
/* Ends a round: closes the open record, and sends all queued output. */
void wire_flush(struct wire *wire);
/*
 * Closes the sending direction only: after the queued output, close_notify (TLS) and FIN (not on a kTLS socket: see
 * wire_unacknowledged).
 */
void wire_finish(struct wire *wire);
/*
 * True if nothing is queued or in flight. The wire then holds only its own memory; the cache may evict its cipher
 * context.
 */
bool wire_drained(const struct wire *wire);

/*
 * Ends a response: counts its transfer, and resets it. Returns the figures for the log. `transfer` was passed with the
 * chunks of the response; NULL: that of chunks without one.
 */
struct transfer wire_transfer_end(struct wire *wire, struct transfer *transfer);

/*
 * Bytes of the last span that were not read or sent: the missing part of an aborted response. 0 if the span belongs to
 * another transfer. NULL: that of chunks without one. Valid until `closed` returns.
 */
uint64_t wire_unsent(const struct wire *wire, const struct transfer *transfer);

/* The local address; AF_UNSPEC: unknown. */
void wire_local_address(const struct wire *wire, union proxy_address *out);

/*
 * Counters of bytes sent and received, to detect a stalled peer: a timer compares two readings. Only differences are
 * meaningful.
 */
uint64_t wire_bytes_sent(const struct wire *wire);
uint64_t wire_bytes_received(const struct wire *wire);
/* As wire_bytes_sent, for bytes acknowledged by TCP. Costs a system call. */
uint64_t wire_bytes_confirmed(const struct wire *wire);
/* True once the sending side is shut down: the owner limits this time to settings->lingering_ms. */
static inline bool wire_lingering(const struct wire *wire)
{
    return wire->state == WIRE_LINGERING;
}
/*
 * True if closing the socket would lose output: the kernel then drops records of a kTLS socket that it has not passed
 * to TCP. False once two successive checks found no unacknowledged bytes in TCP. Such lingering counts as sending:
 * wire_bytes_sent shows whether the peer accepts data. A check costs one or two system calls.
 */
bool wire_unacknowledged(struct wire *wire);

/*
 * Closes the connection. WIRE_CLOSE_ORDERLY: after all queued output: close_notify, shutdown(SHUT_WR), lingering
 * (input is discarded, at most LIMIT_LINGERING_BYTES), close. Others: at once, without close_notify (an aborted
 * response must not look complete). `closed` follows, never inside this call. A second call may abort an orderly
 * close.
 */
void wire_close(struct wire *wire, enum wire_close_reason end);

/* After `received` of length 0: TLS ended without close_notify (RFC 8446 6.1); the stream may have been truncated. */
static inline bool wire_truncated(const struct wire *wire)
{
    return wire->truncated;
}

/*
 * True while received bytes are early data (RFC 8446 2.3): they may be a replay, and the peer is not authenticated
 * yet.
 */
static inline bool wire_early(const struct wire *wire)
{
    return wire->tls && tls_session_early(wire->tls);
}

/*
 * True if the peer sent plain HTTP to a TLS port: `opened` was called, the wire is plain, and the received bytes are
 * discarded.
 */
static inline bool wire_got_plain_http(const struct wire *wire)
{
    return wire->got_plain_http;
}

#endif
