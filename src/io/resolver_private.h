/*
 * The state of the resolver, shared by resolver.c (events and answers), resolver_channel.c (c-ares) and
 * resolver_query.c (the lookups of a query).
 */
#ifndef IO_RESOLVER_PRIVATE_H
#define IO_RESOLVER_PRIVATE_H

#define CARES_NO_DEPRECATED
#include "base/limits.h"
#include "io/resolver.h"

#include <ares.h>

struct resolver {
    struct loop *loop;
    struct resolver_settings settings;
    ares_channel channel;           /* NULL: no open query */
    int watch_fd;                   /* epoll descriptor that watches the channel's sockets */
    struct op watch;
    struct op timer;
    struct list open;               /* struct resolver_query */
    struct list finished;           /* `done` has not run yet */
    bool stopping;
};

struct resolver_query {
    struct list link;
    struct resolver *resolver;
    resolver_done *done;
    void *owner;
    uint64_t deadline_ms;
    unsigned steps;                     /* pending c-ares lookups */
    bool in_query;                      /* inside resolver_query_start: answers are from the hosts file */
    bool cancelled;
    bool late;                          /* a timeout was already reported to the owner */
    int error;                          /* the last c-ares error */
    uint64_t ttl_s;                     /* the smallest of all records; UINT64_MAX: none */
    size_t count;
    struct resolver_address addresses[LIMIT_UPSTREAM_ADDRESSES];
};

/* Opens the channel unless it is open. ARES_SUCCESS or another status of c-ares. */
int resolver_channel_open(struct resolver *resolver);
/* Ends the lookups of all open queries. Accepts a channel that is not open. */
void resolver_channel_close(struct resolver *resolver);
/* The timeout of a query. */
uint64_t resolver_timeout_ms(const struct resolver *resolver);
/* Waits for the next event: a socket's readiness, or a deadline. */
void resolver_schedule_wakeup(struct resolver *resolver);

#endif
