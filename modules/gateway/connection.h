/*
 * The connection to a server, as a request has it: its end, its timeout, and lines of the error log that name it.
 */
#ifndef MODULES_GATEWAY_CONNECTION_H
#define MODULES_GATEWAY_CONNECTION_H

#include "gateway.h"

/* Releases the connection, and what is not in the arena. `keep`: it may carry further requests. */
void gateway_release(struct gateway_request *p, bool keep);
/* The same with a connection that carries no further request. */
void gateway_discard(struct gateway_request *p);
/* A line in the error log: what went wrong, at which stage, with which server. */
void gateway_log(const struct gateway_request *p, enum log_level level, const char *what, int error);
/* The connection's timeout: what is waited for now. */
void gateway_set_timeout(struct gateway_request *p);
/* No response will come: answers with `status`, or with something stale. */
void gateway_fail(struct gateway_request *p, int status);

#endif
