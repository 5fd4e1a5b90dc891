/*
 * A connected pair of TCP sockets over loopback: TCP_ULP fails on other sockets.
 */
#ifndef TLS_TCP_PAIR_H
#define TLS_TCP_PAIR_H

#include "base/must_check.h"

struct tcp_pair {
    int local;                      /* -1: none */
    int peer;
};

/* Opens a pair of blocking sockets. 0 or -errno. */
MUST_CHECK int tcp_pair_open(struct tcp_pair *out_pair);
/* Resets the connection, so that none remains in TIME_WAIT. */
void tcp_pair_close(struct tcp_pair *pair);

#endif
