/*
 * The main loop of the master: opens the first generation, waits for signals, and replaces one generation by the
 * next. Generations are handled in generation.c, workers in children.c.
 */
#include "master/master.h"

#include "base/limits.h"
#include "build_options.h"
#include "master/daemon.h"
#include "master/master_state.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define SOCKETS_FIRST 3 /* of LISTEN_FDS: sd_listen_fds(3) */

static const int handled_signals[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGCHLD};

static int block_signals(struct master *master)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(handled_signals) / sizeof(handled_signals[0]); i++)
        sigaddset(&set, handled_signals[i]);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return -errno;
    master->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return master->signal_fd < 0 ? -errno : 0;
}

/* Opens everything needed before the first fork. Errors have been logged. */
static int open_all(struct master *master)
{
    struct log *log = &master->error_log.log;
    int result = block_signals(master);

    if (result < 0) {
        log_write(log, LOG_EMERG, "signalfd() failed (%d: %s)", -result, strerror(-result));
        return result;
    }
    clock_read(&master->clock);
    master->shared = shared_create(LIMIT_WORKERS);
    if (!master->shared) {
        log_write(log, LOG_EMERG, "out of memory");
        return -ENOMEM;
    }
    master->shared->started_s = (uint64_t)clock_wall_s(&master->clock);
    upgrade_inherit_tickets(master);
    master->next_generation = generation_open(master, master->args->configuration);
    if (!master->next_generation)
        return -EINVAL;
    /* Here already, because a worker serves before the last one is ready. */
    shared_set_generation(master->shared, 1, master->next_generation->child_count);
    if (!watchdog_open(&master->watchdog))
        log_write(log, LOG_WARN, "WATCHDOG_USEC or WATCHDOG_PID is malformed: the watchdog gets no messages");
    /* In an upgrade the pid file means that the new server serves: it is written later. */
    if (master->args->no_pid_file || upgrade_shares_sockets(master))
        return 0;
    return master_write_pid(master, master->next_generation->configuration);
}

/* Sends CHANNEL_STOP, CHANNEL_QUIT or CHANNEL_RETIRE to the workers of a generation, and sets its deadline. */
static void shutdown_generation(struct master *master, struct generation *generation, enum channel_kind how)
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

static void end_all(struct master *master, enum channel_kind how)
{
    master->ending = true;
    if (!upgrade_shares_sockets(master))
        service_notify("STOPPING=1");
    upgrade_hand_over(master);
    master_acme_stop(master);
    /* Another master continues: clients of idle connections may send one more request. */
    if (how == CHANNEL_QUIT && upgrade_shares_sockets(master))
        how = CHANNEL_RETIRE;
    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        struct generation *generation = container_of(link, struct generation, link);

        shutdown_generation(master, generation, how);
        /*
         * Closes the master's copies of the sockets, too: while they are open, the kernel queues further connections.
         */
        if (how != CHANNEL_STOP)
            sockets_close(&generation->sockets, !upgrade_shares_sockets(master));
    }
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
    const struct core_main *runs = master->current->configuration->main;

    if (!str_equal(next->pid, runs->pid))
        log_write(&master->error_log.log, LOG_WARN, "pid: stays \"" STR_FMT "\" until the next start",
                  STR_ARG(runs->pid));
    if (next->daemon != runs->daemon)
        log_write(&master->error_log.log, LOG_WARN, "daemon: changes at the next start");
}

/* Validates the new configuration and starts its workers before the old ones are retired. */
static void reload_configuration(struct master *master)
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

/* WINCH: the workers exit when open responses are sent. The sockets stay open for a later HUP. */
static void drain_workers(struct master *master, struct log *log)
{
    if (master->ending || master->next_generation || !master->current) {
        log_write(log, LOG_WARN, "signal WINCH: ignored, because the server is starting, reloading or ending");
        return;
    }
    log_write(log, LOG_NOTICE, "signal WINCH: workers exit when open responses are sent; HUP starts new ones");
    master->passed = listen_fds_duplicate(&master->current->sockets, log);
    master->drained = true;
    shutdown_generation(master, master->current, CHANNEL_RETIRE);
    sockets_close(&master->current->sockets, false);
    master_acme_stop(master);
    master->current = NULL;
}

/* After a failed upgrade the workers that WINCH ended start again. */
static void reap_children(struct master *master)
{
    bool had_successor = master->upgrade.successor > 0;

    children_reap(master);
    if (had_successor && master->upgrade.successor == 0 && master->drained)
        reload_configuration(master);
}

static void dispatch_signal(struct master *master, int number)
{
    struct log *log = &master->error_log.log;

    switch (number) {
    case SIGTERM:
    case SIGINT:
        log_write(log, LOG_NOTICE, "signal %s: terminating now", number == SIGINT ? "INT" : "TERM");
        end_all(master, CHANNEL_STOP);
        break;
    case SIGQUIT:
        log_write(log, LOG_NOTICE, "signal QUIT: exiting when open responses are sent");
        end_all(master, CHANNEL_QUIT);
        break;
    case SIGHUP:
        reload_configuration(master);
        break;
    case SIGUSR1:
        if (master->current)
            master_reopen_logs(master);
        break;
    case SIGCHLD:
        reap_children(master);
        break;
    case SIGUSR2:
        upgrade_start(master);
        break;
    case SIGWINCH:
        drain_workers(master, log);
        break;
    }
}

static void read_signals(struct master *master)
{
    struct signalfd_siginfo arrived;

    while (read(master->signal_fd, &arrived, sizeof(arrived)) == sizeof(arrived))
        dispatch_signal(master, (int)arrived.ssi_signo);
}

/* Returns the shorter of two waits; -1 is unlimited. */
static int earlier_wait(int one, int other)
{
    return one < 0 || (other >= 0 && other < one) ? other : one;
}

/* -1: unlimited. */
static int wait_ms(const struct master *master)
{
    int wait = earlier_wait(master_tickets_next_ms(master), master_files_next_ms(master));

    wait = earlier_wait(wait, master_control_next_ms(master));
    wait = earlier_wait(wait, heartbeats_next_ms(master));
    wait = earlier_wait(wait, master_acme_next_ms(master));
    wait = earlier_wait(wait, master_syslog_next_ms(master));
    wait = earlier_wait(wait, upgrade_next_ms(master));
    wait = earlier_wait(wait, watchdog_next_ms(&master->watchdog, master->clock.monotonic_ms));
    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        const struct generation *generation = container_of(link, struct generation, link);

        if (generation->phase < PHASE_QUITTING)
            wait = earlier_wait(wait, children_next_ms(master, generation));
        wait = earlier_wait(wait, master_otlp_next_ms(master, generation));
        if (generation->kill_ms > 0)
            wait = earlier_wait(wait, generation->kill_ms <= master->clock.monotonic_ms
                                    ? 0
                                    : (int)(generation->kill_ms - master->clock.monotonic_ms));
    }
    return wait;
}

struct watched {
    struct generation *generation;
    struct child *child;
};

/* Adds the channels of all workers; there are at most LIMIT_WORKERS. */
static unsigned watch_channels(struct master *master, struct pollfd *entries, struct watched *watched)
{
    unsigned count = 0;

    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        struct generation *generation = container_of(link, struct generation, link);

        for (unsigned i = 0; i < generation->child_count; i++) {
            struct child *child = &generation->children[i];

            if (child->channel_fd < 0)
                continue;
            entries[count] = (struct pollfd){.fd = child->channel_fd,
                                             .events = list_empty(&child->queued) ? POLLIN : POLLIN | POLLOUT};
            watched[count++] = (struct watched){generation, child};
        }
    }
    return count;
}

/* One iteration: waits for a signal, a worker's message or a deadline. */
static void wait_round(struct master *master)
{
    struct pollfd entries[LIMIT_WORKERS + 4] = {{.fd = master->signal_fd, .events = POLLIN}};
    struct watched watched[LIMIT_WORKERS];
    unsigned count = watch_channels(master, entries + 1, watched);

    entries[count + 1] = (struct pollfd){.fd = master->upgrade.report_fd, .events = POLLIN};
    entries[count + 2] = (struct pollfd){.fd = master->upgrade.ready_fd, .events = POLLIN};
    entries[count + 3] = (struct pollfd){.fd = master->renewal.channel_fd, .events = POLLIN};
    if (poll(entries, count + 4, wait_ms(master)) < 0 && errno != EINTR)
        log_write(&master->error_log.log, LOG_ALERT, "poll() failed (%d: %s)", errno, strerror(errno));
    clock_read(&master->clock);
    /* Messages before SIGCHLD: a worker may send the reason of its exit. */
    for (unsigned i = 0; i < count; i++) {
        if (entries[i + 1].revents & POLLOUT)
            child_write(master, watched[i].child);
        if (entries[i + 1].revents & ~POLLOUT)
            child_read(master, watched[i].generation, watched[i].child);
    }
    upgrade_read(master);
    if (entries[count + 3].revents)
        master_acme_read(master);
    read_signals(master);
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

/* The first generation is ready: releases the launching command. */
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
        reload_configuration(master);
}

/* Every worker of the new generation accepts connections: retires the previous one. */
static void switch_generation(struct master *master)
{
    struct generation *before = master->current;

    master->current = master->next_generation;
    master->next_generation = NULL;
    master->current->phase = PHASE_RUNNING;
    master->error_log.echo = false;
    master->switches++;
    shared_set_generation(master->shared, master->switches, master->current->child_count);
    if (before) {
        shutdown_generation(master, before, CHANNEL_RETIRE);
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

static void close_generation(struct master *master, struct generation *generation)
{
    bool came = generation == master->next_generation;

    if (came && !master->current && !master->ending && !master->drained)
        master->failed = true;
    generation_close(master, generation);
    if (came && !master->failed && !master->ending) {
        retain_generation(master);
        reload_if_requested(master);
    }
}

static void generation_step(struct master *master, struct generation *generation)
{
    if (generation->phase < PHASE_QUITTING)
        children_start(master, generation);
    if (generation->phase == PHASE_STARTING && children_ready(generation))
        switch_generation(master);
    master_otlp_check(master, generation);
    if (generation->phase >= PHASE_QUITTING && children_alive(generation) == 0) {
        if (master_otlp_end(master, generation))
            close_generation(master, generation);
        else if (master->ending) /* while the last spans are sent, the kernel queues no connections */
            sockets_close(&generation->sockets, !upgrade_shares_sockets(master));
        return;
    }
    if (generation->kill_ms > 0 && master->clock.monotonic_ms >= generation->kill_ms) {
        children_kill(master, generation);
        generation->kill_ms = 0;
    }
}

static void run_loop(struct master *master)
{
    for (;;) {
        for (struct list *link = master->generations.next, *next; link != &master->generations; link = next) {
            next = link->next;
            generation_step(master, container_of(link, struct generation, link));
        }
        if (list_empty(&master->generations) && master->renewal.pid == 0 && (master->ending || !master->drained))
            return;
        master_tickets_check(master);
        master_control_check(master);
        master_syslog_check(master);
        master_files_check(master);
        master_acme_check(master);
        heartbeats_check(master);
        upgrade_check(master);
        watchdog_check(&master->watchdog, master->clock.monotonic_ms);
        wait_round(master);
    }
}

static void master_finish(struct master *master)
{
    while (!list_empty(&master->generations))
        generation_close(master, container_of(master->generations.next, struct generation, link));
    listen_fds_finish(master->passed, NULL, upgrade_shares_sockets(master), &master->error_log.log);
    pid_file_remove(&master->pid_file);
    upgrade_close(&master->upgrade);
    if (master->signal_fd >= 0)
        close(master->signal_fd);
    if (master->report_fd >= 0)
        close(master->report_fd);
    shared_destroy(master->shared);
    error_log_finish(&master->error_log);
}

int master_run(const struct master_args *args)
{
    struct master master = {.args = args, .signal_fd = -1, .report_fd = -1, .is_root = geteuid() == 0};
    int result = 0;
    bool opened;

    master.pid_file.fd = master.renewal.channel_fd = -1;
    list_init(&master.generations);
    opened = error_log_open(&master.error_log, STR("stderr"), LOG_NOTICE) == 0;
    master.passed = upgrade_inherit(&master.upgrade, &master.error_log.log);
    if (!master.passed)
        master.passed = listen_fds_take(SOCKETS_FIRST, &master.error_log.log); /* before the fork: LISTEN_PID */
    if (opened && args->configuration->main->daemon && !upgrade_shares_sockets(&master))
        result = daemon_detach(&master.report_fd);
    if (result < 0) {
        error_log_print(LOG_EMERG, "daemon: %s", strerror(-result));
        listen_fds_finish(master.passed, NULL, true, &master.error_log.log);
        configuration_destroy(args->configuration);
        return EXIT_FAILURE;
    }
    master.detached = args->configuration->main->daemon;
    master.error_log.echo = true;
    if (open_all(&master) == 0)
        run_loop(&master);
    else
        master.failed = true;
    if (!master.failed)
        log_write(&master.error_log.log, LOG_NOTICE, "exit");
    master_finish(&master);
    return master.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
