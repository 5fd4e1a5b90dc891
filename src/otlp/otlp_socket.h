/*
 * A TCP connection to the collector, each of whose waits has one deadline. Only the exporter uses it, which is a
 * process of its own.
 */
#ifndef OTLP_OTLP_SOCKET_H
#define OTLP_OTLP_SOCKET_H

#include "otlp/otlp.h"

/* The end of the exporter: the master closes its end of the channel, or has exited. */
struct otlp_events {
    int channel_fd;                 /* -1 once it is closed */
    bool ending;
    uint64_t end_ms;                /* if ending: the monotonic time at which every wait ends */
};

struct otlp_socket {
    struct otlp_events *events;     /* not owned */
    uint64_t deadline_ms;           /* of every wait */
    int fd;
};

/*
 * Waits until the descriptor (-1: none) has one of the poll(2) events. False: the deadline has passed (`deadline_ms`,
 * or events->end_ms if the exporter ends), poll failed, or with `until_ending` the exporter ends.
 */
bool otlp_wait(struct otlp_events *events, int fd, short wanted, uint64_t deadline_ms, bool until_ending);
/* The monotonic time in milliseconds. */
uint64_t otlp_now_ms(void);

/*
 * Connects to the addresses of the endpoint in turn, until `deadline_ms`. 0: *out_socket is open, and closed by
 * otlp_socket_close; `events` outlives it. Or -errno.
 */
MUST_CHECK int otlp_socket_connect(struct otlp_events *events, const struct otlp_endpoint *endpoint,
                                   uint64_t deadline_ms, struct otlp_socket *out_socket);
/* Sends all bytes. 0, -ETIMEDOUT or another -errno. */
MUST_CHECK int otlp_socket_write(const struct otlp_socket *socket, struct str bytes);
/* Sends what the socket takes at once; errors are ignored. */
void otlp_socket_offer(const struct otlp_socket *socket, struct str bytes);
/* Returns the number of bytes received, 0 at the end, -ETIMEDOUT or another -errno. */
MUST_CHECK ssize_t otlp_socket_read(const struct otlp_socket *socket, char *into, size_t size);
/* True if neither bytes nor the end of the connection are waiting to be read. */
MUST_CHECK bool otlp_socket_is_quiet(const struct otlp_socket *socket);
void otlp_socket_close(struct otlp_socket *socket);

#endif
