/*
 * Closes the descriptors that a new process inherits from the master and does not use.
 */
#include "master/master_state.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

/* The smallest of the descriptors that is at least `from`; -1: none. */
static int next_kept(const int *kept, size_t count, int from)
{
    int next = -1;

    for (size_t i = 0; i < count; i++) {
        if (kept[i] >= from && (next < 0 || kept[i] < next))
            next = kept[i];
    }
    return next;
}

int child_close_others(const int *kept, size_t count)
{
    int first = STDERR_FILENO + 1, next;

    for (; (next = next_kept(kept, count, first)) >= 0; first = next + 1) {
        if (next > first && close_range((unsigned)first, (unsigned)next - 1, 0) < 0)
            return -errno;
    }
    return close_range((unsigned)first, UINT_MAX, 0) < 0 ? -errno : 0;
}
