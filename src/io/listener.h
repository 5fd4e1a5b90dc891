/*
 * Listening sockets: opened by the master, accepted from by workers.
 */
#ifndef IO_LISTENER_H
#define IO_LISTENER_H

#include "io/loop.h"

/* An address as `listen` takes it: "8080", "127.0.0.1:80", "[::1]:443", "*:80", "unix:/path". */
struct listen_address {
    struct sockaddr_storage socket;
    socklen_t length;
};

/* 0, or -EINVAL. An address without a port gets 80. Names are not resolved here. */
MUST_CHECK int listen_address_parse(struct str text, struct listen_address *out_address);
/* "127.0.0.1:80", "[::1]:443", "unix:/path" into `into` (at least 128 bytes); returns it. */
struct str listen_address_format(const struct listen_address *address, char *into, size_t size);
/* The TCP port; 0 for unix:. */
unsigned listen_address_port(const struct listen_address *address);

/*
 * Opens a non-blocking, close-on-exec listening socket with SO_REUSEADDR, SO_REUSEPORT (not for unix:) and
 * IPV6_V6ONLY. TCP_NODELAY is set on it, and inherited by what it accepts. A UNIX socket on which nobody listens any
 * more is replaced. fd or -errno.
 */
MUST_CHECK int listener_open(const struct listen_address *address, int backlog);

/*
 * Accepts from one listening socket, again and again, one socket a time through `accepted`
 * (which owns the fd from then on). On EMFILE, ENFILE, ENOBUFS and ENOMEM it pauses for 100 ms; on the first two it asks `exhausted`, and where
 * that gives nothing back, a spare descriptor's place goes to one connection that is closed at once. Logged once; never spins.
 */
struct listener {
    struct loop *loop;
    struct log *log;
    int fd;                         /* not owned */
    int spare_fd;
    struct op accept;
    struct op pause;
    struct sockaddr_storage peer;
    void (*accepted)(void *owner, struct listener *listener, int fd, const struct sockaddr_storage *peer);
    void (*stopped)(void *owner, struct listener *listener); /* after listener_stop, when no op is left */
    bool (*exhausted)(void *owner); /* no descriptor is left: true where some will be free soon. May be NULL */
    void *owner;
    bool paused;                    /* by listener_pause */
    bool draining;                  /* by listener_drain */
    bool asked_last;                /* the accept in flight was asked for by it: if it brings nobody, nobody is queued */
    bool stopping;
    bool starved;                   /* out of descriptors or memory, and said so */
};

/* Starts accepting; fields loop, log, fd, accepted, stopped and owner are set by the caller. */
void listener_start(struct listener *listener);
/* Stops accepting until listener_resume (worker_connections reached). One that was accepted already may still come. */
void listener_pause(struct listener *listener);
void listener_resume(struct listener *listener);
/*
 * Accepts whoever is queued by now and then stops as listener_stop does: closing a listening socket resets its queue. While
 * it is paused they wait.
 */
void listener_drain(struct listener *listener);
/* Cancels, and calls `stopped` once nothing is in flight, never inside this call. One more may be accepted before it. */
void listener_stop(struct listener *listener);

#endif
