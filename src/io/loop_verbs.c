/*
 * Functions that fill in an op and submit it, one per verb.
 */
#include "io/loop.h"

#include "base/limits.h"
#include "io/timers.h"

static void submit_op(struct loop *loop, struct op *op, enum op_verb verb, int fd)
{
    op->verb = verb;
    op->fd = fd;
    loop_submit(loop, op);
}

void loop_accept(struct loop *loop, struct op *op, int listener, struct sockaddr_storage *address)
{
    op->peer.address = address;
    op->peer.length = 0;
    submit_op(loop, op, OP_ACCEPT, listener);
}

void loop_connect(struct loop *loop, struct op *op, int fd, struct sockaddr_storage *address, socklen_t length)
{
    op->peer.address = address;
    op->peer.length = length;
    op->mark = 0;
    submit_op(loop, op, OP_CONNECT, fd);
}

/* Does not change op->mark, in which the io_uring backend keeps whether the last receive left bytes. */
void loop_recv(struct loop *loop, struct op *op, int fd)
{
    op->received = (struct str){NULL, 0};
    op->large = false;
    submit_op(loop, op, OP_RECV, fd);
}

void loop_recv_large(struct loop *loop, struct op *op, int fd)
{
    op->received = (struct str){NULL, 0};
    op->large = true;
    submit_op(loop, op, OP_RECV, fd);
}

static inline void submit_send(struct loop *loop, struct op *op, int fd, const struct iovec *parts, int count,
                               int flags, bool pages)
{
    op->send.parts = parts;
    op->send.count = count;
    op->send.flags = flags;
    op->send.pages = pages;
    op->send.progress = 0;
    submit_op(loop, op, OP_SEND, fd);
}

void loop_send(struct loop *loop, struct op *op, int fd, const struct iovec *parts, int count, int flags)
{
    submit_send(loop, op, fd, parts, count, flags, false);
}

void loop_send_pages(struct loop *loop, struct op *op, int fd, const struct iovec *parts, int count, int flags)
{
    submit_send(loop, op, fd, parts, count, flags, true);
}

static uint16_t ahead_kib(uint64_t ahead)
{
    return (uint16_t)(((ahead < LIMIT_READ_AHEAD ? ahead : LIMIT_READ_AHEAD) + 1023) / 1024);
}

void loop_sendfile(struct loop *loop, struct op *op, int to, int file, int64_t at, uint64_t length,
                   bool small_send_buffer)
{
    loop_sendfile_part(loop, op, to, file, at, length, 0, small_send_buffer);
}

void loop_sendfile_part(struct loop *loop, struct op *op, int to, int file, int64_t at, uint64_t length, uint64_t ahead,
                        bool small_send_buffer)
{
    op->file.ahead_kib = ahead_kib(ahead);
    op->file.fd = file;
    op->file.small_send_buffer = small_send_buffer;
    op->file.at = at;
    op->file.length = length;
    op->file.progress = 0;
    op->file.cached_until = 0;
    op->file.fetches = 0;
    submit_op(loop, op, OP_SENDFILE, to);
}

void loop_splice(struct loop *loop, struct op *op, int from, int to, size_t length, bool small_send_buffer)
{
    op->splice.to = to;
    op->splice.length = length;
    op->splice.small_send_buffer = small_send_buffer;
    submit_op(loop, op, OP_SPLICE, from);
}

void loop_poll(struct loop *loop, struct op *op, int fd, unsigned events)
{
    op->poll_events = events;
    submit_op(loop, op, OP_POLL, fd);
}

void loop_timer(struct loop *loop, struct op *op, uint64_t deadline_ms)
{
    op->deadline_ms = deadline_ms;
    submit_op(loop, op, OP_TIMER, -1);
}

void loop_timer_move(struct loop *loop, struct op *op, uint64_t deadline_ms)
{
    if (op->state == OP_STATE_WAITING) {
        timers_move(loop->timers, op, deadline_ms);
        return;
    }
    if (op->state == OP_STATE_FINISHED && op->result == 0) { /* due in this iteration, `done` not run yet */
        list_remove(&op->link);
        loop->in_flight--;
        op->state = OP_STATE_IDLE;
    }
    if (op_idle(op))
        loop_timer(loop, op, deadline_ms);
}

void loop_read(struct loop *loop, struct op *op, int file, int64_t at, char *into, size_t length, uint64_t ahead)
{
    op->file.fd = file;
    op->file.at = at;
    op->file.length = length;
    op->file.progress = 0;
    op->file.into = into;
    op->file.ahead_kib = ahead_kib(ahead);
    submit_op(loop, op, OP_READ, file);
}

void loop_offload(struct loop *loop, struct op *op, int (*work)(void *argument), void *argument)
{
    op->offload.work = work;
    op->offload.argument = argument;
    submit_op(loop, op, OP_OFFLOAD, -1);
}
