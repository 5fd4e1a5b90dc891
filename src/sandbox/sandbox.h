/*
 * Restricts a worker process: each part removes rights that a worker does not need, permanently. A part that the kernel
 * lacks is skipped and logged. Only base/ is used here: the caller knows the configuration.
 */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include "base/log.h"
#include "base/must_check.h"

enum sandbox_part {
    SANDBOX_CAPABILITIES,           /* no capability, and none can be gained */
    SANDBOX_NO_DUMP,                /* the memory is not dumped, and processes of the same user cannot read it */
    SANDBOX_PARTS
};

#define SANDBOX_ALL ((1u << SANDBOX_PARTS) - 1)

/* Names by part, as in the configuration; NULL-terminated. */
extern const char *const sandbox_part_names[];

/*
 * First step, before the process gives up root: drops the capability bounding set, for which it needs CAP_SETPCAP.
 * Without that capability this has no effect. `parts`: bit i is enum sandbox_part i. Returns 0 or -errno.
 */
MUST_CHECK int sandbox_begin(unsigned parts);
/*
 * Second step: applies `parts` to the calling process, which has its final user and only one thread. Logs the applied
 * parts at level info. Returns 0, or -errno after logging the failed call.
 */
MUST_CHECK int sandbox_apply(unsigned parts, struct log *log);

#endif
