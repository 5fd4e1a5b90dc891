/*
 * The master's life: everything that needs root or must outlive a worker is opened here,
 * then it waits for signals. Workers are children.c's.
 */
#include "server/master.h"

#include "base/limits.h"
#include "build_options.h"
#include "server/access_log.h"
#include "server/daemon.h"
#include "server/log_file.h"
#include "server/master_state.h"
#include "tls/ktls.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int handled_signals[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGCHLD};

unsigned master_worker_count(const struct core_main *main)
{
    cpu_set_t cores;
    int count = 1;

    if (main->worker_processes > 0)
        return (unsigned)main->worker_processes;
    if (sched_getaffinity(0, sizeof(cores), &cores) == 0)
        count = CPU_COUNT(&cores);
    return count > LIMIT_WORKERS ? LIMIT_WORKERS : (unsigned)count;
}

static bool on_terminal(struct str path)
{
    return str_equal(path, STR("stderr")) || str_equal(path, STR("stdout"));
}

/* Where a log goes for good: a daemon has no terminal, and a descriptor kept on it would keep a pipe's reader
 * waiting. */
static int open_log(const struct master *master, struct str path)
{
    if (master->detached && on_terminal(path))
        path = STR("/dev/null");
    return log_file_open(path);
}

static struct str error_log_path(const struct master *master)
{
    const char *given = master->start->error_log;

    if (given && !conf_map_get(master->configuration->tree, STR("error_log")))
        return str_from(given);
    return master->configuration->main->error_log.path;
}

static int open_error_log(struct master *master)
{
    struct str path = error_log_path(master);
    int result;

    if (master->detached && on_terminal(path)) {
        error_log_say(LOG_WARN, "error_log: a daemon has no " STR_FMT ": its lines are lost; name a file",
                      STR_ARG(path));
        path = STR("/dev/null");
    }
    result = error_log_open(&master->error_log, path,
                            (enum log_level)master->configuration->main->error_log.level);
    master->error_log.echo = true;
    if (result < 0)
        log_write(&master->error_log.log, LOG_EMERG, "open() \"" STR_FMT "\" failed (%d: %s)", STR_ARG(path),
                  -result, strerror(-result));
    return result;
}

static int open_access_logs(struct master *master)
{
    for (size_t i = 0; i < master->configuration->access_log_count; i++) {
        struct access_log_target *target = master->configuration->access_logs[i];

        target->fd = open_log(master, target->path);
        if (target->fd < 0) {
            log_write(&master->error_log.log, LOG_EMERG, "open() \"" STR_FMT "\" failed (%d: %s)",
                      STR_ARG(target->path), -target->fd, strerror(-target->fd));
            return target->fd;
        }
    }
    return 0;
}

static int open_caches(struct master *master)
{
    uid_t user = master->is_root ? master->identity.user : (uid_t)-1;
    gid_t group = master->is_root ? master->identity.group : (gid_t)-1;

    return caches_open(&master->configuration->caches, user, group, &master->error_log.log);
}

static void check_files(struct master *master)
{
    uint64_t limit = privileges_raise_files();
    uint64_t connections = master->configuration->main->worker_connections;

    /* A connection may hold a file as well, and listeners, logs and the loop need some. */
    if (2 * connections + master->configuration->endpoint_count + 32 > limit)
        log_write(&master->error_log.log, LOG_WARN,
                  "%llu worker_connections may need more than the %llu files that this process may open "
                  "(RLIMIT_NOFILE); at the limit accepting pauses",
                  (unsigned long long)connections, (unsigned long long)limit);
}

static int find_identity(struct master *master)
{
    const struct core_main *main = master->configuration->main;
    const char *missing;
    int result;

    master->is_root = geteuid() == 0;
    if (!master->is_root) {
        if (!str_empty(main->user))
            log_write(&master->error_log.log, LOG_WARN, "\"user\" makes sense only for root: ignored");
        return 0;
    }
    result = identity_find(main->user, main->group, &master->identity, &missing);
    if (result < 0)
        log_write(&master->error_log.log, LOG_EMERG, "user: there is no %s \"" STR_FMT "\"", missing,
                  STR_ARG(missing[0] == 'g'       ? main->group
                          : str_empty(main->user) ? STR("nobody")
                                                  : main->user));
    return result;
}

/* Nobody asks the kernel where every server has said that it shall not be used. */
static bool ktls_wanted(const struct configuration *configuration)
{
    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        const struct endpoint *endpoint = &configuration->endpoints[i];

        for (size_t k = 0; endpoint->ssl && k < endpoint->server_count; k++) {
            if (endpoint->servers[k]->tls.ktls != TLS_KTLS_OFF)
                return true;
        }
    }
    return false;
}

static int probe_ktls(struct master *master)
{
    char text[512];
    struct str line;

    if (!ktls_wanted(master->configuration)) {
        for (unsigned version = 0; version < 2; version++) {
            for (unsigned cipher = 0; cipher <= RECORD_CHACHA20_POLY1305; cipher++)
                master->shared->ktls.reason[version][cipher] = KTLS_OFF;
        }
        return 0;
    }
    ktls_probe(&ktls_calls_kernel, &master->shared->ktls);
    line = ktls_describe(&master->shared->ktls, text, sizeof(text));
    log_write(&master->error_log.log, LOG_NOTICE, STR_FMT, STR_ARG(line));
    return configuration_check_ktls(master->configuration, &master->shared->ktls, &master->error_log.log);
}

/* The built-in path is a convenience: only a path that somebody chose stops the start. */
static int write_pid(struct master *master)
{
    struct str path = master->configuration->main->pid;
    bool chosen = conf_map_get(master->configuration->tree, STR("pid")) != NULL;
    char name[sizeof(master->pid_file.path)];
    int result = -ENAMETOOLONG;

    if (path.length < sizeof(name)) {
        memcpy(name, path.data, path.length);
        name[path.length] = '\0';
        result = pid_file_write(&master->pid_file, name);
    }
    if (result == 0)
        return 0;
    if (result == -EEXIST)
        log_write(&master->error_log.log, chosen ? LOG_EMERG : LOG_NOTICE,
                  "pid file \"%s\": process %ld runs already with it%s", name, pid_file_owner(name),
                  chosen ? "" : "; this one has no pid file (give it one with pid:)");
    else
        log_write(&master->error_log.log, chosen ? LOG_EMERG : LOG_NOTICE, "pid file \"" STR_FMT "\": %s%s",
                  STR_ARG(path), strerror(-result),
                  chosen ? "" : "; going on without (give it one with pid:)");
    return chosen ? result : 0;
}

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

static int make_children(struct master *master)
{
    master->child_count = master_worker_count(master->configuration->main);
    master->shared = shared_create(master->child_count);
    master->children = calloc(master->child_count, sizeof(*master->children));
    if (!master->shared || !master->children)
        return -ENOMEM;
    clock_read(&master->clock);
    master->shared->started_s = (uint64_t)clock_wall_s(&master->clock);
    for (unsigned i = 0; i < master->child_count; i++)
        master->children[i] = (struct child){.channel_fd = -1, .keeper = -1, .restart_ms = 1};
    return 0;
}

/* Everything up to the first fork. What fails has been said. */
static int open_all(struct master *master)
{
    struct log *log = &master->error_log.log;
    int result = open_error_log(master);

    if (result == 0)
        result = find_identity(master);
    if (result == 0)
        check_files(master);
    if (result == 0) {
        result = make_children(master);
        if (result < 0)
            log_write(log, LOG_EMERG, "out of memory");
    }
    if (result == 0)
        result = open_access_logs(master);
    if (result == 0)
        result = open_caches(master);
    if (result == 0)
        result = probe_ktls(master);
    /* Late: from now on clients are queued, who must not be let down by a start that was refused. */
    if (result == 0)
        result = sockets_open(&master->sockets, master->configuration, master->child_count, log);
    if (result == 0 && !master->start->no_pid_file)
        result = write_pid(master);
    if (result == 0) {
        result = block_signals(master);
        if (result < 0)
            log_write(log, LOG_EMERG, "signalfd() failed (%d: %s)", -result, strerror(-result));
    }
    return result;
}

static void reopen_logs(struct master *master)
{
    struct log *log = &master->error_log.log;
    int fd = open_log(master, error_log_path(master));

    log_write(log, LOG_NOTICE, "signal USR1: reopening the logs");
    if (fd >= 0) {
        children_tell(master, CHANNEL_ERROR_LOG, 0, fd);
        error_log_replace(&master->error_log, fd);
    } else {
        log_write(log, LOG_ALERT, "error_log cannot be opened again (%d: %s): the old one stays", -fd,
                  strerror(-fd));
    }
    for (size_t i = 0; i < master->configuration->access_log_count; i++) {
        struct access_log_target *target = master->configuration->access_logs[i];

        fd = open_log(master, target->path);
        if (fd < 0) {
            log_write(log, LOG_ALERT, "\"" STR_FMT "\" cannot be opened again (%d: %s): the old one stays",
                      STR_ARG(target->path), -fd, strerror(-fd));
            continue;
        }
        children_tell(master, CHANNEL_ACCESS_LOG, (uint32_t)i, fd);
        if (target->fd >= 0)
            close(target->fd);
        target->fd = fd;
    }
}

static void stop(struct master *master)
{
    if (master->phase == MASTER_STOPPING)
        return;
    master->phase = MASTER_STOPPING;
    master->kill_ms = master->clock.monotonic_ms + LIMIT_STOP_MS;
    service_notify("STOPPING=1");
    children_tell(master, CHANNEL_STOP, 0, -1);
}

static void quit(struct master *master)
{
    uint64_t timeout_ms = master->configuration->main->worker_shutdown_timeout_ms;

    if (master->phase == MASTER_QUITTING || master->phase == MASTER_STOPPING)
        return;
    master->phase = MASTER_QUITTING;
    /* Workers keep this time themselves; one that cannot is helped. */
    if (timeout_ms > 0)
        master->kill_ms = master->clock.monotonic_ms + timeout_ms + LIMIT_STOP_MS;
    service_notify("STOPPING=1");
    children_tell(master, CHANNEL_QUIT, 0, -1);
    /* Ours are closed too, or the kernel would go on queueing connections for nobody. */
    sockets_close(&master->sockets, true);
}

static void obey_signal(struct master *master, int number)
{
    struct log *log = &master->error_log.log;

    switch (number) {
    case SIGTERM:
    case SIGINT:
        log_write(log, LOG_NOTICE, "signal %s: ending now", number == SIGINT ? "INT" : "TERM");
        stop(master);
        break;
    case SIGQUIT:
        log_write(log, LOG_NOTICE, "signal QUIT: ending when open answers are sent");
        quit(master);
        break;
    case SIGUSR1:
        reopen_logs(master);
        break;
    case SIGCHLD:
        children_reap(master);
        break;
    default:
        log_write(log, LOG_WARN, "signal %s is not supported in this version: nothing was changed",
                  number == SIGHUP    ? "HUP (reload)"
                  : number == SIGUSR2 ? "USR2 (upgrade)"
                                      : "WINCH (drain)");
        break;
    }
}

static void read_signals(struct master *master)
{
    struct signalfd_siginfo arrived;

    while (read(master->signal_fd, &arrived, sizeof(arrived)) == sizeof(arrived))
        obey_signal(master, (int)arrived.ssi_signo);
}

static int wait_ms(const struct master *master)
{
    int wait =
        master->phase == MASTER_QUITTING || master->phase == MASTER_STOPPING ? -1 : children_next_ms(master);

    if (master->kill_ms == 0)
        return wait;
    return master->kill_ms <= master->clock.monotonic_ms
               ? 0
               : (int)(master->kill_ms - master->clock.monotonic_ms);
}

/* One round: waits for a signal, a worker's word or a deadline. */
static void wait_round(struct master *master)
{
    struct pollfd entries[LIMIT_WORKERS + 1] = {{.fd = master->signal_fd, .events = POLLIN}};

    for (unsigned i = 0; i < master->child_count; i++)
        entries[i + 1] = (struct pollfd){.fd = master->children[i].channel_fd, .events = POLLIN};
    if (poll(entries, master->child_count + 1, wait_ms(master)) < 0 && errno != EINTR)
        log_write(&master->error_log.log, LOG_ALERT, "poll() failed (%d: %s)", errno, strerror(errno));
    clock_read(&master->clock);
    /* Words before deaths: a worker may say why before it goes. */
    for (unsigned i = 0; i < master->child_count; i++) {
        if (entries[i + 1].revents && master->children[i].channel_fd >= 0)
            child_read(master, &master->children[i]);
    }
    read_signals(master);
}

static void started(struct master *master)
{
    struct log *log = &master->error_log.log;
    char text[128];

    master->phase = MASTER_RUNNING;
    master->error_log.echo = false;
    for (size_t i = 0; i < master->configuration->endpoint_count; i++) {
        const struct endpoint *endpoint = &master->configuration->endpoints[i];
        struct str name = listen_address_format(&endpoint->address, text, sizeof(text));

        log_write(log, LOG_NOTICE, "listening on " STR_FMT "%s", STR_ARG(name), endpoint->ssl ? " ssl" : "");
    }
    log_write(log, LOG_NOTICE, "sluice/" SLUICE_VERSION " runs, %u worker%s", master->child_count,
              master->child_count == 1 ? "" : "s");
    service_notify("READY=1");
    daemon_report(master->report_fd);
    master->report_fd = -1;
    if (master->start->ready)
        master->start->ready(master->start->owner, &master->shared->ktls);
}

static void live(struct master *master)
{
    clock_read(&master->clock);
    for (;;) {
        if (master->phase == MASTER_STARTING || master->phase == MASTER_RUNNING)
            children_start(master);
        else if (children_alive(master) == 0)
            return;
        if (master->phase == MASTER_STARTING && children_ready(master))
            started(master);
        if (master->kill_ms > 0 && master->clock.monotonic_ms >= master->kill_ms) {
            children_kill(master);
            master->kill_ms = 0;
        }
        wait_round(master);
    }
}

static void finish(struct master *master)
{
    sockets_close(&master->sockets, !master->failed);
    pid_file_remove(&master->pid_file);
    for (size_t i = 0; i < master->configuration->access_log_count; i++) {
        if (master->configuration->access_logs[i]->fd >= 0)
            close(master->configuration->access_logs[i]->fd);
        master->configuration->access_logs[i]->fd = -1;
    }
    if (master->signal_fd >= 0)
        close(master->signal_fd);
    if (master->report_fd >= 0)
        close(master->report_fd);
    free(master->children);
    shared_destroy(master->shared);
    caches_close(&master->configuration->caches);
    error_log_finish(&master->error_log);
}

int master_run(const struct master_start *start)
{
    struct master master = {
        .start = start, .configuration = start->configuration, .signal_fd = -1, .report_fd = -1};
    int result;

    master.pid_file.fd = -1;
    for (size_t i = 0; i < start->configuration->access_log_count; i++)
        start->configuration->access_logs[i]->fd = -1;
    if (start->configuration->main->daemon) {
        result = daemon_detach(&master.report_fd);
        if (result < 0) {
            error_log_say(LOG_EMERG, "daemon: %s", strerror(-result));
            return EXIT_FAILURE;
        }
        master.detached = true;
    }
    result = open_all(&master);
    if (result == 0)
        live(&master);
    else
        master.failed = true;
    if (!master.failed)
        log_write(&master.error_log.log, LOG_NOTICE, "exit");
    finish(&master);
    return master.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
