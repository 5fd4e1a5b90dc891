/*
 * The scripted backend: see scripted.h. Every op is in one list, and each iteration tries each op once.
 */
#include "scripted.h"

#include "base/buffer.h"
#include "base/limits.h"
#include "io/backend.h"
#include "sockets.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MONOTONIC_START 1000000
#define WALL_START      1795176000000

/* The result of trying an op that cannot complete yet. */
#define NOT_YET INT32_MIN

static int backend_open(struct loop *loop)
{
    struct scripted *scripted = calloc(1, sizeof(*scripted));

    if (!scripted)
        return -ENOMEM;
    list_init(&scripted->waiting);
    list_init(&scripted->sockets);
    scripted->next_fd = SCRIPTED_FD_BASE;
    loop->backend_state = scripted;
    loop->clock = (struct clock){MONOTONIC_START, MONOTONIC_START * 1000ull, WALL_START};
    return 0;
}

static void backend_close(struct loop *loop)
{
    struct scripted *scripted = loop->backend_state;

    assert(list_empty(&scripted->waiting));
    sockets_free(scripted);
    free(scripted);
}

static void backend_submit(struct loop *loop, struct op *op)
{
    struct scripted *scripted = loop->backend_state;

    if (op->verb != OP_READ && op->verb != OP_OFFLOAD)
        assert(!socket_of(loop, op->fd)->closed);
    list_push(&scripted->waiting, &op->link);
}

/* The result is delivered in a later iteration, as with io_uring. */
static void backend_cancel(struct loop *loop, struct op *op)
{
    if (op->state == OP_STATE_WAITING)
        op->state = OP_STATE_CANCELLING;
}

/*
 * Each provided buffer is newly allocated and freed after `done`, so that a sanitizer detects pointers kept beyond
 * it.
 */
static int turn_receive(struct loop *loop, struct op *op)
{
    struct fake *fake = socket_of(loop, op->fd);
    size_t length = fake->unread.length, max = op->large ? LIMIT_RECEIVE_LARGE : LIMIT_RECEIVE_BYTES;
    char *lent;

    if (fake->reset)
        return -ECONNRESET;
    if (length == 0)
        return fake->ended ? 0 : NOT_YET;
    if (fake->receive_max && length > fake->receive_max)
        length = fake->receive_max;
    if (length > max)
        length = max;
    lent = malloc(length);
    if (!lent)
        return NOT_YET;
    memcpy(lent, fake->unread.data, length);
    buffer_consume(&fake->unread, length);
    op->received = (struct str){lent, length};
    return (int)length;
}

static size_t share_of_turn(const struct fake *fake, uint64_t expected)
{
    size_t max = fake->send_max ? fake->send_max : LIMIT_ITERATION_BYTES;

    if (max > fake->room)
        max = fake->room;
    return expected < max ? (size_t)expected : max;
}

static int send_error(struct fake *fake)
{
    int error = fake->reset_reported ? -EPIPE : -ECONNRESET;

    fake->reset_reported = true;
    return error;
}

static void record_sent(struct fake *fake, struct str bytes)
{
    if (buffer_append(&fake->sent, bytes) < 0)
        abort();
    if (fake->room != SIZE_MAX)
        fake->room -= bytes.length;
}

static int turn_send(struct loop *loop, struct op *op)
{
    struct fake *fake = socket_of(loop, op->fd);
    size_t skip = op->send.progress;
    uint64_t total = 0;
    size_t share;

    if (fake->reset)
        return send_error(fake);
    for (int i = 0; i < op->send.count; i++)
        total += op->send.parts[i].iov_len;
    share = share_of_turn(fake, total - op->send.progress);
    for (int i = 0; i < op->send.count && share > 0; i++) {
        struct str part = str_of(op->send.parts[i].iov_base, op->send.parts[i].iov_len);
        struct str rest = str_slice(str_skip(part, skip), 0, share);

        skip -= skip < part.length ? skip : part.length;
        share -= rest.length;
        op->send.progress += rest.length;
        record_sent(fake, rest);
    }
    return op->send.progress == total ? (int)total : NOT_YET;
}

static int turn_sendfile(struct loop *loop, struct op *op)
{
    struct fake *fake = socket_of(loop, op->fd);
    size_t share = share_of_turn(fake, op->file.length - op->file.progress);
    char bytes[65536];

    if (fake->reset)
        return send_error(fake);
    while (share > 0) {
        size_t want = share < sizeof(bytes) ? share : sizeof(bytes);
        ssize_t count = pread(op->file.fd, bytes, want, op->file.at + (int64_t)op->file.progress);

        if (count < 0)
            return -errno;
        if (count == 0)
            return (int)op->file.progress;
        record_sent(fake, str_of(bytes, (size_t)count));
        op->file.progress += (uint64_t)count;
        share -= (size_t)count;
    }
    return op->file.progress == op->file.length ? (int)op->file.progress : NOT_YET;
}

/* One end is a kernel pipe, the other a scripted socket. */
static int turn_splice(struct loop *loop, struct op *op)
{
    bool from_socket = op->fd >= SCRIPTED_FD_BASE;
    struct fake *fake = socket_of(loop, from_socket ? op->fd : op->splice.to);
    char bytes[4096];
    ssize_t count;

    if (fake->reset)
        return -ECONNRESET;
    if (from_socket) {
        size_t want = fake->unread.length < op->splice.length ? fake->unread.length : op->splice.length;

        if (want == 0)
            return fake->ended ? 0 : NOT_YET;
        count = write(op->splice.to, fake->unread.data, want);
        if (count > 0)
            buffer_consume(&fake->unread, (size_t)count);
    } else {
        size_t want = share_of_turn(fake, op->splice.length < sizeof(bytes) ? op->splice.length : sizeof(bytes));

        if (want == 0)
            return NOT_YET;
        count = read(op->fd, bytes, want);
        if (count > 0)
            record_sent(fake, str_of(bytes, (size_t)count));
    }
    if (count < 0)
        return errno == EAGAIN ? NOT_YET : -errno;
    return (int)count;
}

static int turn_poll(struct loop *loop, struct op *op)
{
    const struct fake *fake = socket_of(loop, op->fd);
    unsigned events = 0;

    if (fake->unread.length || fake->ended || fake->reset)
        events |= POLLIN;
    if (fake->room || fake->reset)
        events |= POLLOUT;
    if (fake->ended || fake->reset)
        events |= POLLRDHUP;
    events &= op->poll_events;
    if (fake->reset)
        events |= POLLERR | POLLHUP;
    return events ? (int)events : NOT_YET;
}

static int turn_accept(struct loop *loop, struct op *op)
{
    struct fake *fake = socket_of(loop, op->fd);

    if (fake->arrived_count == 0)
        return NOT_YET;
    if (op->peer.address)
        scripted_peer_address(op->peer.address, &op->peer.length);
    return fake->arrived[--fake->arrived_count];
}

static int turn_connect(struct loop *loop, struct op *op)
{
    struct fake *fake = socket_of(loop, op->fd);

    return fake->connect_delayed ? NOT_YET : fake->connect_result;
}

static int turn_read(struct op *op)
{
    ssize_t count = pread(op->file.fd, op->file.into, (size_t)op->file.length, op->file.at);

    return count < 0 ? -errno : (int)count;
}

static int turn_of(struct loop *loop, struct op *op)
{
    int failure;

    if (socket_failure(loop, op, &failure))
        return failure;
    switch (op->verb) {
    case OP_ACCEPT:
        return turn_accept(loop, op);
    case OP_CONNECT:
        return turn_connect(loop, op);
    case OP_RECV:
        return turn_receive(loop, op);
    case OP_SEND:
        return turn_send(loop, op);
    case OP_SENDFILE:
        return turn_sendfile(loop, op);
    case OP_SPLICE:
        return turn_splice(loop, op);
    case OP_POLL:
        return turn_poll(loop, op);
    case OP_READ:
        return turn_read(op);
    case OP_OFFLOAD:
        return op->offload.work(op->offload.argument);
    case OP_TIMER:
    case OP_NONE:
        break;
    }
    return -EINVAL;
}

/* Tries one op: it completes or returns to the list. */
static void try_op(struct loop *loop, struct op *op)
{
    struct scripted *scripted = loop->backend_state;
    bool cancelled = op->state == OP_STATE_CANCELLING;
    int result = NOT_YET;

    if (!cancelled || scripted->cancel_loses)
        result = turn_of(loop, op);
    if (result == NOT_YET && cancelled)
        result = -ECANCELED;
    if (result == NOT_YET)
        list_push(&scripted->waiting, &op->link);
    else if (op->verb == OP_RECV && result > 0)
        loop_ready(loop, op);
    else
        loop_finish(loop, op, result);
}

static struct op *draw(struct scripted *scripted, struct list *round, unsigned count)
{
    struct list *link = round->next;
    unsigned skip = 0;

    if (scripted->seed) {
        scripted->seed = scripted->seed * 1103515245u + 12345u;
        skip = (scripted->seed >> 16) % count;
    }
    while (skip-- > 0)
        link = link->next;
    list_remove(link);
    return container_of(link, struct op, link);
}

static bool progressed(const struct loop *loop, uint64_t before)
{
    return !list_empty(&loop->finished) || sockets_progress(loop->backend_state) != before;
}

static int backend_wait(struct loop *loop, uint64_t until_ms)
{
    struct scripted *scripted = loop->backend_state;
    uint64_t before = sockets_progress(scripted);
    struct list round;
    struct list *link;
    unsigned count = 0;

    list_init(&round);
    while ((link = list_pop(&scripted->waiting)) != NULL) {
        list_push(&round, link);
        count++;
    }
    for (; count > 0; count--)
        try_op(loop, draw(scripted, &round, count));
    if (progressed(loop, before))
        return 0;
    if (until_ms == UINT64_MAX)
        return -EDEADLK; /* no op can ever complete */
    if (until_ms > loop->clock.monotonic_ms)
        scripted_advance(loop, until_ms - loop->clock.monotonic_ms);
    return 0;
}

static void backend_deliver(struct loop *loop, struct op *op)
{
    char *lent = (char *)(uintptr_t)op->received.data;
    size_t length = op->received.length;

    loop_run_received(loop, op, lent, (ssize_t)length);
    memset(lent, 0xdd, length);
    free(lent);
}

static void backend_remove_fd(struct loop *loop, int fd)
{
    struct scripted *scripted = loop->backend_state;

    for (struct list *link = scripted->waiting.next; link != &scripted->waiting; link = link->next)
        assert(container_of(link, struct op, link)->fd != fd);
    socket_of(loop, fd)->closed = true;
}

const struct loop_backend loop_backend_scripted = {
    .name = "scripted",
    .open = backend_open,
    .submit = backend_submit,
    .cancel = backend_cancel,
    .wait = backend_wait,
    .deliver = backend_deliver,
    .remove_fd = backend_remove_fd,
    .close = backend_close,
};

int scripted_open(struct loop *loop, struct log *log)
{
    return loop_open_backend(loop, &loop_backend_scripted, log);
}

void scripted_settle(struct loop *loop, int max)
{
    struct scripted *scripted = loop->backend_state;

    for (int i = 0; i < max; i++) {
        uint64_t before = sockets_progress(scripted);
        int count = loop_run_iteration(loop, 0);

        if (count < 0) {
            fprintf(stderr, "scripted: turn failed with %d\n", count);
            abort();
        }
        if (count == 0 && sockets_progress(scripted) == before)
            return;
    }
    fprintf(stderr, "scripted: not settled after %d turns\n", max);
    abort();
}
