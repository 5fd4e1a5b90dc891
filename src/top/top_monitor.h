/*
 * Reads a status page periodically and computes the rates between the two latest readings. Does not block: the caller
 * polls the descriptor.
 */
#ifndef TOP_TOP_MONITOR_H
#define TOP_TOP_MONITOR_H

#include "top/top_fetch.h"
#include "top/top_rates.h"

struct top_monitor {
    const struct top_server *server;    /* not owned */
    uint64_t interval_us;               /* between the end of a reading and the start of the next one */
    uint64_t next_us;                   /* monotonic time of the next start */
    struct top_fetch fetch;             /* fetch.fd and fetch.events are to be polled; -1: none */
    struct top_sample samples[2];       /* the two latest, in turn */
    unsigned readings;                  /* 0, 1; 2: two or more */
    unsigned latest;                    /* index in samples, if readings > 0 */
    struct top_rates rates;             /* if readings is 2 */
    char fault[LIMIT_TOP_FAULT];        /* cause of the failure of the last reading; empty: it succeeded */
};

/* The first reading starts at once. `server` outlives the monitor. */
void top_monitor_init(struct top_monitor *monitor, const struct top_server *server, unsigned interval_s);
void top_monitor_finish(struct top_monitor *monitor);

/* The time at which top_monitor_continue must be called, unless the descriptor has an event before. */
uint64_t top_monitor_until(const struct top_monitor *monitor);
/* Starts or continues a reading. Returns true if one ended, successfully or with `fault`. */
bool top_monitor_continue(struct top_monitor *monitor, uint64_t now_us);
/* The latest sample, or NULL. */
const struct top_sample *top_monitor_sample(const struct top_monitor *monitor);

#endif
