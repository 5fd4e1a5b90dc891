/*
 * Which server and location answer: nginx's rules (exact name, longest leading wildcard,
 * longest trailing wildcard, the first regular expression, default; exact location, the longest prefix where it is ^~, the
 * first regular expression, the longest prefix).
 */
#ifndef SERVER_ROUTE_H
#define SERVER_ROUTE_H

#include "server/request_state.h"

/* Fills request->server by the request's host. */
void route_server(struct request_state *request, const struct endpoint *endpoint);
/* The server of that name (lower case, or empty), else the default one; regular expressions are not asked. */
const struct virtual_server *route_by_name(const struct endpoint *endpoint, struct str name);
/*
 * Where the request goes next: into the server's own scope, where that has rules and they were not asked for this URI (request->in_server), else to
 * its location, by route_location.
 */
void route_next(struct request_state *request);
/* The modules that are asked where the request is: bits as of location->answering. */
uint64_t route_modules(const struct request_state *request);
/* Fills request->location by x->request.path, or by request->named (then forgotten). Never fails: the server's own scope is a location.
 * A regular expression that fails is answered 500 by route_guard. */
void route_location(struct request_state *request);
/*
 * What a location asks of every request before its modules: `internal` (404), OPTIONS *, which the server answers itself, and
 * route_limit_body, unless the location has a `when`. OUTCOME_PASS: go on with the modules; OUTCOME_ANSWERED: x->response is set.
 */
enum outcome route_guard(struct request_state *request);
/*
 * client_max_body_size: as route_guard, 413, and then the request has no body any more. Once it is known which `when` holds. The page
 * of an error takes what was taken before it.
 */
enum outcome route_limit_body(struct request_state *request);
/* A named location (@name), or NULL. */
const struct location *route_named(const struct request_state *request, struct str name);

#endif
