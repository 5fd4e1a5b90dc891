/*
 * Counters of a worker's sessions, for the status page. Every member consists of uint64_t.
 */
#ifndef HTTP_PROTOCOL_COUNTERS_H
#define HTTP_PROTOCOL_COUNTERS_H

#include <stdint.h>

#define H2_COUNTED_ERRORS 15        /* the codes of RFC 9113 7 from NO_ERROR on, then all others */

struct protocol_counters {
    uint64_t h2_streams;                            /* open streams, a current value; all others only grow */
    uint64_t h2_streams_opened;
    uint64_t h2_resets_sent[H2_COUNTED_ERRORS];     /* RST_STREAM by error code; REFUSED_STREAM: refused streams */
    uint64_t h2_resets_received[H2_COUNTED_ERRORS]; /* RST_STREAM of open streams */
    /* GOAWAY with an error that the server sent. */
    uint64_t h2_connection_errors[H2_COUNTED_ERRORS];
};

/* Counts one event under an error code of a frame. */
static inline void protocol_count_error(uint64_t counts[H2_COUNTED_ERRORS], uint32_t code)
{
    counts[code < H2_COUNTED_ERRORS - 1 ? code : H2_COUNTED_ERRORS - 1]++;
}

#endif
