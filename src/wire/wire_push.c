/*
 * The pump of the output queue: one send at a time, blocks first, then the span; at the end of an orderly close, its
 * next step. wire_send.c adds chunks to the queue.
 */
#include "wire/wire_queue.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

bool wire_drained(const struct wire *wire)
{
    return !wire->first && !wire->reading && chunk_length(&wire->span) == 0 && op_idle(&wire->send);
}

static void drop_sent_blocks(struct wire *wire)
{
    struct output_block *block = wire->first;

    while (block && !output_block_is_ready(block) && block->open == 0) {
        wire->first = block->next;
        output_block_release(wire->shared, block);
        block = wire->first;
    }
    if (!block)
        wire->last = NULL;
}

static void remove_gathered(struct wire *wire, struct output_block *block)
{
    size_t sent = gather_sent(wire->shared, block->gather);

    block->from = block->gather->bytes_until;
    wire->sent += sent;
    wire_count_key_use(wire, sent);
    wire->blocks_in_flight = 0;
}

/* Removes the sent bytes from the queue. */
static void remove_sent(struct wire *wire)
{
    const struct iovec *part = wire->first->parts;

    if (wire->first->gather && wire->first->gather->count_in_flight > 0) {
        remove_gathered(wire, wire->first);
        return;
    }
    for (struct output_block *block = wire->first; wire->blocks_in_flight > 0; wire->blocks_in_flight--) {
        wire->sent += part->iov_len;
        wire_count_key_use(wire, part->iov_len);
        block->from += (uint32_t)part->iov_len;
        block = block->next;
        part++;
    }
}

/* EFAULT: a mapped page is past the end of its file. */
static void send_failed(struct wire *wire, int error)
{
    if (error == -EFAULT)
        wire_log(wire, LOG_ERROR, "a file was truncated while it was sent", 0);
    wire_fail(wire, error == -EFAULT ? WIRE_CLOSE_ABORT : wire_close_reason_of(error));
}

static void socket_writable(struct op *op, int result)
{
    struct wire *wire = container_of(op, struct wire, send);

    if (wire->state == WIRE_CLOSING)
        wire_finish_close(wire);
    else if (result < 0)
        wire_fail(wire, wire_close_reason_of(result));
    else
        wire_continue(wire, wire_room(wire) > 0);
}

static void await_socket(struct wire *wire)
{
    wire->send.done = socket_writable;
    loop_poll(wire->shared->loop, &wire->send, wire->fd, POLLOUT);
}

/* After a complete send: continues, or waits for the socket, so that the owner chooses the next response later. */
static void begin_turn(struct wire *wire, bool was_writable)
{
    if (wire->unsent_max > 0)
        wire_adapt_unsent(wire);
    if (wire->turn_ended && wire_turn_waits(wire)) {
        drop_sent_blocks(wire);
        await_socket(wire);
    } else {
        wire_continue(wire, was_writable);
    }
}

static void send_done(struct op *op, int result)
{
    struct wire *wire = container_of(op, struct wire, send);
    bool was_writable;

    if (wire->state == WIRE_CLOSING) {
        wire_finish_close(wire);
        return;
    }
    if (result < 0) {
        send_failed(wire, result);
        return;
    }
    was_writable = !wire->was_full && wire_room(wire) > 0;
    if (wire->blocks_in_flight > 0)
        remove_sent(wire);
    begin_turn(wire, was_writable);
}

static bool is_ready(const struct output_block *block)
{
    return block && !block->type && output_block_is_ready(block);
}

/* Sends up to two blocks without mapped parts. */
static void submit_blocks(struct wire *wire, struct output_block *first, int flags)
{
    struct output_block *block = first;

    do {
        first->parts[wire->blocks_in_flight++] =
            (struct iovec){block->bytes + block->from, block->filled - block->from};
        block = block->next;
    } while (wire->blocks_in_flight < 2 && first->open == 0 && is_ready(block) && !block->gather);
    loop_send(wire->shared->loop, &wire->send, wire->fd, first->parts, wire->blocks_in_flight,
              !block && flags ? MSG_MORE : 0);
}

static void submit_gathered(struct wire *wire, struct output_block *block, int flags)
{
    struct gather *gather = block->gather;

    gather_begin(gather, block->bytes, block->from, block->filled);
    wire->blocks_in_flight = 1;
    loop_send_pages(wire->shared->loop, &wire->send, wire->fd, gather->vector, gather->count_in_flight,
                    !block->next && flags ? MSG_MORE : 0);
}

/* The limit of gathered bytes is doubled while the socket accepts all of them at once. */
static void adapt_gather(struct wire *wire, bool at_once)
{
    if (!at_once)
        wire->gather_doublings = 0;
    else if (wire_gather_max(wire) < LIMIT_GATHER)
        wire->gather_doublings++;
}

static void send_blocks(struct wire *wire, struct output_block *first)
{
    int more = !wire->promoting && wire_span_is_direct(wire) ? MSG_MORE : 0;
    bool gathered = gather_is_waiting(first->gather);

    wire->send.done = send_done;
    if (gathered)
        submit_gathered(wire, first, more);
    else
        submit_blocks(wire, first, more);
    /* Usually the send is complete by now: its block is reused while in the CPU cache. */
    wire->was_full = false;
    if (op_finished(&wire->send) && wire->send.result >= 0) {
        wire->was_full = wire_room(wire) == 0;
        remove_sent(wire);
        drop_sent_blocks(wire);
    }
    if (gathered)
        adapt_gather(wire, op_finished(&wire->send));
}

static void push_control(struct wire *wire)
{
    struct output_block *block = wire->first;
    ssize_t sent;

    if (block->type == BLOCK_KEY) {
        if (wire_rekey(wire))
            wire_push(wire);
        return;
    }
    sent = ktls_send_record(wire->shared->ktls_calls, wire->fd, block->type,
                            str_of(block->bytes + block->from, block->filled - block->from));
    if (sent == -EAGAIN) {
        await_socket(wire);
    } else if (sent < 0) {
        wire_fail(wire, wire_close_reason_of((int)sent));
    } else {
        block->from = block->filled;
        wire_count_key_use(wire, 0);
        wire_push(wire);
    }
}

static void span_done(struct op *op, int result)
{
    struct wire *wire = container_of(op, struct wire, send);

    if (wire_span_push_done(wire, result))
        begin_turn(wire, false);
}

static void read_done(struct op *op, int result)
{
    struct wire *wire = container_of(op, struct output_block, read)->reader;

    if (wire_span_read_done(wire, result))
        wire_continue(wire, false);
}

void wire_fill(struct wire *wire)
{
    enum wire_span_step step;

    while ((step = wire_span_fill(wire)) == SPAN_FULL)
        wire_push(wire);
    if (step == SPAN_UNCACHED)
        wire_span_read(wire, read_done);
    if (step != SPAN_WAITS)
        wire_push(wire);
}

/* Passes the key to the kernel; if the kernel refuses, encryption continues in user space. */
static void promote_or_continue(struct wire *wire)
{
    if (wire_promote(wire)) {
        wire_push(wire);
        return;
    }
    wire_fill(wire);
    /* The owner has flushed already: the last record of a span that was read at once is closed; `writable` follows. */
    if (chunk_length(&wire->span) == 0 && wire->state != WIRE_CLOSING && wire_record_close(wire) < 0)
        wire_fail(wire, WIRE_CLOSE_ABORT);
    wire_push(wire);
    wire->was_full = true;
}

/* Nothing is in flight: selects the next step. */
static void push_next(struct wire *wire)
{
    struct output_block *block;

    drop_sent_blocks(wire);
    block = wire->first;
    if (block && block->type)
        push_control(wire);
    else if (is_ready(block))
        send_blocks(wire, block);
    else if (wire->promoting)
        promote_or_continue(wire);
    else if (wire_span_is_direct(wire))
        wire_span_push(wire, span_done);
}

/*
 * All output was sent. On a kTLS socket, records in the kernel may be incomplete, and a FIN would truncate them: the
 * wire sends none and waits for the peer's FIN; close() then ends the connection.
 */
static void shut_down_sending(struct wire *wire)
{
    if (wire->sealing != SEALING_KERNEL && !wire->peer_ended)
        (void)shutdown(wire->fd, SHUT_WR);
    wire_linger(wire);
}

/* close_notify follows all queued output, hence after a span. */
static void push_end(struct wire *wire)
{
    if (wire->tls && wire->end == WIRE_CLOSE_ORDERLY && !wire->close_notify_queued) {
        wire->close_notify_queued = true;
        tls_session_shutdown(wire->tls);
        wire_push(wire);
    } else if (wire_drained(wire)) {
        shut_down_sending(wire);
    }
}

/* Half-close: close_notify, then FIN. */
static void push_half(struct wire *wire)
{
    if (wire->tls && !wire->close_notify_queued) {
        wire->close_notify_queued = true;
        tls_session_shutdown(wire->tls);
        wire_push(wire);
    } else if (wire_drained(wire)) {
        wire->finishing = false;
        if (wire->sealing != SEALING_KERNEL)
            (void)shutdown(wire->fd, SHUT_WR);
    }
}

void wire_push(struct wire *wire)
{
    if (wire->state >= WIRE_LINGERING)
        return;
    if (op_idle(&wire->send))
        push_next(wire);
    if (chunk_length(&wire->span) > 0 || wire->reading)
        return;
    if (wire->state == WIRE_DRAINING)
        push_end(wire);
    else if (wire->finishing && wire->state == WIRE_OPEN)
        push_half(wire);
}

void wire_flush(struct wire *wire)
{
    /* the file continues the record */
    bool span_continues_record = chunk_length(&wire->span) > 0 && !wire_span_is_direct(wire);

    if (wire->state == WIRE_CLOSING)
        return;
    if (!wire->promoting && !span_continues_record && wire_record_close(wire) < 0)
        wire_fail(wire, WIRE_CLOSE_ABORT);
    else if (!wire->delivering) /* the receiver may produce more output: one send for all */
        wire_push(wire);
}

void wire_continue(struct wire *wire, bool was_writable)
{
    if (op_idle(&wire->send) && wire->turn_room == TURN_QUEUE_FULL)
        wire->turn_room = TURN_ROOM_UNKNOWN;
    wire_check_key_limit(wire);
    wire_push(wire);
    if (chunk_length(&wire->span) > 0 && !wire->promoting && !wire_span_is_direct(wire))
        wire_fill(wire);
    wire_push(wire);
    if (wire->state == WIRE_DRAINING && chunk_length(&wire->span) == 0)
        wire_flush(wire); /* the span was the last part, and the owner will not close the record */
    if (wire->turn_ended)
        wire_end_turn(wire);
    if (wire->turn_room == TURN_QUEUE_FULL)
        wire_flush(wire); /* the owner does not: `writable` follows when this is sent */
    if (!was_writable && wire_room(wire) > 0)
        wire->events->writable(wire);
    if (wire->events->drained && wire->state != WIRE_CLOSING && wire_drained(wire))
        wire->events->drained(wire);
}
