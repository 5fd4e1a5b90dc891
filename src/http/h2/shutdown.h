/*
 * Graceful shutdown in two steps (RFC 9113 6.8): GOAWAY with the highest identifier, and after a round trip GOAWAY
 * with the last stream that was accepted, so that no request in flight is lost.
 */
#ifndef HTTP_H2_SHUTDOWN_H
#define HTTP_H2_SHUTDOWN_H

#include "http/h2/session.h"

/* Announces the end of the connection. No effect when it is announced already. */
void h2_shutdown_start(struct h2_session *h2);
/* Sends the second GOAWAY: the PING was acknowledged, or LIMIT_H2_GOAWAY_MS have passed. */
void h2_shutdown_acknowledged(struct h2_session *h2);
/* Ends the session when its last stream has ended. */
void h2_shutdown_check(struct h2_session *h2);

/* Payloads of PING: for the bandwidth-delay product, after the first GOAWAY, and after an early response. */
#define H2_PING_BDP         "sluicebd"
#define H2_PING_SHUTDOWN    "sluicego"
#define H2_PING_RESPONSE    "sluicere"
/* Queues a PING with this payload of eight bytes. */
void h2_ping_send(struct h2_session *h2, const char *opaque);

#endif
