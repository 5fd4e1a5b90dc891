/*
 * Requests a page over HTTP/1.1 without blocking: the caller polls the descriptor, and can do something else meanwhile.
 * Each request has a connection of its own, so that a restart of the server does not matter.
 */
#ifndef TOP_TOP_FETCH_H
#define TOP_TOP_FETCH_H

#include "http/h1_reply.h"
#include "top/top_url.h"

struct addrinfo;

/* The addresses of the host, resolved once. */
struct top_server {
    struct top_url url;
    struct addrinfo *addresses;     /* owned */
};

/*
 * Resolves the host, which may block. Returns 0 or -errno, with a sentence in `out_fault`. The server needs
 * top_server_finish after success.
 */
MUST_CHECK int top_server_init(struct top_server *server, const struct top_url *url, char out_fault[LIMIT_TOP_FAULT]);
void top_server_finish(struct top_server *server);

struct top_fetch {
    int fd;                             /* -1: no request is in progress */
    short events;                       /* of poll(2) to wait for */
    uint64_t deadline_us;               /* monotonic time */
    struct buffer page;                 /* after completion, the body */
    char fault[LIMIT_TOP_FAULT];        /* after a failure, the cause: a sentence without text of the server */

    const struct top_server *server;    /* private from here on; not owned */
    const struct addrinfo *address;
    bool connected;
    struct buffer request;              /* the unsent part */
    struct h1_reply reply;
    struct arena arena;                 /* of reply */
    struct headers trailers;
};

/* Starts a request. Returns 0, or -errno with `fault`. The fetch needs top_fetch_finish in each case. */
MUST_CHECK int top_fetch_start(struct top_fetch *fetch, const struct top_server *server, uint64_t now_us);
/*
 * Continues after an event or at the deadline. Returns 1: the page is complete; 0: wait again; -errno with `fault`.
 * Except after 0, the descriptor is closed.
 */
MUST_CHECK int top_fetch_continue(struct top_fetch *fetch, uint64_t now_us);
/* Frees all memory; aborts a request that is in progress. Accepts a fetch with fd -1 that is zeroed otherwise. */
void top_fetch_finish(struct top_fetch *fetch);

#endif
