/*
 * The epoll backend. Each descriptor has a slot and is registered once, edge-triggered, for all events. The slot
 * records the edges: no system call is needed for a receive without input, or for a change between reading and
 * writing. All ops except receives make their call first (op_attempt.c) and wait only after EAGAIN; small sends are
 * made at the end of the round.
 */
#include "io/loop.h"

#include "base/limits.h"
#include "io/backend.h"
#include "io/helpers.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_PER_WAIT 256
#define EVENTS_HANG_UP  (EPOLLRDHUP | EPOLLHUP | EPOLLERR)
#define SMALL_SEND_MAX  4096 /* larger sends are made at once, while their bytes are in the CPU cache */

struct slot {
    struct op *reader;              /* OP_RECV, OP_ACCEPT, OP_SPLICE from this descriptor */
    struct op *writer;              /* OP_SEND, OP_SENDFILE, OP_CONNECT, OP_SPLICE to it, OP_POLL for POLLOUT alone */
    struct op *poll;                /* any other OP_POLL */
    uint32_t generation;            /* distinguishes events of a closed descriptor with the same number */
    uint16_t hang_up;               /* EVENTS_HANG_UP received; permanent */
    bool registered : 1;
    bool unregistrable : 1;         /* a regular file: always ready */
    bool readable : 1;              /* an edge arrived, and no receive has drained the socket since */
    bool drains : 1;                /* a stream socket: a short receive means drained */
};

static_assert(sizeof(struct slot) <= LIMIT_EPOLL_SLOT, "each descriptor has a slot: it exceeds LIMIT_EPOLL_SLOT");

struct epoll {
    int fd;
    struct slot *slots;
    unsigned slot_count;
    struct epoll_event events[EVENTS_PER_WAIT];
    char scratch[LIMIT_RECEIVE_LARGE]; /* valid during the callback of OP_RECV */
};

static int epoll_open(struct loop *loop)
{
    struct epoll *epoll = calloc(1, sizeof(*epoll));

    if (!epoll)
        return -ENOMEM;
    epoll->fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll->fd < 0) {
        free(epoll);
        return -errno;
    }
    loop->backend_state = epoll;
    return 0;
}

static void epoll_close(struct loop *loop)
{
    struct epoll *epoll = loop->backend_state;

    close(epoll->fd);
    free(epoll->slots);
    free(epoll);
    loop->backend_state = NULL;
}

static int slots_grow(struct epoll *epoll, unsigned fd)
{
    unsigned count = fd + 64 + fd / 8; /* unused slots are part of the memory per idle connection */
    struct slot *grown;

    if (count < fd)
        return -ENOMEM;
    grown = reallocarray(epoll->slots, count, sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    memset(grown + epoll->slot_count, 0, (count - epoll->slot_count) * sizeof(*grown));
    epoll->slots = grown;
    epoll->slot_count = count;
    return 0;
}

static bool is_stream(int fd)
{
    int type = 0;
    socklen_t length = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

static int slot_register(struct epoll *epoll, struct slot *slot, int fd)
{
    struct epoll_event event = {
        .events = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET,
        .data.u64 = (uint64_t)slot->generation << 32 | (uint32_t)fd,
    };

    if (epoll_ctl(epoll->fd, EPOLL_CTL_ADD, fd, &event) == 0) {
        slot->registered = true;
        slot->drains = is_stream(fd);
        return 0;
    }
    if (errno != EPERM)
        return -errno;
    slot->unregistrable = slot->registered = true;
    return 0;
}

/* The slot of fd, registered with epoll. 0, -EBADF, -ENOMEM, -ENOSPC. */
static int slot_of(struct epoll *epoll, int fd, struct slot **out_slot)
{
    struct slot *slot;
    int error;

    if (fd < 0)
        return -EBADF;
    if ((unsigned)fd >= epoll->slot_count) {
        error = slots_grow(epoll, (unsigned)fd);
        if (error < 0)
            return error;
    }
    slot = &epoll->slots[fd];
    if (!slot->registered) {
        error = slot_register(epoll, slot, fd);
        if (error < 0)
            return error;
    }
    *out_slot = slot;
    return 0;
}

static void submit_receive(struct loop *loop, struct op *op)
{
    struct epoll *epoll = loop->backend_state;
    struct slot *slot;
    int error = slot_of(epoll, op->fd, &slot);

    if (error < 0) {
        loop_finish(loop, op, error);
        return;
    }
    if (slot->readable || slot->unregistrable) {
        loop_ready(loop, op);
        return;
    }
    assert(!slot->reader);
    slot->reader = op;
}

/* Returns the current events by poll(2), or the recorded hang-ups; other recorded edges may be out of date. */
static unsigned poll_now(const struct slot *slot, struct op *op)
{
    unsigned events = op->poll_events | EPOLLERR | EPOLLHUP;
    struct pollfd now = {.fd = op->fd, .events = (short)op->poll_events};

    if (slot->hang_up & events)
        return slot->hang_up & events;
    if ((events & ~EVENTS_HANG_UP) == 0 || poll(&now, 1, 0) <= 0)
        return 0;
    return (unsigned short)now.revents;
}

static void submit_poll(struct loop *loop, struct op *op)
{
    struct epoll *epoll = loop->backend_state;
    struct slot *slot;
    struct op **place;
    unsigned events;
    int error = slot_of(epoll, op->fd, &slot);

    if (error < 0) {
        loop_finish(loop, op, error);
        return;
    }
    events = slot->unregistrable ? op->poll_events & (POLLIN | POLLOUT) : poll_now(slot, op);
    if (events) {
        loop_finish_poll(loop, op, (int)events);
        return;
    }
    place = op->poll_events == POLLOUT ? &slot->writer : &slot->poll;
    assert(!*place);
    *place = op;
}

/* Makes the call of an op; after EAGAIN the op waits in the slot. */
static void try_or_wait(struct loop *loop, struct op *op)
{
    struct readiness wait;
    struct slot *slot;
    struct op **place;
    int error;

    if (!op_attempt(loop, op, &wait))
        return;
    error = slot_of(loop->backend_state, wait.fd, &slot);
    if (error < 0) {
        loop_finish(loop, op, error);
        return;
    }
    place = wait.events == POLLIN ? &slot->reader : &slot->writer;
    assert(!*place);
    op->wait_fd = wait.fd;
    *place = op;
}

static bool is_small(const struct op *op)
{
    size_t size = 0;

    for (int i = 0; i < op->send.count; i++)
        size += op->send.parts[i].iov_len;
    return size <= SMALL_SEND_MAX;
}

/*
 * Queues small sends; at the end of the round they are made one after the other. On loopback the first one wakes the
 * receiving process, which then finds the bytes of all of them.
 */
static void submit_send(struct loop *loop, struct op *op)
{
    if (!(op->send.flags & MSG_MORE) && is_small(op))
        loop_ready(loop, op);
    else
        try_or_wait(loop, op);
}

static void epoll_submit(struct loop *loop, struct op *op)
{
    switch (op->verb) {
    case OP_RECV:
        submit_receive(loop, op);
        break;
    case OP_SEND:
        submit_send(loop, op);
        break;
    case OP_POLL:
        submit_poll(loop, op);
        break;
    case OP_READ:
        read_submit(loop, op);
        break;
    case OP_OFFLOAD:
        helpers_submit(loop, op, helpers_offload);
        break;
    case OP_ACCEPT:
    case OP_CONNECT:
    case OP_SENDFILE:
    case OP_SPLICE:
    case OP_TIMER:
    case OP_NONE:
        try_or_wait(loop, op);
        break;
    }
}

static void epoll_cancel(struct loop *loop, struct op *op)
{
    struct epoll *epoll = loop->backend_state;
    struct slot *slot;

    if (op->state == OP_STATE_READY) { /* queued already; no byte was received or sent yet */
        op->result = -ECANCELED;
        op->state = OP_STATE_FINISHED;
        return;
    }
    slot = &epoll->slots[op->verb == OP_RECV || op->verb == OP_POLL ? op->fd : op->wait_fd];
    if (slot->reader == op)
        slot->reader = NULL;
    if (slot->writer == op)
        slot->writer = NULL;
    if (slot->poll == op)
        slot->poll = NULL;
    loop_finish(loop, op, -ECANCELED);
}

static struct op *detach_op(struct op **place)
{
    struct op *op = *place;

    *place = NULL;
    return op;
}

/* The descriptor is ready: makes the call of a small op; a large one waits for its part of the iteration. */
static void resume_op(struct loop *loop, struct op *op)
{
    if (op_is_large(op))
        loop_defer(loop, op);
    else
        try_or_wait(loop, op);
}

static void wake_reader(struct loop *loop, struct slot *slot)
{
    struct op *op = detach_op(&slot->reader);

    if (!op)
        return;
    if (op->verb == OP_RECV)
        loop_ready(loop, op);
    else
        resume_op(loop, op);
}

static void wake_writer(struct loop *loop, struct op *op, unsigned events)
{
    if (op->verb == OP_POLL)
        loop_finish_poll(loop, op, (int)(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)));
    else
        resume_op(loop, op);
}

static void wake_poll(struct loop *loop, struct slot *slot, unsigned events)
{
    events &= slot->poll->poll_events | EPOLLERR | EPOLLHUP;
    if (events)
        loop_finish(loop, detach_op(&slot->poll), (int)events);
}

/* Wakes the ops that wait for an event. wake_reader may move the slots (slots_grow): `slot` is not used after it. */
static void dispatch_event(struct loop *loop, const struct epoll_event *event)
{
    struct epoll *epoll = loop->backend_state;
    unsigned fd = (uint32_t)event->data.u64;
    unsigned events = event->events;
    struct slot *slot = &epoll->slots[fd];
    struct op *writer;

    if (slot->generation != event->data.u64 >> 32)
        return;
    slot->hang_up |= (uint16_t)(events & EVENTS_HANG_UP);
    if (events & EPOLLPRI)
        slot->drains = false; /* urgent data ends a receive early, although more bytes follow */
    if (events & (EPOLLIN | EVENTS_HANG_UP))
        slot->readable = true;
    if (slot->poll)
        wake_poll(loop, slot, events);
    writer = events & (EPOLLOUT | EPOLLERR | EPOLLHUP) ? detach_op(&slot->writer) : NULL;
    if (slot->readable)
        wake_reader(loop, slot);
    if (writer)
        wake_writer(loop, writer, events);
}

static int wait_ms(const struct loop *loop, uint64_t until_ms)
{
    uint64_t now = loop->clock.monotonic_ms;

    if (until_ms == UINT64_MAX)
        return -1;
    if (until_ms <= now)
        return 0;
    return until_ms - now > INT_MAX ? INT_MAX : (int)(until_ms - now);
}

static int epoll_wait_iteration(struct loop *loop, uint64_t until_ms)
{
    struct epoll *epoll = loop->backend_state;
    int count = epoll_wait(epoll->fd, epoll->events, EVENTS_PER_WAIT, wait_ms(loop, until_ms));
    int error = errno;

    clock_read(&loop->clock);
    if (count < 0)
        return error == EINTR ? 0 : -error;
    for (int i = 0; i < count; i++)
        dispatch_event(loop, &epoll->events[i]);
    return 0;
}

/* Receives and runs `done` at once, so that one scratch buffer serves all connections. */
static void deliver_received(struct loop *loop, struct op *op)
{
    struct epoll *epoll = loop->backend_state;
    struct slot *slot = &epoll->slots[op->fd];
    size_t size = op->large ? LIMIT_RECEIVE_LARGE : LIMIT_RECEIVE_BYTES;
    ssize_t count = op_receive(op, epoll->scratch, size);

    if (count == -EAGAIN) {
        slot->readable = false;
        op->state = OP_STATE_WAITING;
        slot->reader = op;
        return;
    }
    if (count > 0 && (size_t)count < size && slot->drains && !slot->hang_up)
        slot->readable = false;
    loop_run_received(loop, op, epoll->scratch, count);
}

static void epoll_deliver(struct loop *loop, struct op *op)
{
    if (op->verb == OP_RECV)
        deliver_received(loop, op);
    else
        try_or_wait(loop, op);
}

static void epoll_remove_fd(struct loop *loop, int fd)
{
    struct epoll *epoll = loop->backend_state;
    struct slot *slot;

    if ((unsigned)fd >= epoll->slot_count)
        return;
    slot = &epoll->slots[fd];
    assert(!slot->reader && !slot->writer && !slot->poll);
    *slot = (struct slot){.generation = slot->generation + 1};
}

const struct loop_backend loop_backend_epoll = {
    .name = "epoll",
    .open = epoll_open,
    .submit = epoll_submit,
    .cancel = epoll_cancel,
    .wait = epoll_wait_iteration,
    .deliver = epoll_deliver,
    .remove_fd = epoll_remove_fd,
    .close = epoll_close,
};
