/*
 * Log limits of exhausted resources: see exhaustion.h.
 */
#include "server/exhaustion.h"

#include "server/worker.h"

#include <errno.h>

static const int exhaustions[] = {EMFILE, ENFILE, ENOMEM, ENOBUFS, ENOSPC, EDQUOT, EADDRNOTAVAIL};

_Static_assert(sizeof(exhaustions) / sizeof(exhaustions[0]) == WORKER_EXHAUSTIONS, "one limit each");

bool worker_may_log_error(struct worker *worker, int error)
{
    for (unsigned i = 0; i < WORKER_EXHAUSTIONS; i++) {
        if (error == -exhaustions[i])
            return log_limit_allows(&worker->log_limits.errors[i], worker->loop.clock.monotonic_ms);
    }
    return true;
}
