/*
 * The master's workers: forked, listened to, replaced when they die. One that dies
 * soon after its start is replaced later each time, so that a worker that cannot live does
 * not eat the machine.
 */
#include "server/master_state.h"

#include "base/limits.h"
#include "server/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOON_MS 1000

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* In the new process: lets go of all that is the master's or another worker's. */
static void forget_others(struct master *master, unsigned number)
{
    for (unsigned i = 0; i < master->child_count; i++)
        close_fd(&master->children[i].channel_fd);
    close_fd(&master->signal_fd);
    pid_file_forget(&master->pid_file);
    sockets_keep_own(&master->sockets, number);
    close_fd(&master->report_fd);
}

static _Noreturn void become_worker(struct master *master, unsigned number, int channel_fd, pid_t parent)
{
    const struct identity *identity = master->is_root ? &master->identity : NULL;
    int *own = calloc(master->sockets.endpoints + 1, sizeof(int));
    int status = WORKER_EXIT_FAILED;

    forget_others(master, number);
    if (own) {
        struct worker_start start = {.configuration = master->configuration,
                                     .shared = master->shared,
                                     .number = number,
                                     .error_log = &master->error_log,
                                     .sockets = own,
                                     .channel_fd = channel_fd,
                                     .master = parent,
                                     .detached = master->detached,
                                     .identity = identity};

        for (size_t i = 0; i < master->sockets.endpoints; i++)
            own[i] = sockets_get(&master->sockets, i, number);
        status = worker_run(&start);
    }
    free(own);
    free(master->children);
    free(master->sockets.fds);
    configuration_destroy(master->configuration);
    error_log_finish(&master->error_log);
    exit(status);
}

/* Whoever waits for the start is told that it failed, rather than that it is tried again and again. */
static void fail_start(struct master *master)
{
    log_write(&master->error_log.log, LOG_EMERG, "a worker could not start; the lines above say why");
    master->failed = true;
    master->phase = MASTER_STOPPING;
    master->kill_ms = master->clock.monotonic_ms + LIMIT_STOP_MS;
    children_tell(master, CHANNEL_STOP, 0, -1);
}

static void plan_restart(struct master *master, struct child *child)
{
    uint64_t delay_ms = 0;

    if (master->clock.monotonic_ms - child->started_ms < SOON_MS)
        child->deaths++;
    else
        child->deaths = 0;
    if (child->deaths > 1)
        delay_ms = child->deaths > 8 ? LIMIT_RESTART_DELAY_MS : (uint64_t)50 << child->deaths;
    if (delay_ms > LIMIT_RESTART_DELAY_MS)
        delay_ms = LIMIT_RESTART_DELAY_MS;
    child->restart_ms = master->clock.monotonic_ms + delay_ms;
}

static void start_child(struct master *master, unsigned number)
{
    struct child *child = &master->children[number];
    pid_t parent = getpid();
    int worker_end = -1;
    int error = channel_open(&child->channel_fd, &worker_end);
    pid_t pid = error == 0 ? fork() : -1;

    child->started_ms = master->clock.monotonic_ms;
    child->restart_ms = 0;
    child->ready = false;
    if (pid == 0)
        become_worker(master, number, worker_end, parent);
    if (pid < 0) {
        error = error < 0 ? error : -errno;
        log_write(&master->error_log.log, master->phase == MASTER_STARTING ? LOG_EMERG : LOG_ALERT,
                  "starting a worker process failed (%d: %s)", -error, strerror(-error));
        close_fd(&child->channel_fd);
        close_fd(&worker_end);
        if (master->phase == MASTER_STARTING)
            fail_start(master);
        else
            plan_restart(master, child);
        return;
    }
    close_fd(&worker_end);
    child->pid = pid;
    log_write(&master->error_log.log, LOG_INFO, "worker process %ld started", (long)pid);
}

static void tell(struct master *master, const struct child *child, enum channel_kind kind, uint32_t index, int fd)
{
    int result;

    if (child->pid == 0 || child->channel_fd < 0)
        return;
    result = channel_send(child->channel_fd, &(struct channel_message){.kind = kind, .index = index, .fd = fd});
    if (result < 0 && result != -EPIPE)
        log_write(&master->error_log.log, LOG_ALERT, "sending to worker process %ld failed (%d: %s)",
                  (long)child->pid, -result, strerror(-result));
}

/* A worker that waits for its restart lends its sockets to a sibling, or who is queued there would wait, too. */
static void lend_sockets(struct master *master, unsigned number)
{
    struct child *child = &master->children[number];
    unsigned keeper = number;

    do {
        keeper = (keeper + 1) % master->child_count;
        if (keeper == number)
            return;
    } while (!master->children[keeper].ready);
    child->keeper = (int)keeper;
    for (size_t i = 0; i < master->sockets.endpoints; i++) {
        int fd = sockets_get(&master->sockets, i, number);

        if (fd != sockets_get(&master->sockets, i, keeper)) /* one of unix: is everybody's */
            tell(master, &master->children[keeper], CHANNEL_LISTEN, (uint32_t)i * master->child_count + number, fd);
    }
}

static void take_sockets_back(struct master *master, struct child *child)
{
    if (child->keeper >= 0)
        tell(master, &master->children[child->keeper], CHANNEL_UNLISTEN, (uint32_t)(child - master->children), -1);
    child->keeper = -1;
}

void children_start(struct master *master)
{
    for (unsigned i = 0; i < master->child_count; i++) {
        const struct child *child = &master->children[i];

        if (master->phase == MASTER_STOPPING)
            return;
        if (child->pid == 0 && child->restart_ms > 0 && child->restart_ms <= master->clock.monotonic_ms)
            start_child(master, i);
        else if (child->pid == 0 && child->keeper < 0)
            lend_sockets(master, i);
    }
}

void child_read(struct master *master, struct child *child)
{
    struct channel_message message;
    int result;

    while ((result = channel_receive(child->channel_fd, &message)) == 1) {
        if (message.fd >= 0)
            close(message.fd);
        if (message.kind == CHANNEL_READY) {
            child->ready = true;
            take_sockets_back(master, child);
        }
    }
    if (result == -EPROTO) {
        log_write(&master->error_log.log, LOG_ALERT, "worker process %ld sent a malformed message",
                  (long)child->pid);
        return;
    }
    /* The end of the channel is the end of the worker: SIGCHLD tells the rest. */
    if (result != -EAGAIN)
        close_fd(&child->channel_fd);
}

static void say_end(struct master *master, pid_t pid, int status)
{
    struct log *log = &master->error_log.log;
    bool expected = master->phase == MASTER_QUITTING || master->phase == MASTER_STOPPING;

    if (WIFSIGNALED(status))
        log_write(log, LOG_ALERT, "worker process %ld exited on signal %d%s", (long)pid, WTERMSIG(status),
                  WCOREDUMP(status) ? " (core dumped)" : "");
    else if (expected && WEXITSTATUS(status) == 0)
        log_write(log, LOG_INFO, "worker process %ld exited with code 0", (long)pid);
    else
        log_write(log, LOG_ALERT, "worker process %ld exited with code %d", (long)pid, WEXITSTATUS(status));
}

static void child_ended(struct master *master, struct child *child, int status)
{
    say_end(master, child->pid, status);
    child->pid = 0;
    close_fd(&child->channel_fd);
    switch (master->phase) {
    case MASTER_STARTING:
        fail_start(master);
        break;
    case MASTER_RUNNING:
        for (unsigned i = 0; i < master->child_count; i++) {
            if (master->children[i].keeper == child - master->children)
                master->children[i].keeper = -1;
        }
        counters_abandoned(&master->shared->workers[child - master->children].counters);
        caches_abandon(&master->configuration->caches, (unsigned)(child - master->children));
        upstream_zone_abandon(master->shared->upstreams, (unsigned)(child - master->children));
        master->shared->restarts++;
        plan_restart(master, child);
        break;
    case MASTER_QUITTING:
    case MASTER_STOPPING:
        break;
    }
    child->ready = false;
}

void children_reap(struct master *master)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (unsigned i = 0; i < master->child_count; i++) {
            if (master->children[i].pid == pid)
                child_ended(master, &master->children[i], status);
        }
    }
}

void children_tell(struct master *master, enum channel_kind kind, uint32_t index, int fd)
{
    for (unsigned i = 0; i < master->child_count; i++)
        tell(master, &master->children[i], kind, index, fd);
}

void children_kill(struct master *master)
{
    for (unsigned i = 0; i < master->child_count; i++) {
        if (master->children[i].pid == 0)
            continue;
        log_write(&master->error_log.log, LOG_ALERT, "worker process %ld does not end; it is killed",
                  (long)master->children[i].pid);
        kill(master->children[i].pid, SIGKILL);
    }
}

int children_next_ms(const struct master *master)
{
    uint64_t nearest = UINT64_MAX;

    for (unsigned i = 0; i < master->child_count; i++) {
        const struct child *child = &master->children[i];

        if (child->pid == 0 && child->restart_ms > 0 && child->restart_ms < nearest)
            nearest = child->restart_ms;
    }
    if (nearest == UINT64_MAX)
        return -1;
    return nearest <= master->clock.monotonic_ms ? 0 : (int)(nearest - master->clock.monotonic_ms);
}

unsigned children_alive(const struct master *master)
{
    unsigned alive = 0;

    for (unsigned i = 0; i < master->child_count; i++)
        alive += master->children[i].pid != 0;
    return alive;
}

bool children_ready(const struct master *master)
{
    for (unsigned i = 0; i < master->child_count; i++) {
        if (!master->children[i].ready)
            return false;
    }
    return true;
}
