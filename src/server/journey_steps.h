/*
 * What the files of the journey ask of each other. Private to journey*.c.
 */
#ifndef SERVER_JOURNEY_STEPS_H
#define SERVER_JOURNEY_STEPS_H

#include "server/journey.h"

/* journey.c */

/* While the wire has room, the session is asked for what is to be sent. */
void journey_pump(struct journey *journey);
/* A module that kept the exchange has made up its mind: goes on in the story. */
void journey_continue(struct visit *visit, enum outcome outcome);

/* What the visit's location says of sizes and times holds from now on. */
void journey_settle(struct visit *visit);

/* journey_crowd.c */

/*
 * Memory for one connection, zeroed but for its peer, counted, on worker->journeys. NULL when out of memory, or when its address has too many: that
 * has been said. Pauses the listeners at the cap.
 */
struct journey *journey_take(struct worker *worker, const union proxy_address *peer);
/*
 * One connection more, counted; false where its address has too many: that has been said. Pauses the listeners at the cap. journey_take asks it, and
 * whoever has connections that are no journeys.
 */
bool journey_enter(struct worker *worker, const union proxy_address *peer);
/* One that has entered is gone. */
void journey_leave(struct worker *worker, const union proxy_address *peer);
/* Whether the memory of a new connection was missing; said once, until there is some again. */
void journey_starved(struct worker *worker, bool starved);
/* Gives it back. */
void journey_give(struct journey *journey);
/* The session of `journey` has something to send again, or room for more: pumped at the turn's end. */
void journey_wake(void *journey);
/* A visit ends: modules let go. */
void journey_let_go(struct visit *visit);
/* It is counted: an answer of that status, to a request that began then. */
void journey_count(struct worker *worker, int status, uint64_t began_us);

/* succession.c: another protocol after 101 */

/* The connection is the successor's now, and the visit's session ends. */
void journey_succeed(struct visit *visit);
/* The visit's session ends: true where its line in the log is its successor's. */
bool journey_succeeded(struct visit *visit);

/* journey_address.c: worker_connections_per_address */

/* One connection more from that address; false where it has as many as it may, or memory is out. */
bool journey_admit(struct worker *worker, const union proxy_address *peer);
/* One that was admitted is gone. */
void journey_dismiss(struct worker *worker, const union proxy_address *peer);

/* journey_trust.c: ssl_verify_client, ssl_early_data */

/* 0, or the status of a refusal: the client has not shown what the visit's server asks for, or has asked too early. */
int journey_trust(struct visit *visit);

/* journey_clock.c */

/* Starts the connection's one timer. */
void journey_clock_start(struct journey *journey);
/* After each event: what are we waiting for now, and until when? */
void journey_clock_look(struct journey *journey);
/* Counts the connection as one that is written to, ahead of the next journey_clock_look, for the page that tells of it. */
void journey_clock_answers(struct journey *journey);
/* The wire is closed: stops the clock, then gives the journey back. */
void journey_clock_stop(struct journey *journey);

#endif
