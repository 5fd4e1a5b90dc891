/*
 * The loop: the only I/O interface of the house. Nobody above hears "readable":
 * an operation was asked for, and later it is finished.
 *
 * The contract, kept by both backends (and by the scripted one of the tests):
 *
 * 1. An op is embedded in its owner, which outlives it.
 * 2. `done` runs exactly once per submit, never inside a submit or another `done`.
 * 3. Backends give identical results: EINTR, ENOBUFS and short sends never escape.
 * 4. Cancel asks; -ECANCELED answers (or the true result, if it was finished already).
 * 5. A receive lends bytes: they are yours until `done` returns. An idle connection holds no buffer,
 *    and not asking again is backpressure. Receive is single-shot.
 * 6. Closing means cancel, count down, and free in the last completion.
 * 7. Large sends and files move LIMIT_TURN_BYTES in one turn, all ops together (files that are in memory
 *    LIMIT_TURN_FILE_BYTES, those fetched from a disk LIMIT_TURN_FETCHED_BYTES); the others wait in the tail, first
 *    come, first served. Small sends go at once.
 *
 * No ring exists before fork: loop_open is called in the process that uses it.
 */
#ifndef IO_LOOP_H
#define IO_LOOP_H

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/must_check.h"
#include "base/str.h"

#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct op;
struct loop;

/* result: bytes, a new descriptor, poll events, or -errno. 0 from OP_RECV is the end of the stream. */
typedef void op_done(struct op *op, int result);

enum __attribute__((packed)) op_verb {
    OP_NONE,
    OP_ACCEPT,   /* a new non-blocking, close-on-exec socket; `address` filled in */
    OP_CONNECT,  /* 0 when connected */
    OP_RECV,     /* bytes in op->lent */
    OP_SEND,     /* all parts are sent before `done`: the sum, or -errno (bytes sent before it in op->progress) */
    OP_SENDFILE, /* the whole span, or -errno: bytes in op->file.progress (result: at most INT_MAX of them), fewer than asked
                    only where the file ended early or an error came */
    OP_SPLICE,   /* as splice(2): bytes moved, 0 at the end of the source; waits for whichever end is not ready */
    OP_POLL,     /* the events that came */
    OP_TIMER,    /* 0 when due */
    OP_OPEN,     /* openat2(2): a descriptor */
    OP_READ,     /* pread: bytes, short only at the end of the file */
    OP_OFFLOAD,  /* `work` ran on a helper thread: its result; -EBUSY where LIMIT_HELPER_QUEUE are waiting */
};

enum __attribute__((packed)) op_state {
    OP_STATE_IDLE,
    OP_STATE_WAITING,    /* with the backend, or in the heap of timers */
    OP_STATE_DEFERRED,   /* had its share of this turn: goes on in the next */
    OP_STATE_HELPED,     /* with the helper threads */
    OP_STATE_CANCELLING, /* was one of the three above; its end is under way */
    OP_STATE_READY,      /* queued; the backend's deliver makes the call */
    OP_STATE_FINISHED,   /* queued with its result */
};

struct op {
    op_done *done;
    enum op_verb verb;
    enum op_state state;            /* the loop's */
    int fd;
    int result;                     /* the loop's, between finishing and `done` */
    int wait_fd;                    /* the backend's: whose readiness is waited for */
    struct list link;               /* the loop's: of the queue that the op is in */
    union {
        struct str lent;            /* OP_RECV */
        struct {
            const struct iovec *parts; /* frozen, with the bytes under them, until `done` */
            int count;
            int flags;              /* MSG_MORE or 0 */
            size_t progress;
        } send;
        struct {
            int fd;
            bool narrow;            /* OP_SENDFILE: a kTLS socket that holds few segments: record by record */
            uint8_t fetches;        /* OP_SENDFILE, the loop's: by helpers, since the last byte was sent; never 0 again */
            int64_t at;
            uint64_t length;
            uint64_t progress;      /* may be read while waiting: for a timer that wants to see movement */
            union {
                char *into;         /* OP_READ: the caller's memory */
                uint64_t hot_until; /* OP_SENDFILE, the loop's: file bytes before it need no disk */
            };
        } file;
        struct {
            int to;
            bool narrow;            /* `to` is a kTLS socket that holds few segments: as for OP_SENDFILE */
            size_t length;
        } splice;
        struct {
            struct sockaddr_storage *address; /* OP_ACCEPT: filled in, may be NULL; OP_CONNECT: where to; the owner's */
            socklen_t length;
        } peer;
        unsigned poll_events;
        uint64_t deadline_ms;       /* OP_TIMER: on loop->clock.monotonic_ms */
        struct {
            const char *path;       /* frozen until `done` */
            struct open_how how;
        } open;
        struct {
            int (*work)(void *argument); /* on a helper thread: touches nothing of the loop */
            void *argument;
        } offload;
    };
    union {                         /* the loop's own */
        uint64_t mark;              /* place in the heap, phase of a connect, what the last receive left */
        int (*work)(struct op *op); /* OP_STATE_HELPED: what the helper thread runs */
    };
};

struct loop_backend {
    const char *name;                                  /* "io_uring", "epoll", "scripted" */
    int (*open)(struct loop *loop);                    /* 0 or -errno */
    void (*submit)(struct loop *loop, struct op *op);
    void (*cancel)(struct loop *loop, struct op *op);
    int (*wait)(struct loop *loop, uint64_t until_ms); /* sets the clock, moves finished ops to loop->finished */
    void (*start)(struct loop *loop);                  /* what was submitted begins now, not at the next wait; NULL: it always does */
    void (*deliver)(struct loop *loop, struct op *op); /* makes a READY op's call: it is finished, or waits again */
    void (*forget)(struct loop *loop, int fd);         /* the descriptor is about to be closed */
    void (*close)(struct loop *loop);
};

extern const struct loop_backend loop_backend_uring; /* where HAVE_IO_URING */
extern const struct loop_backend loop_backend_epoll; /* where HAVE_EPOLL */

struct loop_timers;
struct helpers;

struct loop {
    const struct loop_backend *backend;
    void *backend_state;
    struct clock clock;                                /* set once per turn */
    struct log *log;                                   /* not owned */
    struct list finished;                              /* ops whose done is yet to run */
    struct list retries;                               /* ops to be submitted again in the next turn */
    struct list tail;                                  /* large ops that wait for a turn with room */
    uint64_t turn_left;                                /* bytes that large ops may still move; not 0 only while none waits in the tail */
    struct loop_timers *timers;
    struct helpers *helpers;                           /* started when first needed */
    unsigned in_flight;                                /* submitted and not yet done */
};

/*
 * Opens a loop with the named backend: "auto" tries io_uring and falls back to epoll with one
 * notice line that says why ("io_uring: Operation not permitted"). 0, -EINVAL for an unknown or unbuilt
 * name, or -errno of the backend that was insisted on.
 */
MUST_CHECK int loop_open(struct loop *loop, const char *use, struct log *log);
/* The same with a given backend (tests). */
MUST_CHECK int loop_open_backend(struct loop *loop, const struct loop_backend *backend, struct log *log);

/* Nothing may be in flight. */
void loop_close(struct loop *loop);

/* One turn: wait at most until `until_ms` (loop time; 0: do not wait), then run what finished. Returns ops run, or -errno. */
int loop_turn(struct loop *loop, uint64_t until_ms);

/*
 * Asks for op->verb. The op is filled in by one of the functions below and is the loop's until
 * `done` runs; a submit of a waiting op is a bug (assert).
 */
void loop_submit(struct loop *loop, struct op *op);

/* Asks for an end: `done` still runs, once. No effect on an idle or finished op. */
void loop_cancel(struct loop *loop, struct op *op);

/*
 * Closes a descriptor on which nothing is in flight, and forgets what the backend knew of it. Every
 * descriptor that was ever waited for (sockets, pipes, eventfds) must be closed here, not by close(2); files need not.
 */
void loop_close_fd(struct loop *loop, int fd);

/* True where nothing was asked for, or `done` has begun: it may be submitted. */
static inline bool op_idle(const struct op *op)
{
    return op->state == OP_STATE_IDLE;
}

/* True where the op is carried out and only its `done` is still to come: the memory it was lent may be used again. */
static inline bool op_carried_out(const struct op *op)
{
    return op->state == OP_STATE_FINISHED;
}

/* Fill an op and submit it. `op->done` is set by the owner beforehand. */
void loop_accept(struct loop *loop, struct op *op, int listener, struct sockaddr_storage *address);
void loop_connect(struct loop *loop, struct op *op, int fd, struct sockaddr_storage *address, socklen_t length);
void loop_recv(struct loop *loop, struct op *op, int fd);
void loop_send(struct loop *loop, struct op *op, int fd, const struct iovec *parts, int count, int flags);
void loop_sendfile(struct loop *loop, struct op *op, int to, int file, int64_t at, uint64_t length, bool narrow);
void loop_splice(struct loop *loop, struct op *op, int from, int to, size_t length, bool narrow);
void loop_poll(struct loop *loop, struct op *op, int fd, unsigned events);
void loop_timer(struct loop *loop, struct op *op, uint64_t deadline_ms);
/* Moves the deadline of a waiting timer (lazily: later is free), or submits an idle one. No effect on a cancelled one. */
void loop_timer_move(struct loop *loop, struct op *op, uint64_t deadline_ms);
void loop_open_file(struct loop *loop, struct op *op, int directory, const char *path, const struct open_how *how);
/* Bytes that are in the page cache are read at once without a thread (preadv2 RWF_NOWAIT), others asynchronously. */
void loop_read(struct loop *loop, struct op *op, int file, int64_t at, char *into, size_t length);
void loop_offload(struct loop *loop, struct op *op, int (*work)(void *argument), void *argument);

/*
 * Reads the file from `at` on into the parts, as far as that needs no disk: the count (short where the page cache does not hold the
 * rest at hand, or the file ends), or -EAGAIN where that is none. EOPNOTSUPP of tmpfs and others counts as hot.
 */
MUST_CHECK ssize_t loop_read_hot(int file, int64_t at, const struct iovec *parts, int count);

#endif
