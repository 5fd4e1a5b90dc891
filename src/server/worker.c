/*
 * The main function of a worker: drops root, opens its loop, caches and modules, accepts until it is stopped, and
 * closes all of it in reverse order. Connections are handled in connection.c.
 */
#include "server/worker.h"

#include "base/limits.h"
#include "log/access_log.h"
#include "master/daemon.h"
#include "server/connection.h"
#include "server/module.h"
#include "server/worker_channel.h"
#include "server/worker_end.h"
#include "server/worker_heartbeat.h"
#include "server/worker_listen.h"
#include "server/worker_sandbox.h"
#include "site/document_roots.h"
#include "site/directories.h"
#include "upstream/upstream_follow.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define FOREVER UINT64_MAX

static void signal_arrived(struct op *op, int result)
{
    struct worker *worker = container_of(op, struct worker, signals);
    struct signalfd_siginfo arrived;

    if (result < 0)
        return;
    while (read(worker->signal_fd, &arrived, sizeof(arrived)) == sizeof(arrived)) {
        if (arrived.ssi_signo == SIGTERM)
            worker_stop(worker);
        else
            worker_drain(worker, false);
    }
    loop_poll(&worker->loop, op, worker->signal_fd, POLLIN);
}

static int open_signals(struct worker *worker)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGQUIT);
    worker->signal_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    if (worker->signal_fd < 0)
        return -errno;
    worker->signals.done = signal_arrived;
    loop_poll(&worker->loop, &worker->signals, worker->signal_fd, POLLIN);
    return 0;
}

static int start_modules(struct worker *worker)
{
    size_t count = 0;

    while (module_table[count])
        count++;
    worker->module_states = calloc(count + 1, sizeof(*worker->module_states));
    if (!worker->module_states)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        int result = 0;

        if (module_table[i]->worker_start)
            result = module_table[i]->worker_start(worker, &worker->module_states[i]);
        if (result < 0) {
            log_write(worker->log, LOG_EMERG, "module %s cannot start (%d: %s)", module_table[i]->name,
                      -result, strerror(-result));
            return result;
        }
    }
    return 0;
}

static void stop_modules(struct worker *worker)
{
    if (!worker->module_states)
        return;
    for (size_t i = 0; module_table[i]; i++) {
        if (module_table[i]->worker_stop && worker->module_states[i])
            module_table[i]->worker_stop(worker->module_states[i]);
    }
    free(worker->module_states);
}

static int open_caches(struct worker *worker, unsigned slot)
{
    const struct caches *caches = &worker->configuration->caches;

    worker->caches = calloc(caches->count + 1, sizeof(struct cache_store *));
    if (!worker->caches)
        return -ENOMEM;
    for (size_t i = 0; i < caches->count; i++) {
        worker->caches[i] = cache_store_create(&worker->loop, worker->log, caches->items[i], slot);
        if (!worker->caches[i])
            return -ENOMEM;
    }
    return 0;
}

static void for_all_caches(struct worker *worker, void (*operation)(struct cache_store *store))
{
    for (size_t i = 0; worker->caches && i < worker->configuration->caches.count; i++)
        operation(worker->caches[i]);
}

static int open_wires(struct worker *worker)
{
    worker->wires = (struct wire_shared){.loop = &worker->loop,
                                         .log = worker->log,
                                         .ktls = &worker->shared->ktls,
                                         .ktls_choice = &worker->shared->ktls_choice,
                                         .aead = &worker->shared->aead,
                                         .counters = &worker->counters->wires,
                                         .output_max = LIMIT_WORKER_OUTPUT};
    return wire_shared_init(&worker->wires);
}

/* Opens everything except the loop. On failure worker_finish closes the opened parts. */
static int open_parts(struct worker *worker, const struct worker_args *args)
{
    int result = open_wires(worker);

    if (result < 0)
        return result;
    worker->files = file_cache_create(&worker->loop, &worker->configuration->file_cache);
    if (!worker->files)
        return -ENOMEM;
    file_cache_set_roots(worker->files, &worker->roots);
    file_reader_init(&worker->reader, &worker->loop);
    worker->upstreams = upstream_pool_create(&worker->loop, worker->log, &worker->configuration->upstreams,
                                             worker->shared->upstreams, args->shared_index);
    if (!worker->upstreams)
        return -ENOMEM;
    upstream_pool_follow(worker->upstreams, worker->configuration->number);
    upstream_pool_set_counters(worker->upstreams, &worker->counters->upstream_wires);
    file_cache_set_counters(worker->files, &worker->counters->files);
    if (args->number == 0)
        directories_check(worker->configuration, args->identity ? args->identity->name : "the server's user",
                      worker->log);
    worker->access_log = access_log_create(&worker->loop, worker->log, &worker->counters->log_lines_dropped,
                                           worker->configuration->access_logs,
                                           (unsigned)worker->configuration->access_log_count,
                                           worker->configuration->access_log_selections);
    if (!worker->access_log)
        return -ENOMEM;
    result = open_caches(worker, args->shared_index);
    if (result == 0)
        result = start_modules(worker);
    if (result == 0)
        result = open_signals(worker);
    if (result < 0)
        return result;
    worker_channel_start(worker);
    return worker_listen(worker, args);
}

static void worker_init(struct worker *worker, const struct worker_args *args)
{
    *worker = (struct worker){.log = &args->error_log->log,
                              .error_log = args->error_log,
                              .trace = args->trace,
                              .accept = connection_accept,
                              .stream = args->stream,
                              .configuration = args->configuration,
                              .shared = args->shared,
                              .worker_count = args->workers,
                              .counters = &args->shared->workers[args->shared_index].counters,
                              .shared_index = args->shared_index,
                              .number = args->number,
                              .channel_fd = args->channel_fd,
                              .channel_spare = -1,
                              .signal_fd = -1};
    worker->arenas.max_free = LIMIT_ARENA_FREE_BLOCKS;
    worker->arenas.budget.max = LIMIT_WORKER_EXCHANGES;
    worker->sessions = (struct session_shared){&worker->arenas, &worker->loop.clock, &worker->counters->protocols};
    list_init(&worker->borrowed);
    list_init(&worker->requests);
    list_init(&worker->connection_list);
    list_init(&worker->streams);
    list_init(&worker->orphaned_subrequests);
    list_init(&worker->resumed);
    list_init(&worker->woken);
    list_init(&worker->free_connections);
}

static bool worker_finished(const struct worker *worker)
{
    if (!(worker->draining || worker->stopping) || worker->connections > 0 || worker->listeners_open > 0 ||
        !list_empty(&worker->orphaned_subrequests))
        return false;
    return worker->stopping || !upstream_pool_draining(worker->upstreams);
}

static void run_iteration(struct worker *worker, uint64_t until_ms)
{
    int result = loop_run_iteration(&worker->loop, until_ms);

    if (result < 0) {
        log_write(worker->log, LOG_EMERG, "the loop failed (%d: %s)", -result, strerror(-result));
        abort();
    }
    connection_resume_all(worker);
    access_log_flush(worker->access_log);
    counters_set_memory(worker->counters, &worker->arenas.budget);
}

/* Cancels the remaining operations and waits at most one second: afterwards the process exits anyway. */
static bool cancel_and_wait(struct worker *worker)
{
    uint64_t limit = worker->loop.clock.monotonic_ms + 1000;

    loop_cancel(&worker->loop, &worker->channel);
    loop_cancel(&worker->loop, &worker->signals);
    loop_cancel(&worker->loop, &worker->drain_deadline);
    worker_heartbeat_stop(worker);
    while (worker->loop.in_flight > 0 && worker->loop.clock.monotonic_ms < limit) {
        if (loop_run_iteration(&worker->loop, limit) < 0)
            return false;
    }
    return worker->loop.in_flight == 0;
}

static void worker_finish(struct worker *worker)
{
    access_log_destroy(worker->access_log);
    worker->access_log = NULL;
    worker->loop.large_done = NULL; /* no request continues without its modules */
    stop_modules(worker);
    if (worker->upstreams)
        upstream_pool_stop(worker->upstreams);
    for_all_caches(worker, cache_store_stop);
    if (!cancel_and_wait(worker)) {
        log_write(worker->log, LOG_ALERT, "%u operations did not end", worker->loop.in_flight);
        return;
    }
    connection_free_all(worker);
    upstream_pool_destroy(worker->upstreams);
    for_all_caches(worker, cache_store_destroy);
    free(worker->caches);
    file_cache_destroy(worker->files);
    wire_shared_finish(&worker->wires);
    worker->log->clock = NULL;
    loop_close(&worker->loop);
    arena_pool_finish(&worker->arenas);
    free(worker->listeners);
    if (worker->signal_fd >= 0)
        close(worker->signal_fd);
    worker->signal_fd = -1;
}

static void log_unavailable_loop(struct worker *worker, const char *use, int error)
{
    struct conf_mark mark = configuration_backend_mark(worker->configuration);

    if (mark.file)
        log_write(worker->log, LOG_EMERG,
                  STR_FMT ":%u:%u: events: use: %s failed (%d: %s); use: auto selects another backend in this case, "
                          "and sluice doctor reports the cause",
                  STR_ARG(mark.file->path), mark.line, mark.column, use, error, strerror(error));
    else
        log_write(worker->log, LOG_EMERG, "events: use: %s failed (%d: %s)", use, error, strerror(error));
}

/* Only the first worker logs the selected backend, and the reason why a better one is not available. */
static int open_loop(struct worker *worker, const struct worker_args *args)
{
    const char *use = configuration_backend(worker->configuration);
    struct log once = *worker->log;
    int result;

    if (args->number > 0 && once.level > LOG_ERROR)
        once.level = LOG_ERROR;
    result = loop_open(&worker->loop, use, &once);
    if (result < 0) {
        log_unavailable_loop(worker, use, -result);
        return result;
    }
    log_write(&once, LOG_INFO, "loop: %s", worker->loop.backend->name);
    worker->loop.log = worker->log;
    worker->loop.large_done = connection_resume_after;
    worker->log->clock = &worker->loop.clock;
    worker->debug_log = *worker->log;
    worker->debug_log.level = LOG_DEBUG;
    return 0;
}

/* For the control socket. `pid` is stored last: the others belong to it. */
static void publish_facts(const struct worker *worker)
{
    struct worker_facts *facts = &worker->shared->workers[worker->shared_index].facts;

    __atomic_store_n(&facts->started_s, (uint64_t)clock_wall_s(&worker->loop.clock), __ATOMIC_RELAXED);
    __atomic_store_n(&facts->generation, worker->configuration->number, __ATOMIC_RELAXED);
    __atomic_store_n(&facts->draining, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&facts->pid, (uint64_t)getpid(), __ATOMIC_RELEASE);
}

static void watch_zones(struct worker *worker)
{
    limits_set_log(&worker->configuration->limits, worker->log);
    caches_set_log(&worker->configuration->caches, worker->log);
    session_caches_set_log(&worker->configuration->session_caches, worker->log);
}

static int serve_worker(struct worker *worker, const struct worker_args *args)
{
    int result = worker_restrict(worker, args);

    watch_zones(worker);
    if (result == 0)
        result = open_parts(worker, args);
    if (result == 0) {
        if (args->detached)
            daemon_leave_terminal();
        worker->error_log->echo = false;
        publish_facts(worker);
        worker_channel_send(worker, CHANNEL_READY);
        worker_heartbeat_start(worker);
        while (!worker_finished(worker))
            run_iteration(worker, FOREVER);
    } else {
        log_write(worker->log, LOG_EMERG, "this worker cannot start (%d: %s)", -result, strerror(-result));
        worker_stop(worker);
    }
    worker_finish(worker);
    return result;
}

static enum worker_exit exit_status(int result)
{
    return result < 0 ? WORKER_EXIT_FAILED : WORKER_EXIT_DONE;
}

int worker_run(const struct worker_args *args)
{
    struct worker *worker = malloc(sizeof(*worker));
    int result;

    if (!worker)
        return WORKER_EXIT_FAILED;
    worker_init(worker, args);
    result = document_roots_open(&worker->roots, worker->configuration);
    if (result == 0)
        result = open_loop(worker, args); /* as root: other users have a low memory lock limit (src/io) */
    if (result == 0)
        result = serve_worker(worker, args);
    if (result < 0)
        worker_channel_send(worker, CHANNEL_FAILED);
    if (worker->loop.in_flight > 0)
        _exit(exit_status(result)); /* helper threads and the kernel still use memory, also of the configuration */
    if (worker->channel_fd >= 0)
        close(worker->channel_fd);
    if (worker->channel_spare >= 0)
        close(worker->channel_spare);
    root_directories_close(&worker->roots);
    sandbox_ports_finish(&worker->ports);
    free(worker);
    return exit_status(result);
}
