/*
 * Sends one batch to the collector by HTTP/1.1, on a connection of its own. Waits, for a limited time: only the exporter
 * calls it, which is a process of its own.
 */
#ifndef OTLP_OTLP_SEND_H
#define OTLP_OTLP_SEND_H

#include "otlp/otlp.h"
#include "otlp/otlp_response.h"

/* The end of the exporter: the master closes its end of the channel, or has exited. */
struct otlp_events {
    int channel_fd;                 /* -1 once it is closed */
    bool ending;
    uint64_t end_ms;                /* if ending: no wait is longer (monotonic) */
};

/*
 * Waits until the descriptor (-1: none) has one of the poll(2) events. False: `deadline_ms` is reached, which is
 * shortened when the exporter begins to end; or `until_ending`, and it ends.
 */
bool otlp_wait(struct otlp_events *events, int fd, short wanted, uint64_t deadline_ms, bool until_ending);
/* The monotonic time in milliseconds. */
uint64_t otlp_now_ms(void);

/* Sends a request with this body. 0: *out_response is set; or -errno: there was no response. */
MUST_CHECK int otlp_send(struct otlp_events *events, const struct otlp_endpoint *endpoint, struct str body,
                         struct otlp_response *out_response);

#endif
