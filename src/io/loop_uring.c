/*
 * The io_uring backend, and the only file that includes liburing.h. Receives use buffer selection: a receive needs no
 * system call of its own, and an idle connection holds no buffer. Other calls are made directly (op_attempt.c); after
 * EAGAIN the ring polls the descriptor. One io_uring_enter per iteration submits all entries and collects completions.
 */
#include "io/loop.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "io/backend.h"
#include "io/helpers.h"

#include <errno.h>
#include <liburing.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SUBMIT_ENTRIES   256
#define COMPLETE_ENTRIES 4096
#define BUFFER_GROUP     0
#define SEND_BY_RING_MAX (8 * 1024)

/* op->mark: the last receive was large and full; the socket may be empty. Distinct from IORING_CQE_F_SOCK_NONEMPTY. */
#define LARGE_RECEIVE_FULL 1

#define CANCEL_NOT_SUBMITTED (-2) /* op->wait_fd: its cancel waits for a free submission queue entry */

struct uring {
    struct io_uring ring;
    struct io_uring_buf_ring *buffer_ring;
    char *buffers;       /* LIMIT_RECEIVE_BUFFERS of LIMIT_RECEIVE_BYTES */
    char *large;         /* LIMIT_RECEIVE_LARGE bytes, valid during the callback of a large receive */
    struct list cancels; /* ops whose cancel is not submitted yet */
};

/*
 * Opens the ring, disabled, with the best flags that the kernel supports: deferred task work needs Linux 6.1, single
 * issuer 6.0, cooperative task work 5.19.
 */
static int ring_open(struct io_uring *ring)
{
    static const unsigned flags[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL,
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SUBMIT_ALL,
        IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SUBMIT_ALL,
        0,
    };
    int error = -EINVAL;

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]) && error == -EINVAL; i++) {
        struct io_uring_params params = {.flags = flags[i] | IORING_SETUP_CQSIZE | IORING_SETUP_R_DISABLED,
                                         .cq_entries = COMPLETE_ENTRIES};

        error = io_uring_queue_init_params(SUBMIT_ENTRIES, ring, &params);
    }
    return error;
}

/* liburing 2.3 declares functions for these calls, but does not export them. */
static int ring_register(struct io_uring *ring, unsigned opcode, const void *argument, size_t count)
{
    return syscall(SYS_io_uring_register, ring->ring_fd, opcode, argument, count) < 0 ? -errno : 0;
}

/*
 * Permits only the operations below, then enables the ring (Linux 5.10). Rings bypass filters of system calls, so
 * without this a compromised worker could open files or sockets that its sandbox forbids.
 */
static int ring_enable(struct io_uring *ring)
{
    static const struct io_uring_restriction permitted[] = {
        {.opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_RECV},
        {.opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_SEND},
        {.opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_POLL_ADD},
        {.opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_ASYNC_CANCEL},
        {.opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED, .sqe_flags = IOSQE_BUFFER_SELECT},
        {.opcode = IORING_RESTRICTION_REGISTER_OP, .register_op = IORING_UNREGISTER_RING_FDS}, /* when it is closed */
    };
    int error = ring_register(ring, IORING_REGISTER_RESTRICTIONS, permitted, sizeof(permitted) / sizeof(permitted[0]));

    return error < 0 ? error : ring_register(ring, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
}

static void *map_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

#define BUFFER_RING_SIZE (LIMIT_RECEIVE_BUFFERS * sizeof(struct io_uring_buf))
#define BUFFERS_SIZE     ((size_t)LIMIT_RECEIVE_BUFFERS * LIMIT_RECEIVE_BYTES)

static void buffers_unmap(struct uring *uring)
{
    if (uring->buffer_ring)
        munmap(uring->buffer_ring, BUFFER_RING_SIZE);
    if (uring->buffers)
        munmap(uring->buffers, BUFFERS_SIZE);
    if (uring->large)
        munmap(uring->large, LIMIT_RECEIVE_LARGE);
}

static void buffer_return(struct uring *uring, unsigned number)
{
    io_uring_buf_ring_add(uring->buffer_ring, uring->buffers + (size_t)number * LIMIT_RECEIVE_BYTES,
                          LIMIT_RECEIVE_BYTES, (unsigned short)number,
                          io_uring_buf_ring_mask(LIMIT_RECEIVE_BUFFERS), 0);
    io_uring_buf_ring_advance(uring->buffer_ring, 1);
}

static int buffers_open(struct uring *uring)
{
    struct io_uring_buf_reg registration = {.ring_entries = LIMIT_RECEIVE_BUFFERS, .bgid = BUFFER_GROUP};
    int error;

    uring->buffer_ring = map_memory(BUFFER_RING_SIZE);
    uring->buffers = map_memory(BUFFERS_SIZE);
    uring->large = map_memory(LIMIT_RECEIVE_LARGE);
    if (!uring->buffer_ring || !uring->buffers || !uring->large)
        return -ENOMEM;
    registration.ring_addr = (uintptr_t)uring->buffer_ring;
    io_uring_buf_ring_init(uring->buffer_ring);
    error = io_uring_register_buf_ring(&uring->ring, &registration, 0);
    if (error < 0)
        return error == -EINVAL ? -EOPNOTSUPP : error; /* before 5.19 */
    for (unsigned i = 0; i < LIMIT_RECEIVE_BUFFERS; i++)
        buffer_return(uring, i);
    return 0;
}

static int uring_open(struct loop *loop)
{
    struct uring *uring = calloc(1, sizeof(*uring));
    int error;

    if (!uring)
        return -ENOMEM;
    error = ring_open(&uring->ring);
    if (error < 0) {
        free(uring);
        return error;
    }
    error = buffers_open(uring);
    if (error == 0) {
        (void)io_uring_register_ring_fd(&uring->ring); /* saves a descriptor lookup per call; since Linux 5.18 */
        error = ring_enable(&uring->ring);
    }
    if (error < 0) {
        io_uring_queue_exit(&uring->ring);
        buffers_unmap(uring);
        free(uring);
        return error;
    }
    list_init(&uring->cancels);
    loop->backend_state = uring;
    return 0;
}

static void uring_close(struct loop *loop)
{
    struct uring *uring = loop->backend_state;

    io_uring_queue_exit(&uring->ring);
    buffers_unmap(uring);
    free(uring);
    loop->backend_state = NULL;
}

/* NULL if the submission queue is full and the kernel accepts no more now. */
static struct io_uring_sqe *get_sqe(struct uring *uring)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&uring->ring);

    if (entry)
        return entry;
    io_uring_submit(&uring->ring);
    return io_uring_get_sqe(&uring->ring);
}

static void submit_poll(struct loop *loop, struct op *op, int fd, unsigned events)
{
    struct io_uring_sqe *entry = get_sqe(loop->backend_state);

    if (!entry) {
        loop_retry(loop, op);
        return;
    }
    io_uring_prep_poll_add(entry, fd, events);
    io_uring_sqe_set_data(entry, op);
}

/*
 * The bytes of a large receive are copied by recv(2) when its turn comes, immediately before they are used. The ring
 * only waits for input.
 */
static void submit_large_receive(struct loop *loop, struct op *op)
{
    if (op->mark != 0)
        loop_ready(loop, op);
    else
        submit_poll(loop, op, op->fd, POLLIN);
}

/*
 * op->mark states whether the last receive left bytes in the socket. If not, the kernel polls first, which saves a
 * receive that would fail with EAGAIN.
 */
static void submit_receive(struct loop *loop, struct op *op)
{
    struct io_uring_sqe *entry = get_sqe(loop->backend_state);

    if (!entry) {
        loop_retry(loop, op);
        return;
    }
    io_uring_prep_recv(entry, op->fd, NULL, LIMIT_RECEIVE_BYTES, 0);
    if (op->mark != IORING_CQE_F_SOCK_NONEMPTY)
        entry->ioprio = IORING_RECVSEND_POLL_FIRST;
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->buf_group = BUFFER_GROUP;
    io_uring_sqe_set_data(entry, op);
}

/*
 * Sends one part by the ring, which costs less than send(2) (README.md). `full`: the previous send was short, so that
 * the kernel polls first.
 */
static void submit_send(struct loop *loop, struct op *op, bool full)
{
    struct io_uring_sqe *entry = get_sqe(loop->backend_state);
    const struct iovec *part = op->send.parts;
    size_t length = size_sub_sat(part->iov_len, op->send.progress);

    if (!entry) {
        loop_retry(loop, op);
        return;
    }
    if (length > LIMIT_ITERATION_BYTES)
        length = LIMIT_ITERATION_BYTES;
    io_uring_prep_send(entry, op->fd, (char *)part->iov_base + op->send.progress, length, MSG_NOSIGNAL);
    if (full)
        entry->ioprio = IORING_RECVSEND_POLL_FIRST;
    io_uring_sqe_set_data(entry, op);
}

/*
 * False for sends that are made directly: several parts, which need one call; MSG_MORE, whose bytes must precede a file
 * span that follows at once; and long parts, since their bytes may leave the CPU cache before the end of the iteration.
 */
static bool send_by_ring(const struct op *op)
{
    return op->verb == OP_SEND && op->send.count == 1 && op->send.flags == 0 && op->send.parts->iov_len > 0 &&
           op->send.parts->iov_len <= SEND_BY_RING_MAX;
}

static void try_or_wait(struct loop *loop, struct op *op)
{
    struct readiness wait;

    if (op_attempt(loop, op, &wait))
        submit_poll(loop, op, wait.fd, wait.events);
}

static void uring_submit(struct loop *loop, struct op *op)
{
    op->wait_fd = -1;
    if (send_by_ring(op)) {
        submit_send(loop, op, false);
        return;
    }
    switch (op->verb) {
    case OP_RECV:
        if (op->large)
            submit_large_receive(loop, op);
        else
            submit_receive(loop, op);
        break;
    case OP_POLL:
        submit_poll(loop, op, op->fd, op->poll_events);
        break;
    case OP_READ:
        read_submit(loop, op);
        break;
    case OP_OFFLOAD:
        helpers_submit(loop, op, helpers_offload);
        break;
    case OP_ACCEPT:
    case OP_CONNECT:
    case OP_SEND:
    case OP_SENDFILE:
    case OP_SPLICE:
    case OP_TIMER:
    case OP_NONE:
        try_or_wait(loop, op);
        break;
    }
}

static bool submit_cancel(struct uring *uring, struct op *op)
{
    struct io_uring_sqe *entry = get_sqe(uring);

    if (!entry)
        return false;
    io_uring_prep_cancel(entry, op, 0);
    io_uring_sqe_set_data(entry, NULL);
    return true;
}

/* A READY op keeps its result if its bytes were already taken from the socket. */
static void uring_cancel(struct loop *loop, struct op *op)
{
    struct uring *uring = loop->backend_state;

    if (op->state == OP_STATE_READY && op->large) {
        op->result = -ECANCELED;
        op->state = OP_STATE_FINISHED;
    }
    if (op->state == OP_STATE_READY || op->state == OP_STATE_FINISHED)
        return;
    op->state = OP_STATE_CANCELLING;
    if (submit_cancel(uring, op))
        return;
    op->wait_fd = CANCEL_NOT_SUBMITTED;
    list_push(&uring->cancels, &op->link);
}

static void submit_cancels(struct uring *uring)
{
    while (!list_empty(&uring->cancels)) {
        struct op *op = container_of(uring->cancels.next, struct op, link);

        if (!submit_cancel(uring, op))
            return;
        list_remove(&op->link);
        op->wait_fd = -1;
    }
}

static void receive_completed(struct loop *loop, struct op *op, int result, unsigned flags)
{
    struct uring *uring = loop->backend_state;
    unsigned number = flags >> IORING_CQE_BUFFER_SHIFT;
    bool cancelled = op->state == OP_STATE_CANCELLING;

    if (result > 0) {
        op->mark = flags & IORING_CQE_F_SOCK_NONEMPTY;
        op->received = (struct str){uring->buffers + (size_t)number * LIMIT_RECEIVE_BYTES, (size_t)result};
        loop_ready(loop, op);
        return;
    }
    if (flags & IORING_CQE_F_BUFFER)
        buffer_return(uring, number);
    if (result == -EAGAIN)
        op->mark = IORING_CQE_F_SOCK_NONEMPTY; /* the descriptor cannot be polled: the next receive reports the error */
    if (result != -ENOBUFS && result != -EAGAIN && result != -EINTR)
        loop_finish(loop, op, result);
    else if (cancelled)
        loop_finish(loop, op, -ECANCELED);
    else
        loop_retry(loop, op); /* after -ENOBUFS: the buffers are returned in this iteration */
}

static void send_completed(struct loop *loop, struct op *op, int result)
{
    if (result > 0)
        op->send.progress += (size_t)result;
    if (op->send.progress == op->send.parts->iov_len)
        loop_finish(loop, op, op->send.progress > INT_MAX ? INT_MAX : (int)op->send.progress);
    else if (op->state == OP_STATE_CANCELLING)
        loop_finish(loop, op, -ECANCELED);
    else if (result >= 0 || result == -EAGAIN || result == -EINTR)
        submit_send(loop, op, true);
    else
        loop_finish(loop, op, result);
}

static void dispatch_completion(struct loop *loop, const struct io_uring_cqe *completion)
{
    struct op *op = io_uring_cqe_get_data(completion);

    if (!op)
        return;
    if (op->wait_fd == CANCEL_NOT_SUBMITTED)
        list_remove(&op->link);
    if (op->verb == OP_RECV && !op->large)
        receive_completed(loop, op, completion->res, completion->flags);
    else if (send_by_ring(op))
        send_completed(loop, op, completion->res);
    else if (op->verb == OP_POLL)
        loop_finish_poll(loop, op, completion->res);
    else if (op->state == OP_STATE_CANCELLING)
        loop_finish(loop, op, -ECANCELED);
    else if (op->verb == OP_RECV) /* recv(2) reports a failure of the poll */
        loop_ready(loop, op);
    else if (op_is_large(op)) /* waits for its part of the iteration */
        loop_defer(loop, op);
    else
        try_or_wait(loop, op);
}

static int enter_kernel(struct loop *loop, uint64_t until_ms)
{
    struct uring *uring = loop->backend_state;
    uint64_t now = loop->clock.monotonic_ms;
    struct __kernel_timespec timeout = {0, 0};
    struct io_uring_cqe *first;

    if (until_ms <= now)
        return io_uring_submit_and_get_events(&uring->ring);
    if (until_ms == UINT64_MAX)
        return io_uring_submit_and_wait(&uring->ring, 1);
    timeout.tv_sec = (long long)((until_ms - now) / 1000);
    timeout.tv_nsec = (long long)((until_ms - now) % 1000 * 1000000);
    return io_uring_submit_and_wait_timeout(&uring->ring, &first, 1, &timeout, NULL);
}

static int uring_wait(struct loop *loop, uint64_t until_ms)
{
    struct uring *uring = loop->backend_state;
    struct io_uring_cqe *completion;
    unsigned head;
    unsigned count = 0;
    int result;

    submit_cancels(uring);
    result = enter_kernel(loop, until_ms);
    clock_read(&loop->clock);
    if (result < 0 && result != -EINTR && result != -ETIME && result != -EAGAIN && result != -EBUSY)
        return result;
    io_uring_for_each_cqe(&uring->ring, head, completion)
    {
        dispatch_completion(loop, completion);
        count++;
    }
    io_uring_cq_advance(&uring->ring, count);
    return 0;
}

/* Entries that cannot be submitted now are submitted by the next wait. */
static void uring_start(struct loop *loop)
{
    struct uring *uring = loop->backend_state;

    if (io_uring_sq_ready(&uring->ring) > 0)
        (void)io_uring_submit(&uring->ring);
}

static void deliver_large(struct loop *loop, struct op *op)
{
    struct uring *uring = loop->backend_state;
    ssize_t count = op_receive(op, uring->large, LIMIT_RECEIVE_LARGE);

    op->mark = count == LIMIT_RECEIVE_LARGE ? LARGE_RECEIVE_FULL : 0;
    if (count != -EAGAIN) {
        loop_run_received(loop, op, uring->large, count);
        return;
    }
    op->state = OP_STATE_WAITING;
    submit_poll(loop, op, op->fd, POLLIN);
}

static void uring_deliver(struct loop *loop, struct op *op)
{
    struct uring *uring = loop->backend_state;
    size_t offset = (size_t)(op->received.data - uring->buffers);

    if (op->large) {
        deliver_large(loop, op);
        return;
    }
    loop_run_done(loop, op, (int)op->received.length);
    buffer_return(uring, (unsigned)(offset / LIMIT_RECEIVE_BYTES));
}

static void uring_remove_fd(struct loop *loop, int fd)
{
}

const struct loop_backend loop_backend_uring = {
    .name = "io_uring",
    .open = uring_open,
    .submit = uring_submit,
    .cancel = uring_cancel,
    .wait = uring_wait,
    .start = uring_start,
    .deliver = uring_deliver,
    .remove_fd = uring_remove_fd,
    .close = uring_close,
};
