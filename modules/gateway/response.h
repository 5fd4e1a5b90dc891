/*
 * The response of an upstream server: its head becomes that of the exchange.
 */
#ifndef MODULES_GATEWAY_RESPONSE_H
#define MODULES_GATEWAY_RESPONSE_H

#include "gateway.h"

/* Processes received bytes, as wire->received. */
size_t gateway_received(void *user, struct str bytes);
/* Processes one item of the response. False: the response is read completely. `surplus`: bytes follow it. */
bool gateway_response_step(struct gateway_request *p, enum h1_reply_step step, struct str part, bool surplus);
/* `count` bytes are in the pipe, as wire->piped. */
void gateway_piped(void *user, size_t count);

/* accel.c: X-Accel-Limit-Rate sets the rate of sending; an invalid value is ignored. */
void gateway_accel_rate(struct gateway_request *p, const struct headers *response_headers);
/*
 * Adds a charset to the Content-Type in `headers` if that has none: X-Accel-Charset in `response_headers`,
 * else `charset` if it is set. 0 or -ENOMEM.
 */
MUST_CHECK int gateway_set_charset(struct gateway_request *p, const struct headers *response_headers,
                                   struct headers *headers);
/* X-Accel-Redirect: redirects internally to another URI of this server and ends p. False: there is none. */
bool gateway_accel_redirect(struct gateway_request *p);
/* Redirects p->x to the X-Accel-Redirect of p->reply, or responds with 500. */
enum outcome gateway_accel_follow(struct gateway_request *p);

/* detach.c: */

/*
 * Passes the reading of the response, p and its connection to a detached subrequest, which continues it as a background
 * update: the end of the client's exchange does not interrupt it. The client's exchange gets another
 * gateway_request, without the connection and the fill; `p->x` is the subrequest. 0, -ENOMEM, or -EMFILE (too many):
 * nothing has changed.
 */
MUST_CHECK int gateway_detach(struct gateway_request *p);
/*
 * Responds with 304: the fields of x->response are set, and the body is only stored. A short body is stored before the
 * response, so that the client's next request is a hit; otherwise the rest of it is detached. If the body is not
 * stored, a detached subrequest reads it while it is short. False: it cannot be detached; the response must be sent.
 */
MUST_CHECK bool gateway_respond_not_modified(struct gateway_request *p);

/* intercept.c: true if error_page replaces the upstream's error: x->response is set. */
bool gateway_intercept(struct gateway_request *p, int status, const struct headers *response_headers);

/*
 * response_range.c: replaces x->response by the requested range (proxy_force_ranges), or by 416 with p->stage
 * GATEWAY_DONE. 0 or -ENOMEM.
 */
MUST_CHECK int gateway_apply_range(struct gateway_request *p);

/* response_spool.c: after the head: true if the body must be buffered. */
bool gateway_uses_spool(const struct gateway_request *p);
/* Adds a part of the body. 0 or -ENOMEM. */
MUST_CHECK int gateway_spool_append(struct gateway_request *p, struct str part);

#endif
