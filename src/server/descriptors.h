/*
 * Frees file descriptors when the worker is out of them, by closing idle connections.
 */
#ifndef SERVER_DESCRIPTORS_H
#define SERVER_DESCRIPTORS_H

#include <stdbool.h>

struct worker;

/* Returns true for EMFILE and ENFILE (negative). */
bool descriptors_exhausted(int error);
/*
 * Closes idle connections to upstream servers, and up to LIMIT_RECLAIMED client connections without a request in
 * progress, oldest first. Their descriptors are free in a later loop iteration. Acts once in LIMIT_RECLAIM_MS and
 * logs one line per second. Returns true if the last call that acted closed connections.
 */
bool descriptors_reclaim(struct worker *worker);

#endif
