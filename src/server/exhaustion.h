/*
 * Log limits of resources that all connections of a worker share.
 */
#ifndef SERVER_EXHAUSTION_H
#define SERVER_EXHAUSTION_H

#include <stdbool.h>

struct worker;

/*
 * Returns true if `error` (negative) may be logged now. Errors of exhausted resources, such as -EMFILE and
 * -EADDRNOTAVAIL, are logged once per second and worker; all others always.
 */
bool worker_may_log_error(struct worker *worker, int error);

#endif
