/*
 * Drops the rights that a worker does not need: root, and those that `sandbox` removes. The worker of `sluice explain`
 * has no sandbox: it is part of that command's process.
 */
#ifndef SERVER_WORKER_SANDBOX_H
#define SERVER_WORKER_SANDBOX_H

#include "server/worker.h"

/*
 * Called before the first helper thread starts. From now on the worker ends with its master. Returns 0, or -errno after
 * logging it.
 */
MUST_CHECK int worker_restrict(struct worker *worker, const struct worker_args *args);
/* False if the sandbox permits no connection to this TCP port. 0, of a Unix socket, is permitted. */
bool worker_may_connect(const struct worker *worker, unsigned port);

#endif
