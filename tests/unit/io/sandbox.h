/* A seccomp filter with one rule, as in container runtimes: one system call fails. */
#ifndef TESTS_IO_SANDBOX_H
#define TESTS_IO_SANDBOX_H

#include <stdbool.h>

/*
 * From now on `number` fails with `error` in this process. Returns false, and reports that the test is
 * skipped, if the kernel has no seccomp filters.
 */
bool forbid_call(long number, int error);

#endif
