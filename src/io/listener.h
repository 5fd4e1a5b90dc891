/*
 * Listening sockets: the master opens them, and workers accept connections from them.
 */
#ifndef IO_LISTENER_H
#define IO_LISTENER_H

#include "io/loop.h"

/* An address in the syntax of `listen`: "8080", "127.0.0.1:80", "[::1]:443", "*:80", "unix:/path". */
struct listen_address {
    struct sockaddr_storage socket;
    socklen_t length;
};

/* Parses an address. 0, or -EINVAL. The default port is 80. Names are not resolved. */
MUST_CHECK int listen_address_parse(struct str text, struct listen_address *out_address);
/* Formats "127.0.0.1:80", "[::1]:443", "unix:/path" into `into` (at least 128 bytes) and returns it. */
struct str listen_address_format(const struct listen_address *address, char *into, size_t size);
/* True for the same address and port, or the same path. */
bool listen_address_equal(const struct listen_address *a, const struct listen_address *b);
/* The path of unix:; NULL for an IP address. */
const char *listen_address_path(const struct listen_address *address);
/* The TCP port; 0 for unix:. */
unsigned listen_address_port(const struct listen_address *address);

/*
 * Opens a non-blocking, close-on-exec listening socket with SO_REUSEADDR, SO_REUSEPORT (not for unix:) and IPV6_V6ONLY.
 * TCP_NODELAY is set on it and inherited by accepted sockets. A socket file without a listener is replaced. Returns a
 * descriptor or -errno.
 */
MUST_CHECK int listener_open(const struct listen_address *address, int backlog);

/*
 * Accepts from one listening socket. Each connection is passed to `accepted`, which then owns its descriptor. After an
 * error (EMFILE, ENFILE, ENOBUFS, ENOMEM) it pauses for 100 ms; errors are logged once per second. On EMFILE and ENFILE
 * it calls `exhausted`; if that frees nothing, it closes its spare descriptor, accepts one connection, closes it at
 * once and opens the spare descriptor again.
 */
struct listener {
    struct loop *loop;
    struct log *log;
    struct log_limit *accept_failures;  /* not owned; shared by the listeners of a worker */
    int fd;                             /* not owned */
    int spare_fd;
    struct op accept;
    struct op pause;
    struct sockaddr_storage peer;
    void (*accepted)(void *owner, struct listener *listener, int fd, const struct sockaddr_storage *peer);
    /* Called once after listener_stop or listener_drain, when no op is in flight. */
    void (*stopped)(void *owner, struct listener *listener);
    bool (*exhausted)(void *owner);     /* returns true if descriptors will be free soon; may be NULL */
    void *owner;
    bool paused;                        /* by listener_pause */
    bool draining;                      /* by listener_drain */
    bool accept_draining;               /* submitted while draining: -ECANCELED means that the queue is empty */
    bool stopping;
    bool accept_paused;                 /* out of descriptors or memory */
};

/* Starts accepting; the caller has set the fields loop, log, accept_failures, fd, accepted, stopped and owner. */
void listener_start(struct listener *listener);
/*
 * Stops accepting until listener_resume (worker_connections reached). `accepted` may still be called once, for a
 * connection that was accepted before.
 */
void listener_pause(struct listener *listener);
/* Accepts again after listener_pause. */
void listener_resume(struct listener *listener);
/*
 * Accepts the connections that are in the queue and then stops as listener_stop does: closing a listening socket resets
 * the connections in its queue. While paused, none is accepted.
 */
void listener_drain(struct listener *listener);
/*
 * Stops accepting, and calls `stopped` when no op is in flight, never inside this call. `accepted` may be called once
 * more before that.
 */
void listener_stop(struct listener *listener);

#endif
