/*
 * The system calls that a worker needs: tables of data, from which seccomp.c builds the filter. Private to src/sandbox.
 */
#ifndef SANDBOX_SECCOMP_CALLS_H
#define SANDBOX_SECCOMP_CALLS_H

#include <stdint.h>

/* Groups for all workers, for workers with an io_uring loop, for builds with sanitizers. */
enum seccomp_use { SECCOMP_ALWAYS, SECCOMP_URING, SECCOMP_SANITIZED };

/* Calls that are allowed with any argument. */
struct seccomp_group {
    enum seccomp_use use;
    const char *reason;
    const char *const *calls;       /* names, NULL-terminated; those of other architectures are skipped */
};

/* Calls that are allowed if the arguments satisfy the conditions of one of their rows: (argument & mask) == value. */
struct seccomp_row {
    enum seccomp_use use;
    const char *call;
    unsigned count;
    struct seccomp_condition {
        unsigned argument;
        uint64_t mask, value;
    } conditions[2];
};

/* Both end with a row without calls. */
extern const struct seccomp_group seccomp_groups[];
extern const struct seccomp_row seccomp_rows[];

/* cachestat(2) has this number on all architectures; libseccomp before 2.5.5 has no name for it. */
#define SECCOMP_CACHESTAT 451

#endif
