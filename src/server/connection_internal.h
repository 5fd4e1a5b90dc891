/*
 * What the files of the connection ask of each other. Private to connection*.c.
 */
#ifndef SERVER_CONNECTION_INTERNAL_H
#define SERVER_CONNECTION_INTERNAL_H

#include "server/connection.h"

/* connection.c */

/* While the wire has room, the session is asked for what is to be sent. */
void connection_pump(struct connection *connection);
/* A module that kept the exchange has made up its mind: goes on in the story. */
void request_continue(struct request_state *request, enum outcome outcome);

/* What the request's location says of sizes and times holds from now on. */
void request_apply_settings(struct request_state *request);

/* connection_list.c */

/*
 * Memory for one connection, zeroed but for its peer, counted, on worker->connection_list. NULL when out of memory, or when its address has too many: that
 * has been said. Pauses the listeners at the cap.
 */
struct connection *connection_create(struct worker *worker, const union proxy_address *peer);
/*
 * One connection more, counted; false where its address has too many: that has been said. Pauses the listeners at the cap. connection_create asks it, and
 * whoever has connections that are no connections.
 */
bool connection_reserve(struct worker *worker, const union proxy_address *peer);
/* One that has entered is gone. */
void connection_unreserve(struct worker *worker, const union proxy_address *peer);
/* Whether the memory of a new connection was missing; said once, until there is some again. */
void connection_memory_missing(struct worker *worker, bool missing);
/* Gives it back. */
void connection_destroy(struct connection *connection);
/* The session of `connection` has something to send again, or room for more: pumped at the turn's end. */
void connection_wake(void *connection);
/* A request ends: modules let go. */
void request_release(struct request_state *request);
/* It is counted: an answer of that status, to a request that began then. */
void request_count(struct worker *worker, int status, uint64_t began_us);

/* protocol_upgrade.c: another protocol after 101 */

/* The connection is the upgraded's now, and the request's session ends. */
void connection_upgrade(struct request_state *request);
/* The request's session ends: true where its line in the log is its upgraded's. */
bool connection_upgraded(struct request_state *request);

/* connection_address.c: worker_connections_per_address */

/* One connection more from that address; false where it has as many as it may, or memory is out. */
bool connection_address_reserve(struct worker *worker, const union proxy_address *peer);
/* One that was admitted is gone. */
void connection_address_unreserve(struct worker *worker, const union proxy_address *peer);

/* connection_authorize.c: ssl_verify_client, ssl_early_data */

/* 0, or the status of a refusal: the client has not shown what the request's server asks for, or has asked too early. */
int connection_authorize(struct request_state *request);

/* connection_timeout.c */

/* Starts the connection's one timer. */
void connection_timeout_start(struct connection *connection);
/* After each event: what are we waiting for now, and until when? */
void connection_timeout_update(struct connection *connection);
/* Counts the connection as one that is written to, ahead of the next connection_timeout_update, for the page that tells of it. */
void connection_timeout_count_writing(struct connection *connection);
/* The wire is closed: stops the clock, then gives the connection back. */
void connection_timeout_stop(struct connection *connection);

#endif
