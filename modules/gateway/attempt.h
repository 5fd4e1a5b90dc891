/*
 * Attempts: connect to a server, send the request, try the next server.
 */
#ifndef MODULES_GATEWAY_ATTEMPT_H
#define MODULES_GATEWAY_ATTEMPT_H

#include "gateway.h"

/* Formats the request's head and connects to the first server. 0 or a status. */
int gateway_begin(struct gateway_request *p);
/* Formats the request's head again and selects a server again. */
void gateway_retry(struct gateway_request *p);
/* True if gateway_try_next would try another server. */
bool gateway_may_try_next(const struct gateway_request *p, unsigned reason);
/* Tries another server, or ends the exchange with an error: `reason` is an enum gateway_next. */
void gateway_try_next(struct gateway_request *p, unsigned reason, int status);
/* The connection failed before the response was complete. */
void gateway_connection_failed(struct gateway_request *p, int error);
/*
 * The server did not process the request, which is sent again, regardless of its method: at most
 * LIMIT_H2_UPSTREAM_REFUSALS times without counting as a failure.
 */
void gateway_unprocessed(struct gateway_request *p);
/* The server has reset the stream of the request; `what` is logged. */
void gateway_reset(struct gateway_request *p, const char *what);
/* Reading the client's body failed: this is not counted as a failure of the server. */
void gateway_request_failed(struct gateway_request *p, int error);

/* Callbacks of struct upstream_events. */
void gateway_opened(void *user);
void gateway_writable(void *user);
void gateway_lost(void *user, int error);

#endif
