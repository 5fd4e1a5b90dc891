/*
 * What the master gives a worker, and how that ends. The worker itself is server/worker.h's.
 */
#ifndef MASTER_WORKER_START_H
#define MASTER_WORKER_START_H

#include "log/error_log.h"
#include "master/privileges.h"
#include "master/shared.h"
#include "site/configuration.h"

#include <sys/types.h>

struct stream_listening;
struct trace;

/* What a worker is given; all of it outlives worker_run. */
struct worker_start {
    const struct configuration *configuration;
    struct shared *shared;
    unsigned number;                        /* among the workers of its generation */
    unsigned workers;                       /* these are so many */
    unsigned place;                         /* in shared memory */
    struct error_log *error_log;
    const struct stream_listening *stream;  /* NULL: no socket is of a server of `stream` */
    const struct worker_socket {
        size_t endpoint;
        int fd;
    } *sockets;                             /* what it listens on; the worker closes them */
    size_t socket_count;
    int channel_fd;                         /* owned from then on; -1: none */
    const struct identity *identity;        /* NULL: stay who we are */
    pid_t master;                           /* whose end is ours; 0: nobody's */
    struct trace *trace;                    /* NULL, but for `sluice explain` */
    bool detached;                          /* a daemon's: leaves the terminal once it is ready */
};

enum worker_exit { WORKER_EXIT_DONE = 0, WORKER_EXIT_FAILED = 2 };

#endif
