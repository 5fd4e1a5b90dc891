/*
 * Restricts a worker process: each part removes rights that a worker does not need, permanently. A part that the kernel
 * lacks is skipped and logged. Only base/ is used here: the caller knows the configuration.
 */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include "base/log.h"
#include "base/must_check.h"

#include <stdbool.h>

enum sandbox_part {
    SANDBOX_CAPABILITIES,           /* no capability, and none can be gained */
    SANDBOX_NO_DUMP,                /* the memory is not dumped, and processes of the same user cannot read it */
    SANDBOX_SECCOMP,                /* any system call that is not in a list ends the process by SIGSYS */
    SANDBOX_PARTS
};

#define SANDBOX_ALL ((1u << SANDBOX_PARTS) - 1)

/* Names by part, as in the configuration; NULL-terminated. */
extern const char *const sandbox_part_names[];

/* The sandbox of one process. */
struct sandbox {
    unsigned parts;                 /* bit i: enum sandbox_part i */
    bool io_uring;                  /* the loop has a ring */
    uint64_t *denied_call;          /* set when a system call ends the process: see sandbox_call_name. Outlives the process */
};

/* Returns 0 if kernel and build have a part; else -ENOTSUP, with the reason in `note`. */
MUST_CHECK int sandbox_probe(enum sandbox_part part, char *note, size_t size);

/*
 * First step, before the process gives up root: drops the capability bounding set, for which it needs CAP_SETPCAP.
 * Without that capability this has no effect. Returns 0 or -errno.
 */
MUST_CHECK int sandbox_begin(unsigned parts);
/*
 * Second step: applies the parts to the calling process, which has its final user and only one thread. Logs the applied
 * parts at level info, and missing ones at level notice. Returns 0, or -errno after logging the failed call.
 */
MUST_CHECK int sandbox_apply(const struct sandbox *sandbox, struct log *log);

/* Prints the name of a system call from a value other than 0 of *denied_call, which may be any number. */
void sandbox_call_name(uint64_t denied_call, char *into, size_t size);

#endif
