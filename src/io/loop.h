/*
 * The event loop: the only I/O interface. A caller submits an operation (op), and `done` reports its completion; the
 * readiness of descriptors is internal.
 *
 * The contract of both backends, and of the scripted backend of the tests:
 *
 * 1. An op is embedded in its owner, which outlives it.
 * 2. `done` runs exactly once per submit, never inside a submit or another `done`.
 * 3. Backends have identical results: callers never get EINTR, ENOBUFS or a short send.
 * 4. A cancelled op finishes with -ECANCELED, or with its result if the operation was complete before.
 * 5. The bytes of a receive are valid until `done` returns. An idle connection holds no buffer. Receive is single-shot:
 *    the owner exerts backpressure by not submitting the next one.
 * 6. To close: cancel, count the completions, free in the last one.
 * 7. Large sends, receives and files share one budget per loop iteration. It is used up by LIMIT_ITERATION_BYTES of
 *    sends, by LIMIT_ITERATION_FILE_BYTES of receives or of files in the page cache, by LIMIT_ITERATION_FETCHED_BYTES
 *    of an OP_SENDFILE that a helper thread has read for, or after LIMIT_ITERATION_US. Further large ops wait in a FIFO
 *    queue. OP_READ, which counts as a send of its bytes, and polls for POLLOUT, which count by their time, are large
 *    ops, too, since their owners then continue their output. Small sends do not wait.
 *
 * A ring must not be shared by fork: loop_open is called in the process that uses the loop.
 */
#ifndef IO_LOOP_H
#define IO_LOOP_H

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/must_check.h"
#include "base/str.h"

#include <sys/socket.h>
#include <sys/uio.h>

struct op;
struct loop;

/* result: bytes, a new descriptor, poll events, or -errno. 0 from OP_RECV is the end of the stream. */
typedef void op_done(struct op *op, int result);

enum __attribute__((packed)) op_verb {
    OP_NONE,
    OP_ACCEPT,                      /* a new non-blocking, close-on-exec socket; `address` filled in */
    OP_CONNECT,                     /* 0 when connected */
    OP_RECV,                        /* bytes in op->received */
    /* Sends all parts: their sum (at most INT_MAX), or -errno. op->send.progress has the bytes sent in either case. */
    OP_SEND,
    /*
     * Sends the whole span: the number of bytes (at most INT_MAX; exact in op->file.progress), fewer only at an early
     * end of the file; or -errno.
     */
    OP_SENDFILE,
    /* As splice(2): bytes moved, 0 at the end of the source; waits for the descriptor that is not ready. */
    OP_SPLICE,
    OP_POLL,                        /* the events */
    OP_TIMER,                       /* 0 on expiry */
    OP_READ,                        /* pread: bytes, short only at the end of the file */
    /* Runs `work` on a helper thread: its result, or -EBUSY if LIMIT_HELPER_QUEUE ops are queued. */
    OP_OFFLOAD,
};

enum __attribute__((packed)) op_state {
    OP_STATE_IDLE,
    OP_STATE_WAITING,    /* with the backend, or in the timer heap */
    OP_STATE_DEFERRED,   /* in large_queue or `retries`: submitted to the backend again in a later iteration */
    OP_STATE_OFFLOADED,  /* with the helper threads */
    OP_STATE_CANCELLING, /* cancelled while waiting or offloaded, and not finished yet */
    OP_STATE_READY,      /* queued; the backend's deliver makes the call */
    OP_STATE_FINISHED,   /* queued with its result */
};

struct op {
    op_done *done;
    enum op_verb verb;
    enum op_state state;            /* used by the loop */
    int fd;
    int result;                     /* used by the loop, from the end of the operation until `done` */
    int wait_fd;                    /* used by the backend: the descriptor that the op waits for, or a cancel state */
    struct list link;               /* used by the loop: link in the queue that the op is in */
    union {
        struct {
            struct str received;    /* OP_RECV */
            /* OP_RECV: waits in large_queue, then receives at most LIMIT_RECEIVE_LARGE bytes. */
            bool large;
        };
        struct {
            /* Parts and their bytes must not change until `done`. */
            const struct iovec *parts;
            int count;
            int flags;              /* MSG_MORE or 0 */
            /* Most bytes are mapped pages of files: they use the budget like those of OP_SENDFILE. */
            bool pages;
            size_t progress;
        } send;
        struct {
            int fd;
            /* OP_SENDFILE: a kTLS socket whose send buffer holds few segments: one record per call. */
            bool small_send_buffer;
            /* OP_SENDFILE, used by the loop: helper reads since the last sent byte; not 0 again after the first. */
            uint8_t fetches;
            /* KiB to read ahead: OP_READ: from `at` on; OP_SENDFILE: after the span. */
            uint16_t ahead_kib;
            int64_t at;
            uint64_t length;
            uint64_t progress;      /* readable while the op waits: a timer can check progress */
            union {
                char *into;         /* OP_READ: the caller's memory */
                /* OP_SENDFILE, used by the loop: file bytes before this offset are in the page cache. */
                uint64_t cached_until;
            };
        } file;
        struct {
            int to;
            bool small_send_buffer; /* `to` is a kTLS socket whose send buffer holds few segments, as for OP_SENDFILE */
            size_t length;
        } splice;
        struct {
            /* OP_ACCEPT: filled in, may be NULL; OP_CONNECT: the destination; owned by the owner of the op. */
            struct sockaddr_storage *address;
            socklen_t length;
        } peer;
        unsigned poll_events;
        uint64_t deadline_ms;       /* OP_TIMER: on loop->clock.monotonic_ms */
        struct {
            /* Runs on a helper thread; must not touch the loop. */
            int (*work)(void *argument);
            void *argument;
        } offload;
    };
    union {                         /* used by the loop */
        uint64_t mark;              /* index in the heap, phase of a connect, or whether the last receive left bytes */
        int (*work)(struct op *op); /* OP_STATE_OFFLOADED: the function the helper thread runs */
    };
};

struct loop_backend {
    const char *name;                               /* "io_uring", "epoll", "scripted" */
    int (*open)(struct loop *loop);                 /* 0 or -errno */
    void (*submit)(struct loop *loop, struct op *op);
    void (*cancel)(struct loop *loop, struct op *op);
    /* Waits for events until `until_ms`, sets the clock, and queues finished ops. 0 or -errno. */
    int (*wait)(struct loop *loop, uint64_t until_ms);
    /* Starts submitted ops now instead of at the next wait; NULL: they always start at once. */
    void (*start)(struct loop *loop);
    /* Makes the system call of an op in OP_STATE_READY: the op finishes, or waits again. */
    void (*deliver)(struct loop *loop, struct op *op);
    void (*remove_fd)(struct loop *loop, int fd);   /* called before the descriptor is closed */
    void (*close)(struct loop *loop);
};

extern const struct loop_backend loop_backend_uring; /* where HAVE_IO_URING */
extern const struct loop_backend loop_backend_epoll; /* where HAVE_EPOLL */

struct loop_timers;
struct helpers;

struct loop {
    const struct loop_backend *backend;
    void *backend_state;
    struct clock clock;             /* set once per iteration */
    struct log *log;                /* not owned */
    struct list finished;           /* ops whose `done` has not run yet */
    struct list retries;            /* ops to be submitted again in the next iteration */
    struct list large_queue;        /* large ops that wait for an iteration with bytes left */
    uint64_t iteration_bytes_left;  /* bytes that large ops may still move; 0 during `wait` */
    uint64_t iteration_end_us;      /* clock_monotonic_us() at which iteration_bytes_left becomes 0 */
    /* Set by the owner of the loop; may be NULL. Called after each `done` from large_queue; counts to the op's time. */
    void (*large_done)(struct loop *loop);
    struct loop_timers *timers;
    struct helpers *helpers;        /* started on first use */
    unsigned in_flight;             /* ops submitted whose `done` has not run yet */
};

/*
 * Opens a loop with the named backend: "auto" tries io_uring and falls back to epoll with one notice that gives the
 * reason ("io_uring: Operation not permitted"). 0, -EINVAL for an unknown or missing backend, or -errno of the
 * requested backend.
 */
MUST_CHECK int loop_open(struct loop *loop, const char *use, struct log *log);
/* The same with a given backend (tests). */
MUST_CHECK int loop_open_backend(struct loop *loop, const struct loop_backend *backend, struct log *log);

/* No operation may be in flight. */
void loop_close(struct loop *loop);

/*
 * One iteration: waits at most until `until_ms` (loop time; 0: no wait), then runs finished ops. Returns their
 * number, or -errno.
 */
int loop_run_iteration(struct loop *loop, uint64_t until_ms);

/*
 * Submits op, filled in by one of the functions below. It belongs to the loop until `done` runs. Submitting a
 * waiting op is a bug (assert).
 */
void loop_submit(struct loop *loop, struct op *op);

/* Requests cancellation: `done` still runs, once. No effect on an idle or finished op. */
void loop_cancel(struct loop *loop, struct op *op);

/*
 * Closes a descriptor that no op uses, and drops the backend's state of it. Every descriptor that an op has waited for
 * (sockets, pipes, eventfds) must be closed by this function and not by close(2); regular files by either.
 */
void loop_close_fd(struct loop *loop, int fd);

/* True if op may be submitted: it was never submitted, or `done` has begun. */
static inline bool op_idle(const struct op *op)
{
    return op->state == OP_STATE_IDLE;
}

/* True if only `done` is outstanding: the caller may reuse the memory that the op uses. */
static inline bool op_finished(const struct op *op)
{
    return op->state == OP_STATE_FINISHED;
}

/* Each of these functions fills in an op and submits it. The owner sets `op->done` before. */
void loop_accept(struct loop *loop, struct op *op, int listener, struct sockaddr_storage *address);
void loop_connect(struct loop *loop, struct op *op, int fd, struct sockaddr_storage *address, socklen_t length);
void loop_recv(struct loop *loop, struct op *op, int fd);
/* For large bodies: a large op, which receives at most LIMIT_RECEIVE_LARGE bytes. */
void loop_recv_large(struct loop *loop, struct op *op, int fd);
void loop_send(struct loop *loop, struct op *op, int fd, const struct iovec *parts, int count, int flags);
/* As loop_send; most of the bytes are mapped pages of cached files, which the kernel reads. */
void loop_send_pages(struct loop *loop, struct op *op, int fd, const struct iovec *parts, int count, int flags);
void loop_sendfile(struct loop *loop, struct op *op, int to, int file, int64_t at, uint64_t length,
                   bool small_send_buffer);
/* As loop_sendfile, for a part that is followed by `ahead` bytes: a helper thread may read these as well. */
void loop_sendfile_part(struct loop *loop, struct op *op, int to, int file, int64_t at, uint64_t length, uint64_t ahead,
                        bool small_send_buffer);
void loop_splice(struct loop *loop, struct op *op, int from, int to, size_t length, bool small_send_buffer);
void loop_poll(struct loop *loop, struct op *op, int fd, unsigned events);
void loop_timer(struct loop *loop, struct op *op, uint64_t deadline_ms);
/*
 * Moves the deadline of a timer that is waiting, or due while `done` has not run; a move to a later time does not
 * change the heap. Submits an idle timer. No effect on a cancelled one.
 */
void loop_timer_move(struct loop *loop, struct op *op, uint64_t deadline_ms);
/*
 * Reads on a helper thread, for bytes that the page cache lacks; the thread first requests readahead of `ahead` bytes
 * (rounded up, at most LIMIT_READ_AHEAD) and switches the kernel's readahead off for this descriptor.
 */
void loop_read(struct loop *loop, struct op *op, int file, int64_t at, char *into, size_t length, uint64_t ahead);
void loop_offload(struct loop *loop, struct op *op, int (*work)(void *argument), void *argument);

/*
 * Reads the file from `at` on into the parts, as far as the page cache has it. Returns the number of bytes, or -EAGAIN
 * if the cache has none, or another -errno. Pages that are missing are read ahead by the kernel: starting that can take
 * a millisecond. File systems without RWF_NOWAIT (tmpfs and others) are read in any case.
 */
MUST_CHECK ssize_t loop_read_cached(int file, int64_t at, const struct iovec *parts, int count);

/*
 * True if the page cache has these bytes of a file, as far as this can be determined without a read: the first and the
 * last page are probed, and with cachestat(2) (Linux 6.5) all pages. True on file systems without RWF_NOWAIT. False
 * past the end of the file.
 */
MUST_CHECK bool loop_is_cached(int file, int64_t at, uint64_t length);

#endif
