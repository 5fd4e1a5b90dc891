/*
 * The upstream connection of a request: its release, its timeout, and log messages.
 */
#ifndef MODULES_GATEWAY_CONNECTION_H
#define MODULES_GATEWAY_CONNECTION_H

#include "gateway.h"

/* Releases the connection and all memory outside the arena. `keep`: the connection may be reused. */
void gateway_release(struct gateway_request *p, bool keep);
/* Releases a connection that cannot be reused. */
void gateway_discard(struct gateway_request *p);
/* Logs an error with the stage and the server. */
void gateway_log(const struct gateway_request *p, enum log_level level, const char *what, int error);
/* Sets the connection's timeout for the current stage. */
void gateway_set_timeout(struct gateway_request *p);
/* Ends the exchange with `status`, or with a stale response. */
void gateway_fail(struct gateway_request *p, int status);

#endif
