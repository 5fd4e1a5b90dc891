/*
 * The socket pair between the master and one worker: typed messages of one fixed
 * size, each with at most one descriptor. Sequenced packets, so that a message is whole
 * or not there; whatever is malformed is refused, never guessed at.
 */
#ifndef MASTER_CHANNEL_H
#define MASTER_CHANNEL_H

#include "base/must_check.h"

#include <stdint.h>

enum channel_kind {
    CHANNEL_READY = 1,              /* worker: I accept connections */
    CHANNEL_FAILED,                 /* worker: I cannot start, and starting me again would not help; it is in the log */
    CHANNEL_STOP,                   /* master: end now */
    CHANNEL_QUIT,                   /* master: take nothing new, finish what is open, end */
    CHANNEL_RETIRE,                 /* master: the same, but whoever keeps a connection may ask once more: others accept from now on */
    CHANNEL_ERROR_LOG,              /* master: go on with this descriptor */
    CHANNEL_ACCESS_LOG,             /* master: the same for access log number `index` */
    CHANNEL_LISTEN,                 /* master: accept from this socket of a dead worker, too; `index`: endpoint * workers + that worker's number */
    CHANNEL_UNLISTEN,               /* master: no longer from those of worker number `index` */
    CHANNEL_CERTIFICATES,           /* master: server number `index` has other files now; they are in the memory of this descriptor */
    CHANNEL_KINDS
};

struct channel_message {
    enum channel_kind kind;
    uint32_t index;
    int fd;                         /* -1: none. Sent: the sender keeps its own. Received: the receiver's to close */
};

/* A connected pair, both ends non-blocking and close-on-exec. 0 or -errno. */
MUST_CHECK int channel_open(int *out_master, int *out_worker);
/* 0, -EAGAIN where the other end does not read, -EPIPE where it is gone, or another -errno. */
MUST_CHECK int channel_send(int fd, const struct channel_message *message);
/*
 * 1: a message; 0: the other end is closed; -EAGAIN: nothing there; -EPROTO: a malformed message (its descriptors are closed; the
 * next one can still be read); -EMFILE: this process has no number left for the descriptor that came, and the message is lost; or
 * another -errno.
 */
MUST_CHECK int channel_receive(int fd, struct channel_message *out_message);

#endif
