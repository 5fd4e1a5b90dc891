/*
 * The master: it owns the listening sockets, the log files, the pid file and shared
 * memory; forks the workers, replaces those that die, and answers signals. It touches no
 * connection. A reload (HUP) is a new generation of workers with a new configuration; the old ones finish what they
 * have. A configuration that cannot be used changes nothing.
 */
#ifndef MASTER_MASTER_H
#define MASTER_MASTER_H

#include "log/error_log.h"
#include "master/worker_start.h"
#include "site/configuration.h"

struct master_start {
    int (*run_worker)(const struct worker_start *start); /* the life of a worker, in its own process; returns an enum worker_exit */
    struct configuration *configuration; /* the master's from then on */
    struct configuration *(*load)(void *owner, struct log *log, struct buffer *out_diagnostics); /* reads it again, for HUP; NULL: there is no file */
    const char *error_log;          /* -e: where the configuration names none; NULL: stderr */
    bool no_pid_file;
    void (*ready)(void *owner, const struct ktls_support *ktls); /* every worker accepts connections; NULL: nobody asks */
    void *owner;
};

/*
 * Runs until a signal ends it: 0, or 1 where it could not start (it has said why). In daemon mode the launching command leaves with the same
 * status once the workers run. In workers this function does not return.
 */
int master_run(const struct master_start *start);

/* worker_processes, where `auto` is one for each core that we may use. */
unsigned master_worker_count(const struct core_main *main);

#endif
