/* Numbers in shared memory, and children that die. */
#ifndef TEST_SHARED_ZONE_FIXTURE_H
#define TEST_SHARED_ZONE_FIXTURE_H

#include "base/shared_zone.h"

#include "../overwrite.h"
#include "../runner.h"

#include <sys/wait.h>
#include <unistd.h>

struct notes {
    struct shared_zone shared;
    unsigned count;
    char rest[10000];
};

/* Runs the function in a child process, which exits without releasing the locks that it holds. */
static inline void run_in_child(struct notes *notes, void (*what)(struct notes *notes))
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        what(notes);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

static inline void die_with_the_lock(struct notes *notes)
{
    (void)shared_zone_lock(&notes->shared);
    notes->count = 7;
}

#endif
