/*
 * Tests that this machine does not permit. Each reports its name and the reason on standard output, as a line "skipped:
 * NAME: REASON", which .ci prints. What a kernel has is tested by a call, not derived from its version or architecture.
 */
#ifndef TEST_SKIP_H
#define TEST_SKIP_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline void report_skipped(const char *name, const char *reason)
{
    printf("skipped: %s: %s\n", name, reason);
    fflush(stdout);
}

/* Ends the function of a test that does not run. */
#define SKIP_TEST(reason)                                                                                             \
    do {                                                                                                              \
        report_skipped(__func__, reason);                                                                             \
        return;                                                                                                       \
    } while (0)

/* The exit status of a program of which no test runs: meson counts it as skipped. */
static inline int skip_program(const char *reason)
{
    report_skipped("all", reason);
    return 77;
}

/* False: a process that dies with a shared_lock blocks the others. User-mode emulation of QEMU lacks these calls. */
static inline bool has_robust_futexes(void)
{
    void *head;
    size_t size;

    return syscall(SYS_get_robust_list, 0, &head, &size) == 0;
}

/* The socket option SO_PASSRIGHTS: sockets can refuse descriptors. */
static inline bool has_passrights(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    bool has = setsockopt(fd, SOL_SOCKET, 83, &(int){0}, sizeof(int)) == 0;

    close(fd);
    return has;
}

#define NEEDS_ROBUST_FUTEXES()                                                                                        \
    do {                                                                                                              \
        if (!has_robust_futexes())                                                                                    \
            SKIP_TEST("this kernel has no robust futexes");                                                           \
    } while (0)

#endif
