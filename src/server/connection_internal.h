/*
 * Functions shared by the files of the connection. Private to connection*.c.
 */
#ifndef SERVER_CONNECTION_INTERNAL_H
#define SERVER_CONNECTION_INTERNAL_H

#include "server/connection.h"

/* connection.c */

/* Moves chunks from the session to the wire while the wire has room. */
void connection_pump(struct connection *connection);
/* Continues the exchange with the outcome of a step or of a module that kept it pending. */
void request_continue(struct request_state *request, enum outcome outcome);

/* connection_create.c */

/*
 * Creates a connection on worker->connection_list, with its worker, peer, number and time of opening; counted by
 * connection_reserve. Returns NULL when that fails, or when out of memory (already logged).
 */
struct connection *connection_create(struct worker *worker, const union proxy_address *peer);
/*
 * Counts one more connection, also for streams. Returns false if its address has too many or out of memory (both
 * already logged), or if the worker stops. Pauses the listeners at the limit.
 */
bool connection_reserve(struct worker *worker, const union proxy_address *peer);
/* Reverses connection_reserve. */
void connection_unreserve(struct worker *worker, const union proxy_address *peer);
/* Logs a failed allocation of a connection, once per second. */
void connection_log_memory(struct worker *worker);
/* Releases a connection and its count. */
void connection_destroy(struct connection *connection);
/* Queues a connection whose session has output or room again: pumped at the end of the loop iteration. */
void connection_wake(void *connection);
/*
 * Pauses the listeners at the limit of connections or of memory for output, where new connections wait in the
 * backlog, and resumes them below it.
 */
void connection_limit_accept(struct worker *worker);

/* request_end.c */

/* Ends a request: ends its subrequests, cancels a pending module and calls the modules' `finish`. */
void request_release(struct request_state *request);
/* Counts a request that ended, in the counters of the worker and in the zones of its location. */
void request_count(const struct request_state *request);
/* The same with given values, except the duration, which is that since `began_us`. `zones` NULL: none. */
void request_count_values(struct worker *worker, const struct location_zones *zones, struct status_zone_request ended,
                          uint64_t began_us);

/* protocol_upgrade.c: another protocol after 101 */

/* Hands the connection to the upgraded session and closes the session of the request. */
void connection_upgrade(struct request_state *request);
/* Called when the session of the request ends: true if the upgraded session writes its access log line. */
bool connection_upgraded(struct request_state *request);

/* connection_address.c: worker_connections_per_address */

/* Counts one more connection of that address. Returns 0, -EUSERS at the limit (already logged), or -ENOMEM. */
MUST_CHECK int connection_address_reserve(struct worker *worker, const union proxy_address *peer);
/* Reverses connection_address_reserve. */
void connection_address_unreserve(struct worker *worker, const union proxy_address *peer);

/* connection_authorize.c: ssl_verify_client, ssl_early_data */

/*
 * Returns 0, or the error status: the client certificate is missing, invalid or for another server (496, 495, 421),
 * an unsafe request came as early data (425), or the certificate of the connection does not cover the host (421).
 */
int connection_authorize(struct request_state *request);

/* connection_plain_http.c */

/* Sends a plain-text 400 and closes: the client sent HTTP without TLS to a TLS port. */
void connection_reject_plain_http(struct connection *connection);

/* connection_timeout.c */

/* Starts the connection's only timer; connection->timer.done is set. */
void connection_timeout_start(struct connection *connection);
/* Recomputes phase and deadline; called after each event. */
void connection_timeout_update(struct connection *connection);
/*
 * Called when the timer fires: releases a connection whose wire is closed; at the deadline closes the wire or signals
 * the session; before it restarts the timer. Returns true if the session was signalled: its output must be pumped.
 */
bool connection_timeout_passed(struct connection *connection);
/* Counts the connection as writing before the next connection_timeout_update, for the status page. */
void connection_timeout_count_writing(struct connection *connection);
/* The state in which the status page counts the connection. */
enum connection_state connection_timeout_state(const struct connection *connection);
/* Called when the wire is closed: stops the timer, then releases the connection. */
void connection_timeout_stop(struct connection *connection);

#endif
