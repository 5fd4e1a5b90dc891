/*
 * The change from one generation to the next: loads the configuration again, switches when the new workers accept
 * connections, and retires the previous generation.
 */
#include "base/limits.h"
#include "build_options.h"
#include "master/daemon.h"
#include "master/master_state.h"

#include <string.h>

void generation_shutdown(struct master *master, struct generation *generation, enum channel_kind how)
{
    uint64_t timeout_ms = generation->configuration->main->worker_shutdown_timeout_ms;
    uint64_t kill_ms = master->clock.monotonic_ms + LIMIT_STOP_MS;

    if (generation->phase == PHASE_STOPPING)
        return;
    if (how == CHANNEL_STOP) {
        generation->phase = PHASE_STOPPING;
        generation->kill_ms = kill_ms;
    } else if (generation->phase != PHASE_QUITTING) {
        generation->phase = PHASE_QUITTING;
        /* Workers apply worker_shutdown_timeout; the master kills workers that exceed it. */
        if (timeout_ms > 0)
            generation->kill_ms = kill_ms + timeout_ms;
    }
    children_send(master, generation, how, 0, -1);
}

/* Logs each line of the loader's diagnostics. */
static void log_lines(struct log *log, enum log_level level, struct str text)
{
    while (!str_empty(text)) {
        struct str line = str_cut(&text, '\n');

        if (!str_empty(line))
            log_write(log, level, STR_FMT, STR_ARG(line));
    }
}

static struct configuration *load_again(struct master *master)
{
    struct log *log = &master->error_log.log;
    struct buffer diagnostics = {0};
    struct configuration *configuration;

    if (!master->args->load) {
        log_write(log, LOG_ERROR, "reload: there is no configuration file to read again");
        return NULL;
    }
    configuration = master->args->load(master->args->owner, log, &diagnostics);
    log_lines(log, configuration ? LOG_WARN : LOG_ERROR, buffer_str(&diagnostics));
    buffer_finish(&diagnostics);
    return configuration;
}

static void retain_generation(struct master *master)
{
    if (master->drained) {
        log_write(&master->error_log.log, LOG_ERROR, "reload failed: no workers run; HUP tries again");
        service_notify("READY=1");
        return;
    }
    if (generation_use_error_log(master, master->current) < 0)
        log_write(&master->error_log.log, LOG_ALERT, "the error log is unchanged");
    log_write(&master->error_log.log, LOG_ERROR, "reload failed: the running configuration stays in use");
    service_notify("READY=1");
}

/* Warns of changes that need a restart. */
static void log_unchanged(struct master *master, const struct core_main *next)
{
    const struct core_main *running = master->current->configuration->main;

    if (!str_equal(next->pid, running->pid))
        log_write(&master->error_log.log, LOG_WARN, "pid: stays \"" STR_FMT "\" until the next start",
                  STR_ARG(running->pid));
    if (next->daemon != running->daemon)
        log_write(&master->error_log.log, LOG_WARN, "daemon: changes at the next start");
}

void master_reload(struct master *master)
{
    struct configuration *configuration;

    if (master->ending)
        return;
    if (master->next_generation) {
        master->reload_again = true;
        return;
    }
    log_write(&master->error_log.log, LOG_NOTICE, "signal HUP: reloading the configuration");
    service_notify("RELOADING=1");
    configuration = load_again(master);
    if (configuration) {
        if (master->current)
            log_unchanged(master, configuration->main);
        master->next_generation = generation_open(master, configuration);
    }
    if (!master->next_generation)
        retain_generation(master);
}

static void log_started(struct master *master, const struct configuration *configuration)
{
    struct log *log = &master->error_log.log;
    char text[128];

    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        const struct endpoint *endpoint = &configuration->endpoints[i];
        struct str name = listen_address_format(&endpoint->address, text, sizeof(text));

        log_write(log, LOG_NOTICE, "listening on " STR_FMT "%s", STR_ARG(name),
                  endpoint->ssl ? " ssl" : endpoint->control ? " control" : "");
    }
    log_write(log, LOG_NOTICE, "sluice/" SLUICE_VERSION " runs, %u worker%s", master->current->child_count,
              master->current->child_count == 1 ? "" : "s");
}

/* The first generation is ready: ends the launching command of `daemon`. */
static void first_generation_started(struct master *master)
{
    daemon_report(master->report_fd);
    master->report_fd = -1;
    if (master->args->ready)
        master->args->ready(master->args->owner, &master->shared->ktls);
    if (upgrade_shares_sockets(master) && !master->args->no_pid_file &&
        master_write_pid(master, master->current->configuration) < 0)
        log_write(&master->error_log.log, LOG_ALERT, "continuing without a pid file");
    upgrade_report(&master->upgrade);
}

/* Handles a HUP received while a generation was starting. */
static void reload_if_requested(struct master *master)
{
    bool again = master->reload_again;

    master->reload_again = false;
    if (again)
        master_reload(master);
}

void generation_switch(struct master *master)
{
    struct generation *before = master->current;

    master->current = master->next_generation;
    master->next_generation = NULL;
    master->current->phase = PHASE_RUNNING;
    master->error_log.echo = false;
    master->switches++;
    shared_set_generation(master->shared, master->switches, master->current->child_count);
    if (before) {
        generation_shutdown(master, before, CHANNEL_RETIRE);
        sockets_close_except(&before->sockets, &master->current->sockets);
    }
    log_started(master, master->current->configuration);
    master_acme_start(master);
    master_otlp_start(master, master->current);
    service_notify("READY=1");
    if (!before && !master->drained)
        first_generation_started(master);
    master->drained = false;
    reload_if_requested(master);
}

void generation_ended(struct master *master, struct generation *generation)
{
    bool was_next = generation == master->next_generation;

    if (was_next && !master->current && !master->ending && !master->drained)
        master->failed = true;
    generation_close(master, generation);
    if (was_next && !master->failed && !master->ending) {
        retain_generation(master);
        reload_if_requested(master);
    }
}
