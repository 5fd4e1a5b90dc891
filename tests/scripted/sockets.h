/*
 * The sockets of the scripted backend: the state of the code under test and of the peer.
 */
#ifndef TESTS_SCRIPTED_SOCKETS_H
#define TESTS_SCRIPTED_SOCKETS_H

#include "base/buffer.h"
#include "scripted.h"

#define SCRIPTED_FD_BASE 0x40000000
#define ARRIVED_MAX      256
#define FAILURES_MAX     8

struct fake {
    struct list link;
    int fd;
    struct buffer unread;           /* sent by the peer, not yet received by the code under test */
    struct buffer sent;             /* sent by the code under test */
    size_t receive_max;             /* 0: no limit */
    size_t send_max;
    size_t room;
    bool ended;
    bool reset;
    bool reset_reported;
    bool closed;
    bool connect_delayed;
    int connect_result;
    int arrived[ARRIVED_MAX];       /* the last one is accepted first */
    int arrived_count;
    struct {
        enum op_verb verb;
        int error;
    } failures[FAILURES_MAX];
    int failure_count;
};

struct scripted {
    struct list waiting;            /* ops, in the order of submission */
    struct list sockets;
    int next_fd;
    unsigned seed;
    bool cancel_loses;
};

/* Returns the socket of that number, creating it if necessary; never NULL. */
struct fake *socket_of(struct loop *loop, int fd);
/* Consumes the failure scripted for op, if any. */
bool socket_failure(struct loop *loop, const struct op *op, int *out_result);
/* Bytes transferred so far: an iteration that transferred none made no progress. */
uint64_t sockets_progress(const struct scripted *scripted);
void sockets_free(struct scripted *scripted);
/* Sets the address of accepted peers: 192.0.2.1:1234. */
void scripted_peer_address(struct sockaddr_storage *address, socklen_t *out_length);

#endif
