/*
 * The response of a server: its head becomes the exchange's.
 */
#ifndef MODULES_GATEWAY_RESPONSE_H
#define MODULES_GATEWAY_RESPONSE_H

#include "gateway.h"

/* Bytes of the response, as wire->received. */
size_t gateway_received(void *user, struct str bytes);
/* So many bytes are in the pipe, as wire->piped. */
void gateway_piped(void *user, size_t count);

/* accel.c */

/* X-Accel-Limit-Rate is the rate at which the response leaves; what is no number counts as nothing. */
void gateway_accel_rate(struct gateway_request *p, const struct headers *said);
/* X-Accel-Charset among `said` becomes the charset of Content-Type in `headers`, where that has none. 0 or -ENOMEM. */
MUST_CHECK int gateway_accel_charset(struct gateway_request *p, const struct headers *said, struct headers *headers);
/* X-Accel-Redirect: another URI of this server answers, internal ones too, and p is over. False: there is none. */
bool gateway_accel_redirect(struct gateway_request *p);

/* intercept.c */

/* True where an error of a server is not passed on, since error_page has something else: x->response is that. */
bool gateway_intercept(struct gateway_request *p, int status, const struct headers *said);

/* response_range.c */

/* The response stands in x->response: the part that was asked for takes its place (proxy_force_ranges), or 416, and p->stage is GATEWAY_DONE. 0 or -ENOMEM. */
MUST_CHECK int gateway_apply_range(struct gateway_request *p);

/* response_spool.c */

/* The head has come: true where its body is to be buffered. */
bool gateway_wants_spool(const struct gateway_request *p);
/* A part of the body. 0 or -ENOMEM. */
MUST_CHECK int gateway_spool_append(struct gateway_request *p, struct str part);

#endif
