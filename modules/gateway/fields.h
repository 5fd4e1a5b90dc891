/*
 * Header fields that go on, and those that do not: a field of one connection stays there (RFC 9110 7.6.1).
 */
#ifndef MODULES_GATEWAY_FIELDS_H
#define MODULES_GATEWAY_FIELDS_H

#include "gateway.h"

/* "name:port" as the client asked for it; empty where it named none. data NULL: no name, or out of memory. */
struct str gateway_request_host(struct exchange *x);
/* What a peer that is trusted says in fields of this name, all together; empty: nothing. data NULL: out of memory. */
struct str gateway_forwarded_field(struct exchange *x, struct str name);
/* X-Forwarded-For as it goes on: what a trusted peer said, and its address; else the client's address alone. data NULL: out of memory. */
struct str gateway_forwarded_for(struct gateway_request *p);
/* True where the client's Connection names fields that would be passed on else: the server answers another request than was asked. */
bool gateway_drops_fields(const struct headers *asked);
/* The client's fields that go on, into `out`. 0 or -ENOMEM. */
MUST_CHECK int gateway_request_fields(const struct headers *headers, struct arena *arena, struct headers *out);
/* The fields of a response that are not of its connection, into `out`. 0 or -ENOMEM. */
MUST_CHECK int gateway_end_to_end_fields(const struct gateway_request *p, const struct headers *headers, struct headers *out);
/* Those of them that the client gets, in `arena`. */
MUST_CHECK int gateway_pass_fields(const struct gateway_request *p, const struct headers *headers, struct arena *arena, struct headers *out);

#endif
