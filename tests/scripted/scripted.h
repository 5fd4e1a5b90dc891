/*
 * The third backend of the loop: no socket I/O, no waiting, time advanced only by calls. A test sets the bytes that the
 * peer sends, the room in the peer's window, the moment of its close, and the order of completions; the code under test
 * behaves as with a real backend. Any number may be used as a socket: one without a script starts as an idle
 * connection with unlimited room. Files are real, and read without threads.
 */
#ifndef TESTS_SCRIPTED_H
#define TESTS_SCRIPTED_H

#include "io/loop.h"

extern const struct loop_backend loop_backend_scripted;

/* Opens loop with this backend. The initial time is 1,000,000 ms monotonic and 2026-11-20 12:00:00 UTC. */
MUST_CHECK int scripted_open(struct loop *loop, struct log *log);

/* Returns a new connected socket: a number that is not a descriptor of this process. */
int scripted_socket(struct loop *loop);

/* Adds bytes (copied) sent by the peer. */
void scripted_peer_send(struct loop *loop, int fd, struct str bytes);
/*
 * The peer closes its side: receives return the remaining bytes, then 0. Sends still succeed, as after a half-close.
 */
void scripted_peer_close(struct loop *loop, int fd);
/* The peer resets: unreceived bytes are lost, all ops fail with -ECONNRESET, later sends with -EPIPE. */
void scripted_peer_reset(struct loop *loop, int fd);

/* Returns all bytes sent on fd so far, valid until the next iteration. */
struct str scripted_sent(struct loop *loop, int fd);
/* Clears the bytes sent so far. */
void scripted_sent_clear(struct loop *loop, int fd);
/* Returns whether loop_close_fd closed fd. */
bool scripted_closed(struct loop *loop, int fd);

/* Limits a receive to `max` bytes (1: byte by byte). */
void scripted_receive_at_most(struct loop *loop, int fd, size_t max);
/* Limits a send or sendfile to `max` bytes for each iteration (1: byte by byte). 0 means LIMIT_ITERATION_BYTES. */
void scripted_send_at_most(struct loop *loop, int fd, size_t max);
/* The peer reads at most `room` more bytes; SIZE_MAX: no limit. */
void scripted_give_room(struct loop *loop, int fd, size_t room);

/* The next op of `verb` on fd ends with `error` (negative) or, for OP_CONNECT and OP_POLL, with that result. */
void scripted_fail(struct loop *loop, int fd, enum op_verb verb, int error);
/* A connect on fd stays pending until this is called with its result. */
void scripted_delay_connect(struct loop *loop, int fd);
void scripted_connected(struct loop *loop, int fd, int result);
/* Adds a connection to a listening socket; returns the number that the accept will return. */
int scripted_add_connection(struct loop *loop, int listener);

/* Advances the time; timers that become due run in the next iteration. */
void scripted_advance(struct loop *loop, uint64_t ms);
/* Reports the completions of one iteration in an order drawn from `seed`; 0: in the order of submission. */
void scripted_shuffle(struct loop *loop, unsigned seed);
/* A cancelled op that can complete delivers its true result, as is possible with a kernel. */
void scripted_cancel_loses(struct loop *loop, bool loses);

/*
 * Runs iterations until one makes no progress; the time does not advance. Aborts the process after `max` iterations,
 * which indicate an endless loop.
 */
void scripted_settle(struct loop *loop, int max);

#endif
