/*
 * The socket pair between the master and one worker: typed messages of one fixed size, each with at most one
 * descriptor. Sequenced packets keep messages whole; malformed ones are rejected.
 */
#ifndef MASTER_CHANNEL_H
#define MASTER_CHANNEL_H

#include "base/must_check.h"

#include <stdint.h>

enum channel_kind {
    CHANNEL_READY = 1,              /* worker: accepts connections */
    CHANNEL_FAILED,                 /* worker: cannot start, and a restart would not help; the cause is in the log */
    CHANNEL_STOP,                   /* master: stop at once */
    CHANNEL_QUIT,                   /* master: accept nothing new, complete open requests, then exit */
    /* master: as QUIT, but kept-alive connections may send one more request: the next generation accepts. */
    CHANNEL_RETIRE,
    CHANNEL_ERROR_LOG,              /* master: switch the error log to this descriptor */
    CHANNEL_ACCESS_LOG,             /* master: the same for access log number `index` */
    /* master: accept also from this socket of a dead worker; `index`: endpoint * workers + that worker's number. */
    CHANNEL_LISTEN,
    CHANNEL_UNLISTEN,               /* master: stop accepting from the sockets of worker number `index` */
    /* master: server number `index` has new TLS files, in the memory of this descriptor. */
    CHANNEL_CERTIFICATES,
    /* worker: change the level of the error log to `index` in all processes. Master: the level is `index`. */
    CHANNEL_LOG_LEVEL,
    CHANNEL_TICKET_KEY,             /* worker: generate the next key of session tickets, in shared memory; `index` 0 */
    /* master: `index` requests of this worker (the two above) have been handled since its start; wraps. */
    CHANNEL_DONE,
    /* worker: a query of the control socket for all workers; `index`: chosen by the worker, for CHANNEL_RESPONSES. */
    CHANNEL_QUERY,
    /* master: write the response to the query to this descriptor; `index`: how many connections may be listed. */
    CHANNEL_RESPOND,
    /* master: read the responses to query `index` from this descriptor; `number`: count of running workers. */
    CHANNEL_RESPONSES,
    CHANNEL_KINDS
};

struct channel_message {
    enum channel_kind kind;
    uint32_t index;
    int fd;                         /* -1: none. Sent: stays the sender's. Received: the receiver closes it */
    uint64_t number;                /* of a query: the connection to close; 0: list connections */
};

/*
 * Makes sends of descriptors to this end of a Unix socket pair fail with EPERM: when a reader closes a descriptor that
 * a compromised process has sent, the close may block (SO_LINGER of TCP). No effect before Linux 6.16 (SO_PASSRIGHTS).
 */
void channel_refuse_descriptors(int fd);
/*
 * Opens a connected pair, both ends non-blocking and close-on-exec. The master's end refuses descriptors. Returns 0 or
 * -errno.
 */
MUST_CHECK int channel_open(int *out_master, int *out_worker);
/* Returns 0, -EAGAIN if the queue is full, -EPIPE if the other end is closed, or another -errno. */
MUST_CHECK int channel_send(int fd, const struct channel_message *message);
/*
 * Returns 1: a message; 0: the other end is closed; -EAGAIN: no message; -EPROTO: a malformed message (its
 * descriptors are closed; the next message can be read); -EMFILE: no number is free for the descriptor, and the message
 * stays in the queue; or another -errno.
 */
MUST_CHECK int channel_receive(int fd, struct channel_message *out_message);
/* Removes the first message from the queue, and closes its descriptor. */
void channel_discard(int fd);

#endif
