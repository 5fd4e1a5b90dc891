/*
 * Forwarding of header fields: hop-by-hop fields are removed (RFC 9110 7.6.1).
 */
#ifndef MODULES_GATEWAY_FIELDS_H
#define MODULES_GATEWAY_FIELDS_H

#include "gateway.h"

/* "name:port" of the request; empty: none. data NULL: out of memory. */
struct str gateway_request_host(struct exchange *x);
/* The values of this field from a trusted peer, joined; empty: none. data NULL: out of memory. */
struct str gateway_forwarded_field(struct exchange *x, struct str name);
/*
 * X-Forwarded-For to send: the trusted peer's value and its address; otherwise the client's address. data NULL: out
 * of memory.
 */
struct str gateway_forwarded_for(struct gateway_request *p);
/* True if Connection names end-to-end fields: the forwarded request differs from the client's. */
bool gateway_drops_fields(const struct headers *headers);
/* Copies the client's end-to-end fields to `out`. 0 or -ENOMEM. */
MUST_CHECK int gateway_request_fields(const struct headers *headers, struct arena *arena, struct headers *out);
/* Copies a response's end-to-end fields. 0 or -ENOMEM. */
MUST_CHECK int gateway_end_to_end_fields(const struct gateway_request *p, const struct headers *headers,
                                         struct headers *out);
/* Copies the fields that are passed to the client, into `arena`. */
MUST_CHECK int gateway_pass_fields(const struct gateway_request *p, const struct headers *headers, struct arena *arena,
                                   struct headers *out);

#endif
