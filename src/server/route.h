/*
 * Selects the server and the location by nginx's rules (exact name, longest leading wildcard, longest trailing
 * wildcard, first regular expression, default; exact location, the longest prefix if it is ^~, the first regular
 * expression, the longest prefix).
 */
#ifndef SERVER_ROUTE_H
#define SERVER_ROUTE_H

#include "server/request_state.h"

/* Sets request->server by the request's host. */
void route_server(struct request_state *request, const struct endpoint *endpoint);
/* Returns the server of that name (lower case, or empty), else the default one; regular expressions are not tried. */
const struct virtual_server *route_by_name(const struct endpoint *endpoint, struct str name);
/*
 * Enters the server's own scope if it has rules that did not run for this URI (request->in_server_rules), else the
 * location by route_location.
 */
void route_next(struct request_state *request);
/* Returns the modules to call in the current scope: bits as of location->handlers. */
uint64_t route_modules(const struct request_state *request);
/*
 * Sets request->location by x->request.path, or by request->named (then cleared). Never fails: the server's own
 * scope is a location. A regular expression that fails causes 500 in route_check_location.
 */
void route_location(struct request_state *request);
/*
 * Applies a location's checks that precede its modules: a failed regular expression (500), `internal` (404),
 * keepalive_time, OPTIONS *, which the server handles itself, and route_limit_body, unless the location has a `when`.
 * OUTCOME_DECLINED: continue with the modules; OUTCOME_RESPONDED: x->response is set.
 */
enum outcome route_check_location(struct request_state *request);
/*
 * Applies client_max_body_size: outcomes as of route_check_location; with 413 the request's body is removed. Called
 * when the `when` that holds is known. An error page keeps the body accepted before it.
 */
enum outcome route_limit_body(struct request_state *request);
/* Returns the named location (@name), or NULL. */
const struct location *route_named(const struct request_state *request, struct str name);

#endif
