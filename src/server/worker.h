/*
 * One worker: a loop, its caches, the state of the modules, its connections. Functions get the worker as an argument;
 * it has no global state.
 */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include "cache/cache_store.h"
#include "log/error_log.h"
#include "master/channel.h"
#include "master/shared.h"
#include "master/worker_args.h"
#include "sandbox/sandbox.h"
#include "server/file_reader.h"
#include "site/configuration.h"
#include "upstream/upstream_pool.h"
#include "wire/wire.h"

struct connection;
struct connection_row;
struct stream_listening;
struct worker_query;

enum { WORKER_EXHAUSTIONS = 7 }; /* errors that worker_may_log_error limits */

/* Creates a connection for a socket accepted by a listener. Owns fd. */
typedef void worker_accept(void *worker, struct listener *listener, int fd, const struct sockaddr_storage *peer);

struct worker {
    struct loop loop;
    struct log *log;                    /* of error_log */
    struct log debug_log;               /* the same with level debug: connection_log */
    struct error_log *error_log;
    struct trace *trace;                /* of `sluice explain`; NULL: none */
    const struct configuration *configuration;
    struct shared *shared;              /* memory shared by all workers */
    struct counters *counters;          /* this worker's entry in it */
    unsigned shared_index;              /* index of that entry */
    unsigned number;                    /* index among the workers of its generation */
    unsigned worker_count;              /* number of workers of this generation, including this one */
    struct wire_shared wires;
    struct arena_pool arenas;
    struct session_shared sessions;     /* of all connections: arenas, the loop's clock and this worker's counters */
    struct file_cache *files;
    struct file_reader reader;
    struct root_directories roots;      /* opened before root was dropped */
    struct sandbox_ports ports;         /* owned: the TCP ports to which it may connect */
    struct upstream_pool *upstreams;
    struct cache_store **caches;        /* by cache_conf's index */
    void **module_states;               /* by index in module_table */
    struct list connection_list;        /* every open connection */
    struct list resumed;                /* requests after exchange_resume */
    struct list woken;                  /* connections whose session has output or room again */
    struct list orphaned_subrequests;   /* detached subrequests whose parent has ended */
    unsigned detached;                  /* number of detached subrequests, with or without a parent */
    worker_accept *accept;              /* of `http`: connection_accept */
    /* NULL: no `stream` listeners. */
    const struct stream_listening *stream;
    struct list streams;                /* every open connection of `stream` */
    unsigned connections;               /* open ones, of http and `stream` */
    struct table addresses;             /* connections per address, if limited: connection_address.c */
    struct list free_connections;       /* memory kept for new connections */
    unsigned free_connection_count;
    bool paused;                        /* accepting is paused: see connection_limit_accept */
    struct worker_listener {
        struct listener listener;
        const struct endpoint *endpoint;
        struct list link;               /* in `borrowed`, which owns it */
        bool borrowed;
        unsigned dead_worker;           /* its number */
    } *listeners;                       /* one per socket of this worker */
    size_t listener_count;
    struct list borrowed;               /* listeners of dead workers, until they are replaced */
    unsigned listeners_open;            /* number not yet stopped */
    uid_t control_user;                 /* the master's: may use the control socket, as root may */
    struct op channel;                  /* receives messages of the master */
    int channel_fd;                     /* -1: no master */
    uint64_t channel_wait_end_ms;       /* for a descriptor; then messages that need one are discarded; 0: no wait */
    int channel_spare;                  /* spare descriptor, closed to receive one from the master; -1: none */
    struct list requests;               /* to the master, which has not handled them: worker_request.h */
    uint32_t request_number;            /* of the last one */
    struct worker_query *queries;       /* in progress, of the control socket; NULL: none */
    uint32_t queries_started;
    uint32_t queries_sent;              /* after queries_ms */
    uint64_t queries_ms;                /* start of the period of LIMIT_CONTROL_QUERIES */
    struct op signals;                  /* TERM and QUIT sent to this worker itself */
    int signal_fd;
    struct access_log *access_log;      /* batched lines: access_log.c */
    unsigned char random[512];          /* for worker_random_id; the last `random_left` bytes are unused */
    unsigned random_left;
    struct op drain_deadline;
    struct op heartbeat;                /* timer */
    struct {
        uint64_t reclaimed_ms;          /* last close of connections by descriptors_reclaim; 0: never */
        bool reclaimed;                 /* and whether it closed any */
    } exhausted;
    struct {
        struct log_limit accept, reclaim, connection, pause, errors[WORKER_EXHAUSTIONS];
    } log_limits;                       /* of resources that run out; `errors`: see worker_may_log_error */
    bool draining;                      /* QUIT or reload: completes open requests, accepts nothing new */
    bool retiring;                      /* reload: kept-alive connections may send one more request */
    bool stopping;                      /* TERM or the drain deadline: ends at once */
};

/* The functions of `stream`, whose connections a worker accepts in addition to those of http. */
struct stream_listening {
    worker_accept *accept;
    void (*abort_all)(struct worker *worker);       /* closes every connection at once */
    void (*update_debug)(struct worker *worker);    /* as connection_debug_update */
    /* Returns the open wire to the client of a connection of worker->streams, and its number; NULL: it is closed. */
    struct wire *(*find_wire)(struct list *link, uint64_t *out_number);
    /* Of such a connection. */
    void (*describe)(const struct list *link, struct connection_row *out);
};

/*
 * Runs a worker in its own process: drops root, opens the loop, and serves until stopped through the channel or by
 * TERM or QUIT (which the caller blocks, like the master's other signals). Returns an enum worker_exit.
 */
int worker_run(const struct worker_args *args);

#endif
