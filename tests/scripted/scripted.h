/*
 * The third backend of the loop: no kernel, no waiting, time by command. A test
 * says what the peer sends, how much room it gives, when it goes away, and in which
 * order things finish; the code under test cannot tell the difference. Any number
 * may be used as a socket: what nobody scripted starts as an idle connection with
 * endless room. Files are real, and read without threads.
 */
#ifndef TESTS_SCRIPTED_H
#define TESTS_SCRIPTED_H

#include "io/loop.h"

extern const struct loop_backend loop_backend_scripted;

/* Opens loop with this backend; time stands at 1,000,000 ms monotonic and 2026-11-20 12:00:00 UTC. */
MUST_CHECK int scripted_open(struct loop *loop, struct log *log);

/* A new connected socket; a number that is no descriptor of this process. */
int scripted_socket(struct loop *loop);

/* The peer sends bytes (copied). */
void scripted_peer_send(struct loop *loop, int fd, struct str bytes);
/* The peer closes its side: receives give what is left, then 0. Sending still works, as after a half close. */
void scripted_peer_close(struct loop *loop, int fd);
/* The peer resets: what was not received is lost, everything fails with -ECONNRESET, later sends with -EPIPE. */
void scripted_peer_reset(struct loop *loop, int fd);

/* Everything that was sent on fd so far, valid until the next turn. */
struct str scripted_sent(struct loop *loop, int fd);
/* Forgets what was sent so far. */
void scripted_sent_clear(struct loop *loop, int fd);
/* Whether fd was closed by loop_close_fd. */
bool scripted_closed(struct loop *loop, int fd);

/* A receive lends at most `most` bytes (1: byte by byte). */
void scripted_receive_at_most(struct loop *loop, int fd, size_t most);
/* Each turn takes at most `most` bytes of a send or sendfile (1: byte by byte). 0 stands for LIMIT_ITERATION_BYTES. */
void scripted_send_at_most(struct loop *loop, int fd, size_t most);
/* The peer reads no more than `room` bytes from now on; SIZE_MAX: all. */
void scripted_give_room(struct loop *loop, int fd, size_t room);

/* The next op of `verb` on fd ends with `error` (negative) or, for OP_CONNECT and OP_POLL, with that result. */
void scripted_fail(struct loop *loop, int fd, enum op_verb verb, int error);
/* A connect on fd stays under way until this is called with its result. */
void scripted_hold_connect(struct loop *loop, int fd);
void scripted_connected(struct loop *loop, int fd, int result);
/* A connection arrives on a listening socket; returns the number that the accept will give. */
int scripted_arrive(struct loop *loop, int listener);

/* Time goes on; timers that became due run in the next turn. */
void scripted_advance(struct loop *loop, uint64_t ms);
/* What becomes ready in one turn is told in an order drawn from `seed`; 0: in the order of submission. */
void scripted_shuffle(struct loop *loop, unsigned seed);
/* Cancelled ops that could finish do finish, with their true result, as may happen with a kernel. */
void scripted_cancel_loses(struct loop *loop, bool loses);

/* Turns until nothing happens any more; time stands still. Fails the process after `most` turns: an endless loop. */
void scripted_settle(struct loop *loop, int most);

#endif
