/*
 * One worker: a loop, its caches, the state of the modules, its connections.
 * `worker` is passed around; nothing of it is global.
 */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include "server/configuration.h"
#include "server/shared.h"
#include "wire/wire.h"

struct journey;

struct worker {
    struct loop loop;
    struct log *log;
    const struct configuration *configuration;
    struct shared_worker *counters;         /* this worker's slot in shared memory */
    struct wire_shared wires;
    struct arena_pool arenas;
    struct file_cache *files;
    void **module_states;                   /* by index in module_table */
    struct list journeys;                   /* every open connection */
    struct list resumed;                    /* visits whose module said exchange_resume */
    struct list awake;                      /* journeys whose session has something to send again */
    unsigned connections;
    struct list free_journeys;              /* memory kept for the next connections */
    unsigned free_journey_count;
    struct worker_listener {                /* one per endpoint and per inherited socket */
        struct listener listener;
        const struct endpoint *endpoint;
    } *listeners;
    size_t listener_count;
    struct op channel;                      /* messages of the master */
    int channel_fd;
    struct access_log *access_log;          /* batches of access_log.c */
    struct op drain_deadline;
    bool draining;                          /* QUIT: finish what is open, take nothing new */
    uint64_t next_connection;               /* $connection */
};

#endif
