/*
 * The main loop of the master: opens the first generation, then waits for signals, messages of workers and deadlines,
 * until the last generation has ended.
 */
#include "master/master.h"

#include "base/limits.h"
#include "master/daemon.h"
#include "master/master_state.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOCKETS_FIRST 3 /* of LISTEN_FDS: sd_listen_fds(3) */

/* Opens everything needed before the first fork. Errors have been logged. */
static int open_all(struct master *master)
{
    struct log *log = &master->error_log.log;
    int result = master_signals_open(master);

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
    /* Before all workers are ready, because the first one serves earlier. */
    shared_set_generation(master->shared, 1, master->next_generation->child_count);
    if (!watchdog_open(&master->watchdog))
        log_write(log, LOG_WARN, "WATCHDOG_USEC or WATCHDOG_PID is malformed: the watchdog gets no messages");
    /* In an upgrade the pid file means that the new server serves: it is written later. */
    if (master->args->no_pid_file || upgrade_shares_sockets(master))
        return 0;
    return master_write_pid(master, master->next_generation->configuration);
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
            wait = earlier_wait(wait, master_wait_ms(master, generation->kill_ms));
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
            entries[count] = (struct pollfd){
                .fd = child->channel_fd,
                .events = list_empty(&child->queued) || child->delayed ? POLLIN : POLLIN | POLLOUT};
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
    int wait = wait_ms(master);

    entries[count + 1] = (struct pollfd){.fd = master->upgrade.report_fd, .events = POLLIN};
    entries[count + 2] = (struct pollfd){.fd = master->upgrade.ready_fd, .events = POLLIN};
    entries[count + 3] = (struct pollfd){.fd = master->renewal.channel_fd, .events = POLLIN};
    for (unsigned i = 0; i < count; i++) {
        if (watched[i].child->delayed)
            wait = earlier_wait(wait, CHILD_DELAY_MS);
    }
    if (poll(entries, count + 4, wait) < 0 && errno != EINTR)
        log_write(&master->error_log.log, LOG_ALERT, "poll() failed (%d: %s)", errno, strerror(errno));
    clock_read(&master->clock);
    /* Messages before SIGCHLD: a worker may send the reason of its exit. */
    for (unsigned i = 0; i < count; i++) {
        if ((entries[i + 1].revents & POLLOUT) || watched[i].child->delayed)
            child_write(master, watched[i].child);
        if (entries[i + 1].revents & ~POLLOUT)
            child_read(master, watched[i].generation, watched[i].child);
    }
    upgrade_read(master);
    if (entries[count + 3].revents)
        master_acme_read(master);
    master_signals_read(master);
}

static void generation_step(struct master *master, struct generation *generation)
{
    if (generation->phase < PHASE_QUITTING)
        children_start(master, generation);
    if (generation->phase == PHASE_STARTING && children_ready(generation))
        generation_switch(master);
    master_otlp_check(master, generation);
    if (generation->phase >= PHASE_QUITTING && children_alive(generation) == 0) {
        if (master_otlp_end(master, generation))
            generation_ended(master, generation);
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
