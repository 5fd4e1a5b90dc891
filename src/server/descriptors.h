/*
 * What a worker does when it is out of file descriptors: connections that only wait for a request give theirs back.
 */
#ifndef SERVER_DESCRIPTORS_H
#define SERVER_DESCRIPTORS_H

#include <stdbool.h>

struct worker;

/* True for the errors that this is about: EMFILE and ENFILE, negative. */
bool descriptors_exhausted(int error);
/*
 * Closes idle connections to upstream servers, and up to LIMIT_RECLAIMED client connections on which no request is under way, those accepted first. Their
 * descriptors are free in a later turn of the loop. Does so once in LIMIT_RECLAIM_MS, and logs one line per second. True where connections were closed by
 * the last call that did so.
 */
bool descriptors_reclaim(struct worker *worker);

#endif
