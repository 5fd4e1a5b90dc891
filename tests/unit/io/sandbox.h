/* A sandbox of one rule, as containers have it: a system call that answers with an error. */
#ifndef TESTS_IO_SANDBOX_H
#define TESTS_IO_SANDBOX_H

#include <stdbool.h>

/* From now on, in this process, `number` fails with `error`. False where the kernel has no seccomp filters. */
bool forbid_call(long number, int error);

#endif
