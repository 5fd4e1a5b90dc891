/*
 * Slow readers: each connection reads a limited number of bytes every few milliseconds.
 */
#include <stdint.h>
#include <time.h>

#include "blast.h"

enum { TURNS_PER_SECOND = 50 };

double run_slow(struct blast *blast, double seconds, struct counts *out_inside)
{
    uint64_t begin = now();
    uint64_t end = begin + (uint64_t)(seconds * 1e9);
    uint64_t turn = 0;

    for (unsigned i = 0; i < blast->options->connections; i++)
        connection_send_request(blast, &blast->connections[i], begin);
    for (uint64_t due = begin; due < end; due = begin + ++turn * (1000000000 / TURNS_PER_SECOND)) {
        struct timespec moment = {.tv_sec = (time_t)(due / 1000000000), .tv_nsec = (long)(due % 1000000000)};

        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL);
        for (unsigned i = 0; i < blast->options->connections; i++) {
            struct connection *connection = &blast->connections[i];

            if (connection_receive(blast, connection, blast->options->slow / TURNS_PER_SECOND + 1) > 0)
                connection_send_request(blast, connection, now());
        }
    }
    *out_inside = blast->done;
    return (double)(now() - begin) * 1e-9;
}
