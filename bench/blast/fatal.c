/*
 * Exit after an error, and the monotonic clock.
 */
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "blast.h"

_Noreturn void fatal(const char *what)
{
    fprintf(stderr, "blast: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    ERR_print_errors_fp(stderr);
    exit(1);
}

uint64_t monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
