/*
 * One worker: a loop, its caches, the state of the modules, its connections.
 * `worker` is passed around; nothing of it is global.
 */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include "cache/cache_store.h"
#include "log/error_log.h"
#include "master/channel.h"
#include "master/shared.h"
#include "master/worker_start.h"
#include "server/file_reader.h"
#include "site/configuration.h"
#include "upstream/upstream_pool.h"
#include "wire/wire.h"

struct connection;
struct stream_listening;

struct worker {
    struct loop loop;
    struct log *log;                        /* error_log's */
    struct error_log *error_log;
    struct trace *trace;                    /* who looks on; NULL: nobody */
    const struct configuration *configuration;
    struct shared *shared;                  /* what all workers see */
    struct counters *counters;              /* this worker's place in it */
    unsigned place;                         /* and its number */
    unsigned siblings;                      /* workers of this generation, this one too */
    struct wire_shared wires;
    struct arena_pool arenas;
    struct file_cache *files;
    struct file_reader reader;
    struct root_directories roots;                     /* opened before root was given up */
    struct upstream_pool *upstreams;
    struct cache_store **caches;            /* by cache_conf's index */
    void **module_states;                   /* by index in module_table */
    struct list connection_list;                   /* every open connection */
    struct list resumed;                    /* requests whose module said exchange_resume */
    struct list awake;                      /* connections whose session has something to send again */
    struct list orphaned_sockets;                    /* subrequests whose parent has ended */
    unsigned detached;                         /* subrequests that nobody waits for, with or without a parent */
    const struct stream_listening *stream;  /* NULL: nothing is accepted for `stream` */
    struct list streams;                    /* every open connection of `stream` */
    unsigned connections;
    struct table addresses;                 /* how many of them each address has, where that is bounded: connection_address.c */
    struct list free_connections;              /* memory kept for the next connections */
    unsigned free_connection_count;
    bool paused;                            /* no more connections are accepted for the moment: see connection_list.c */
    struct worker_listener {
        struct listener listener;
        const struct endpoint *endpoint;
        struct list link;                   /* in `borrowed`; owned by it */
        bool borrowed;
        unsigned lender;                    /* the dead worker's number */
    } *listeners;                           /* one for each of its sockets */
    size_t listener_count;
    struct list borrowed;                   /* a dead worker's, until it is replaced */
    unsigned listeners_open;                /* not yet stopped */
    struct op channel;                      /* messages of the master */
    int channel_fd;                         /* -1: no master */
    int channel_spare;                      /* a number kept for the log that the master may send; -1: not even that */
    struct op signals;                      /* TERM and QUIT sent to this worker itself */
    int signal_fd;
    struct access_log *access_log;          /* batches of access_log.c */
    unsigned char random[512];              /* drawn for $request_id; the last `random_left` bytes are not used yet */
    unsigned random_left;
    struct op drain_deadline;
    struct {
        uint64_t reclaimed_ms, logged_ms;   /* when descriptors_reclaim closed connections last, and logged it; 0: never */
        bool reclaimed;                     /* and whether there were any to close */
    } exhausted;
    bool memory_missing;                           /* no memory for a connection, and it has been said */
    bool draining;                          /* QUIT, and a reload: finish what is open, take nothing new */
    bool retiring;                          /* a reload: connections that are kept may bring one more request */
    bool stopping;                          /* TERM, or the drain deadline: end now */
};

/* The functions of `stream`, whose connections a worker accepts beside those of http. */
struct stream_listening {
    void (*accept)(void *worker, struct listener *listener, int fd, const struct sockaddr_storage *peer);
    void (*abort_all)(struct worker *worker); /* closes every connection at once */
};

/*
 * The life of a worker, in the process that is to be it: gives up root, opens the loop, serves until told to end by the channel or by
 * TERM or QUIT (which, like the master's other signals, are blocked by the caller). Returns an enum worker_exit.
 */
int worker_run(const struct worker_start *start);

#endif
