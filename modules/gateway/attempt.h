/*
 * One server after the other: connect, send the request, try the next.
 */
#ifndef MODULES_GATEWAY_ATTEMPT_H
#define MODULES_GATEWAY_ATTEMPT_H

#include "gateway.h"

/* Writes the request's head and connects to the first server. 0 or a status. */
int gateway_begin(struct gateway_request *p);
/* The request's head is written anew, and a server is asked again: the first one that the group chooses. */
void gateway_retry(struct gateway_request *p);
/* True where gateway_try_next would ask another server. */
bool gateway_may_try_next(const struct gateway_request *p, unsigned reason);
/* Another server is asked, or the exchange is refused: `reason` is an enum gateway_next. */
void gateway_try_next(struct gateway_request *p, unsigned reason, int status);
/* The connection ended, or did not come, before the response was whole. */
void gateway_connection_failed(struct gateway_request *p, int error);
/* The client's own body failed: that is no fault of the server. */
void gateway_request_failed(struct gateway_request *p, int error);

/* Of struct upstream_events. */
void gateway_opened(void *user);
void gateway_has_room(void *user);
void gateway_lost(void *user, int error);

#endif
