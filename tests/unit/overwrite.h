/*
 * A worker that writes anything into shared memory: all of it, in a child process. The master's functions must neither
 * block nor fail afterwards.
 */
#ifndef TEST_UNIT_OVERWRITE_H
#define TEST_UNIT_OVERWRITE_H

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Fills every writable shared mapping of this process. Returns their number. */
static inline int overwrite_mappings(int byte)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512], access[8];
    uintptr_t from, to;
    int count = 0;

    while (maps && fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &from, &to, access) != 3 || strcmp(access, "rw-s") != 0)
            continue;
        memset((void *)from, byte, to - from);
        count++;
    }
    return count;
}

/* In a child process. */
static inline void overwrite_shared_memory(int byte)
{
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(overwrite_mappings(byte) > 0 ? 0 : 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

#endif
