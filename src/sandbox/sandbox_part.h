/*
 * The functions of the parts; private to src/sandbox.
 */
#ifndef SANDBOX_SANDBOX_PART_H
#define SANDBOX_SANDBOX_PART_H

#include "sandbox/sandbox.h"

/* The report of a part to sandbox_apply. */
struct sandbox_outcome {
    const char *call;               /* the failed call */
    char note[160];                 /* details for the log; may be empty */
};

/* Reports whether a part is available: 0, or -ENOTSUP with the reason in `note`. */
typedef int sandbox_probe_part(char *note, size_t size);
/* Applies a part that is available. Returns 0, or -errno with the failed call. */
typedef int sandbox_apply_part(const struct sandbox *sandbox, struct sandbox_outcome *out_outcome);

sandbox_apply_part capabilities_apply;
sandbox_apply_part no_dump_apply;
sandbox_probe_part landlock_probe;
sandbox_apply_part landlock_apply;
sandbox_probe_part seccomp_probe;
sandbox_apply_part seccomp_apply;

/* Empties the bounding set. Returns 0 or -errno. */
MUST_CHECK int bounding_set_drop(void);

#endif
