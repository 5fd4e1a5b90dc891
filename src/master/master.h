/*
 * The master: owns the listening sockets, the log files, the pid file and shared memory; forks the workers, restarts
 * those that die, and handles signals. It handles no connections. A reload (HUP) starts a new generation of workers
 * with a new configuration; the old workers complete their requests. An invalid configuration changes nothing.
 */
#ifndef MASTER_MASTER_H
#define MASTER_MASTER_H

#include "log/error_log.h"
#include "master/worker_args.h"
#include "site/configuration.h"

struct master_args {
    /* Runs a worker in its own process; returns an enum worker_exit. */
    int (*run_worker)(const struct worker_args *args);
    struct configuration *configuration;    /* owned by the master from then on */
    /* Loads the configuration again, for HUP. NULL: there is no file. */
    struct configuration *(*load)(void *owner, struct log *log, struct buffer *out_diagnostics);
    const char *error_log;                  /* -e: used if the configuration names none; NULL: stderr */
    bool no_pid_file;
    const char *executable;                 /* absolute path, executed with `argv` for an upgrade */
    char *const *argv;                      /* arguments of main; NULL: an upgrade is not possible */
    /* Called when every worker accepts connections; may be NULL. */
    void (*ready)(void *owner, const struct ktls_support *ktls);
    void *owner;
};

/*
 * Runs until a signal ends it. Returns 0, or 1 if it could not start (the cause is logged). In daemon mode the
 * launching command exits with the same status once the workers run. Does not return in workers.
 */
int master_run(const struct master_args *args);

/*
 * Measures the AEAD engines, and names the one of each cipher: "AES-128-GCM by ipsec-mb, AES-256-GCM by ...". Takes a
 * few milliseconds.
 */
struct str master_aead_describe(char *into, size_t size);

/* Returns worker_processes; `auto` is the number of usable cores. */
unsigned master_worker_count(const struct core_main *main);

#endif
