/*
 * The arguments and the result of a worker. The worker itself: server/worker.h.
 */
#ifndef MASTER_WORKER_ARGS_H
#define MASTER_WORKER_ARGS_H

#include "log/error_log.h"
#include "master/privileges.h"
#include "master/shared.h"
#include "site/configuration.h"

#include <sys/types.h>

struct stream_listening;
struct trace;

/* Arguments of a worker; all of it outlives worker_run. */
struct worker_args {
    const struct configuration *configuration;
    struct shared *shared;
    unsigned number;                        /* index among the workers of its generation */
    unsigned workers;                       /* their number */
    unsigned shared_index;                  /* index in shared memory */
    struct error_log *error_log;
    const struct stream_listening *stream;  /* NULL: no `stream` listeners */
    const struct worker_socket {
        size_t endpoint;
        int fd;
    } *sockets;                             /* its listening sockets; the worker closes them */
    size_t socket_count;
    int channel_fd;                         /* owned by the worker; -1: none */
    const struct identity *identity;        /* NULL: no change of user */
    pid_t master;                           /* process id of the master, whose exit terminates the worker; 0: none */
    struct trace *trace;                    /* NULL except for `sluice explain` */
    bool detached;                          /* daemon mode: leaves the terminal once it is ready */
};

enum worker_exit { WORKER_EXIT_DONE = 0, WORKER_EXIT_FAILED = 2 };

/* Returns the milliseconds between two heartbeats of a worker; 0: none. */
uint64_t worker_heartbeat_interval_ms(const struct core_main *main);

#endif
