/*
 * The functions behind the parts; private to src/sandbox.
 */
#ifndef SANDBOX_SANDBOX_PART_H
#define SANDBOX_SANDBOX_PART_H

#include "sandbox/sandbox.h"

/* What a part reports to sandbox_apply. */
struct sandbox_outcome {
    const char *call;               /* the failed call */
    char note[160];                 /* details for the log, or why the kernel lacks the part; may be empty */
};

/* Each applies one part. Returns 0; -ENOTSUP: the kernel lacks it (see note); or another -errno (see call). */
typedef int sandbox_apply_part(struct sandbox_outcome *out_outcome);

sandbox_apply_part sandbox_drop_capabilities;
sandbox_apply_part sandbox_forbid_dump;

/* Empties the bounding set. Returns 0 or -errno. */
MUST_CHECK int sandbox_drop_bounding_set(void);

#endif
