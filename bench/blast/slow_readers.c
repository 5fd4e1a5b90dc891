/*
 * Slow readers: each connection reads a limited number of bytes every 20 ms.
 */
#include <stdint.h>
#include <time.h>

#include "blast.h"

enum { READS_PER_SECOND = 50 };

double run_slow(struct blast *blast, double seconds, struct counts *out_measured)
{
    uint64_t begin = monotonic_ns();
    uint64_t end = begin + (uint64_t)(seconds * 1e9);
    uint64_t interval = 0;

    for (unsigned i = 0; i < blast->options->connections; i++)
        connection_send_request(blast, &blast->connections[i], begin);
    for (uint64_t due = begin; due < end; due = begin + ++interval * (1000000000 / READS_PER_SECOND)) {
        struct timespec deadline = {.tv_sec = (time_t)(due / 1000000000), .tv_nsec = (long)(due % 1000000000)};

        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
        for (unsigned i = 0; i < blast->options->connections; i++) {
            struct connection *connection = &blast->connections[i];

            if (connection_receive(blast, connection, blast->options->slow / READS_PER_SECOND + 1) > 0)
                connection_send_request(blast, connection, monotonic_ns());
        }
    }
    *out_measured = blast->done;
    return (double)(monotonic_ns() - begin) * 1e-9;
}
