/*
 * The part `seccomp` in a build without libseccomp.
 */
#include "sandbox/sandbox_part.h"

#include <errno.h>
#include <stdio.h>

int seccomp_probe(char *note, size_t size)
{
    snprintf(note, size, "this build has no libseccomp");
    return -ENOTSUP;
}

int seccomp_apply(const struct sandbox *sandbox, struct sandbox_outcome *out_outcome)
{
    return -ENOTSUP;
}

void sandbox_call_name(uint64_t denied_call, char *into, size_t size)
{
    snprintf(into, size, "number %u", (unsigned)(denied_call - 1));
}
