/*
 * The system calls that every backend makes directly, on non-blocking descriptors. Each is repeated until the op is
 * complete, must wait for readiness, has used up the bytes of the iteration, or would wait for a disk. All backends use
 * this code, so that their results are identical. Receives differ: each backend has its own buffers.
 */
#include "io/backend.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "io/files.h"
#include "io/helpers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/sendfile.h>

#define PARTS_AT_ONCE 256 /* 128 frames, each with a head and a part of a file */
#define SMALL_SEND    LIMIT_RECORD_PLAINTEXT

static bool finish_op(struct loop *loop, struct op *op, int result)
{
    loop_finish(loop, op, result);
    return false;
}

static bool wait_for_events(struct readiness *out_wait, int fd, unsigned events)
{
    out_wait->fd = fd;
    out_wait->events = events;
    return true;
}

static int count_result(uint64_t count)
{
    return count > INT_MAX ? INT_MAX : (int)count;
}

/* True for errors of a connection that ended before it was accepted, after which accept(2) recommends a retry. */
static bool accept_error_passes(int error)
{
    switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case EPERM:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return true;
    default:
        return false;
    }
}

static bool attempt_accept(struct loop *loop, struct op *op, struct readiness *out_wait)
{
    for (;;) {
        socklen_t length = op->peer.address ? sizeof(*op->peer.address) : 0;
        int fd = accept4(op->fd, (struct sockaddr *)op->peer.address, op->peer.address ? &length : NULL,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            op->peer.length = length;
            return finish_op(loop, op, fd);
        }
        if (errno == EAGAIN)
            return wait_for_events(out_wait, op->fd, POLLIN);
        if (!accept_error_passes(errno))
            return finish_op(loop, op, -errno);
    }
}

/*
 * op->mark is set while a connect is in progress: a second connect(2) would return EALREADY or report success twice.
 */
static bool attempt_connect(struct loop *loop, struct op *op, struct readiness *out_wait)
{
    int error = 0;
    socklen_t length = sizeof(error);

    if (op->mark == 0) {
        op->mark = 1;
        if (connect(op->fd, (const struct sockaddr *)op->peer.address, op->peer.length) == 0)
            return finish_op(loop, op, 0);
        if (errno == EINPROGRESS || errno == EINTR)
            return wait_for_events(out_wait, op->fd, POLLOUT);
        return finish_op(loop, op, -errno);
    }
    if (getsockopt(op->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        error = errno;
    return finish_op(loop, op, -error);
}

/* Copies the unsent rest of the parts, at most PARTS_AT_ONCE, to `into`; *out_left: more parts follow. */
static int unsent_parts(const struct op *op, struct iovec *into, bool *out_left)
{
    size_t skip = op->send.progress;
    int count = 0;
    int i;

    for (i = 0; i < op->send.count && count < PARTS_AT_ONCE; i++) {
        struct iovec part = op->send.parts[i];

        if (skip >= part.iov_len) {
            skip -= part.iov_len;
            continue;
        }
        into[count].iov_base = (char *)part.iov_base + skip;
        into[count].iov_len = part.iov_len - skip;
        skip = 0;
        count++;
    }
    *out_left = i < op->send.count;
    return count;
}

/* One system call; *out_done: everything is sent. MSG_WAITALL is never used: kernel TLS rejects it. */
static ssize_t send_parts(const struct op *op, const struct iovec *parts, int count, bool left, bool *out_done)
{
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)count};
    int flags = op->send.flags | MSG_NOSIGNAL | MSG_DONTWAIT | (left ? MSG_MORE : 0);
    size_t size = 0;
    ssize_t sent;

    *out_done = count == 0;
    if (count == 0)
        return 0;
    for (int i = 0; i < count; i++)
        size += parts[i].iov_len;
    if (count == 1)
        sent = send(op->fd, parts[0].iov_base, parts[0].iov_len, flags);
    else
        sent = sendmsg(op->fd, &message, flags);
    *out_done = sent >= 0 && (size_t)sent == size && !left;
    return sent;
}

/* Not inline: the array costs an initialization (-ftrivial-auto-var-init), which most sends do not need. */
static __attribute__((noinline)) ssize_t send_rest(const struct op *op, bool *out_done)
{
    struct iovec parts[PARTS_AT_ONCE];
    bool left;
    int count = unsent_parts(op, parts, &left);

    return send_parts(op, parts, count, left, out_done);
}

static ssize_t send_some(const struct op *op, bool *out_done)
{
    if (op->send.progress == 0 && op->send.count <= PARTS_AT_ONCE)
        return send_parts(op, op->send.parts, op->send.count, false, out_done);
    return send_rest(op, out_done);
}

bool op_is_large(const struct op *op)
{
    size_t size = 0;

    if (op->verb != OP_SEND)
        return op->verb == OP_SENDFILE || op->verb == OP_SPLICE;
    for (int i = 0; i < op->send.count; i++)
        size += op->send.parts[i].iov_len;
    return size_sub_sat(size, op->send.progress) > SMALL_SEND;
}

static bool attempt_send(struct loop *loop, struct op *op, struct readiness *out_wait)
{
    size_t max = op->send.pages ? LIMIT_ITERATION_FILE_BYTES : LIMIT_ITERATION_BYTES;
    size_t in_turn = 0;
    bool done = false;

    while (!done) {
        ssize_t sent;

        if (in_turn >= max) {
            loop_defer(loop, op);
            return false;
        }
        sent = send_some(op, &done);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            return wait_for_events(out_wait, op->fd, POLLOUT);
        if (sent < 0)
            return finish_op(loop, op, -errno);
        op->send.progress += (size_t)sent;
        in_turn += (size_t)sent;
    }
    if (op->send.progress <= SMALL_SEND)
        return finish_op(loop, op, (int)op->send.progress);
    loop_finish_large(loop, op, count_result(op->send.progress));
    return false;
}

/* True if [next byte, cached_until) is not empty and cached; false if a helper thread was started for it. */
static bool span_is_cached(struct loop *loop, struct op *op)
{
    if ((uint64_t)op->file.at + op->file.progress < op->file.cached_until || file_probe(op))
        return true;
    op->file.fetches++;
    helpers_submit(loop, op, file_read_window);
    return false;
}

/*
 * On a kTLS socket, sendfile passes each record to TCP with MSG_MORE while more follows. If the send buffer is
 * smaller than a segment (loopback, small SO_SNDBUF) and full, such a record is never sent, and POLLOUT is never
 * reported. For sockets with small_send_buffer, the loop therefore sends one record per call, whose last page has no
 * MSG_MORE, and flushes a withheld record by clearing TCP_CORK.
 */
static void flush_withheld_record(int fd)
{
    int off = 0;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_CORK, &off, sizeof(off));
}

/*
 * Returns the number of bytes of this file that use up the whole budget of an iteration. It is smaller for a file
 * that is read from disk, since the loop shares its CPU with the helper threads.
 */
static uint64_t file_share(const struct op *op)
{
    return op->file.fetches > 0 ? LIMIT_ITERATION_FETCHED_BYTES : LIMIT_ITERATION_FILE_BYTES;
}

static bool attempt_sendfile(struct loop *loop, struct op *op, struct readiness *out_wait)
{
    op->file.cached_until = 0; /* the pages may have been evicted since the last attempt */
    while (op->file.progress < op->file.length) {
        off_t at = op->file.at + (off_t)op->file.progress;
        uint64_t want = u64_sub_sat(op->file.length, op->file.progress);
        uint64_t room;
        ssize_t sent;

        if (loop->iteration_bytes_left == 0) { /* a probe now would have to be repeated in the op's turn */
            loop_defer(loop, op);
            return false;
        }
        if (!span_is_cached(loop, op))
            return false;
        room = loop->iteration_bytes_left * file_share(op) / LIMIT_ITERATION_BYTES;
        if (room == 0) {
            loop_defer(loop, op);
            return false;
        }
        if (want > u64_sub_sat(op->file.cached_until, (uint64_t)at))
            want = u64_sub_sat(op->file.cached_until, (uint64_t)at);
        if (want > room)
            want = room;
        if (op->file.small_send_buffer && want > LIMIT_RECORD_PLAINTEXT)
            want = LIMIT_RECORD_PLAINTEXT;
        sent = sendfile(op->fd, op->file.fd, &at, (size_t)want);
        if (sent == 0)
            break;
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN) {
            if (op->file.small_send_buffer)
                flush_withheld_record(op->fd);
            return wait_for_events(out_wait, op->fd, POLLOUT);
        }
        if (sent < 0)
            return finish_op(loop, op, -errno);
        op->file.progress += (uint64_t)sent;
        loop_charge(loop, ((uint64_t)sent * LIMIT_ITERATION_BYTES + file_share(op) - 1) / file_share(op));
        op->file.fetches = op->file.fetches > 0;
    }
    return finish_op(loop, op, count_result(op->file.progress));
}

/* After EAGAIN of splice(2), which does not indicate the blocked descriptor: waits for the one that is not ready. */
static bool splice_blocked(struct loop *loop, struct op *op, struct readiness *out_wait)
{
    struct pollfd ends[2] = {{.fd = op->fd, .events = POLLIN}, {.fd = op->splice.to, .events = POLLOUT}};

    if (poll(ends, 2, 0) < 0 && errno != EINTR)
        return finish_op(loop, op, -errno);
    if (ends[0].revents == 0)
        return wait_for_events(out_wait, op->fd, POLLIN);
    if (op->splice.small_send_buffer)
        flush_withheld_record(op->splice.to);
    if (ends[1].revents == 0)
        return wait_for_events(out_wait, op->splice.to, POLLOUT);
    loop_retry(loop, op); /* both descriptors are ready by now */
    return false;
}

static bool attempt_splice(struct loop *loop, struct op *op, struct readiness *out_wait)
{
    size_t max = op->splice.small_send_buffer ? LIMIT_RECORD_PLAINTEXT : LIMIT_ITERATION_BYTES;
    size_t want = op->splice.length < max ? op->splice.length : max;
    ssize_t moved;

    do {
        moved = splice(op->fd, NULL, op->splice.to, NULL, want, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    } while (moved < 0 && errno == EINTR);
    if (moved < 0 && errno == EAGAIN)
        return splice_blocked(loop, op, out_wait);
    if (moved <= SMALL_SEND)
        return finish_op(loop, op, moved < 0 ? -errno : (int)moved);
    loop_finish_large(loop, op, (int)moved);
    return false;
}

ssize_t op_receive(const struct op *op, char *into, size_t size)
{
    ssize_t count;

    do {
        count = recv(op->fd, into, size, MSG_DONTWAIT);
    } while (count < 0 && errno == EINTR);
    return count < 0 ? -errno : count;
}

bool op_attempt(struct loop *loop, struct op *op, struct readiness *out_wait)
{
    op->state = OP_STATE_WAITING;
    switch (op->verb) {
    case OP_ACCEPT:
        return attempt_accept(loop, op, out_wait);
    case OP_CONNECT:
        return attempt_connect(loop, op, out_wait);
    case OP_SEND:
        return attempt_send(loop, op, out_wait);
    case OP_SENDFILE:
        return attempt_sendfile(loop, op, out_wait);
    case OP_SPLICE:
        return attempt_splice(loop, op, out_wait);
    case OP_NONE:
    case OP_RECV:
    case OP_POLL:
    case OP_TIMER:
    case OP_READ:
    case OP_OFFLOAD:
        break;
    }
    return finish_op(loop, op, -EINVAL);
}
