/*
 * A worker that writes anything into shared memory, in a child process: all of it, after which the master's functions
 * must neither block nor fail; or numbers at random places, while other workers use it.
 */
#ifndef TEST_UNIT_OVERWRITE_H
#define TEST_UNIT_OVERWRITE_H

#include "base/shared_zone.h"

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

/* Writes `count` small and large numbers at random places of every shared mapping, after the header of a zone. */
static inline void write_random_numbers(unsigned count, uint64_t state)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512], access[8];
    uintptr_t from, to;

    while (maps && fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &from, &to, access) != 3 || strcmp(access, "rw-s") != 0)
            continue;
        from += sizeof(struct shared_zone);
        for (unsigned i = 0; i < count; i++) {
            uint32_t *place, value;

            state = state * 6364136223846793005u + 1442695040888963407u;
            place = (uint32_t *)from + (state >> 24) % ((to - from) / sizeof(uint32_t));
            value = (uint32_t)(state >> 32);
            __atomic_store_n(place, i % 4 ? value % 1500 : value, __ATOMIC_RELAXED);
        }
    }
}

/* Calls `use` again and again while a child process does that. */
static inline void use_while_other_process_writes(void (*use)(void), uint64_t seed)
{
    pid_t child = fork();
    int status;

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        write_random_numbers(300000, seed);
        _exit(0);
    }
    do {
        use();
    } while (waitpid(child, &status, WNOHANG) == 0);
    ck_assert_int_eq(status, 0);
}

/* Sets each number after the header of a shared zone of `size` bytes to one value. */
static inline void overwrite_zone(struct shared_zone *zone, size_t size, uint32_t number)
{
    uint32_t *to = (uint32_t *)(void *)((char *)zone + size);

    for (uint32_t *from = (uint32_t *)(void *)(zone + 1); from < to; from++)
        *from = number;
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
