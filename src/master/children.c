/*
 * The master's workers: fork, messages from them, restart. The restart delay grows each time a worker dies soon after
 * its start, which bounds the number of forks.
 */
#include "master/master_state.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOON_MS 1000

/* At startup a worker that exits is not restarted: the start fails. */
static void fail_start(struct master *master, struct generation *generation)
{
    log_write(&master->error_log.log, LOG_EMERG, "a worker could not start; the cause is logged above");
    generation->phase = PHASE_STOPPING;
    generation->kill_ms = master->clock.monotonic_ms + LIMIT_STOP_MS;
    children_send(master, generation, CHANNEL_STOP, 0, -1);
}

static void plan_restart(struct master *master, struct child *child)
{
    uint64_t delay_ms = 0;

    if (u64_sub_sat(master->clock.monotonic_ms, child->started_ms) < SOON_MS)
        child->failed_starts++;
    else
        child->failed_starts = 0;
    if (child->failed_starts > 1)
        delay_ms = child->failed_starts > 8 ? LIMIT_RESTART_DELAY_MS : (uint64_t)50 << child->failed_starts;
    if (delay_ms > LIMIT_RESTART_DELAY_MS)
        delay_ms = LIMIT_RESTART_DELAY_MS;
    child->restart_ms = master->clock.monotonic_ms + delay_ms;
    if (delay_ms > 0)
        log_write(&master->error_log.log, LOG_ALERT,
                  "%u workers in a row exited within a second of their start: the next one starts in %llu ms",
                  child->failed_starts, (unsigned long long)delay_ms);
}

static void start_child(struct master *master, struct generation *generation, unsigned number)
{
    struct child *child = &generation->children[number];
    pid_t parent = getpid();
    int worker_end = -1;
    int error = channel_open(&child->channel_fd, &worker_end);
    pid_t pid = error == 0 ? fork() : -1;

    child->started_ms = child->heartbeat_ms = master->clock.monotonic_ms;
    child->restart_ms = 0;
    child->ready = child->traced = false;
    child->requests = 0;
    if (pid == 0)
        child_run(master, generation, number, worker_end, parent);
    if (pid < 0) {
        error = error < 0 ? error : -errno;
        log_write(&master->error_log.log, generation->phase == PHASE_STARTING ? LOG_EMERG : LOG_ALERT,
                  "starting a worker process failed (%d: %s)", -error, strerror(-error));
        fd_close(&child->channel_fd);
        fd_close(&worker_end);
        if (generation->phase == PHASE_STARTING)
            fail_start(master, generation);
        else
            plan_restart(master, child);
        return;
    }
    fd_close(&worker_end);
    child->pid = pid;
    log_write(&master->error_log.log, LOG_INFO, "worker process %ld started", (long)pid);
}

void child_reassign_sockets(struct master *master, struct generation *generation, unsigned number)
{
    const struct sockets *sockets = &generation->sockets;
    struct child *child = &generation->children[number];
    unsigned acceptor = number;

    do {
        acceptor = (acceptor + 1) % generation->child_count;
        if (acceptor == number)
            return;
    } while (!generation->children[acceptor].ready || generation->children[acceptor].kill_ms > 0);
    child->acceptor = (int)acceptor;
    for (size_t i = 0; i < sockets->endpoints; i++) {
        for (unsigned slot = number; slot < sockets->slots; slot += sockets->workers) {
            int fd = sockets_get(sockets, i, slot);

            if (fd >= 0 && fd != sockets_get(sockets, i, acceptor)) /* a unix: socket is shared by all workers */
                child_send(master, generation, &generation->children[acceptor], CHANNEL_LISTEN,
                           (uint32_t)i * sockets->workers + number, fd);
        }
    }
}

static void return_sockets(struct master *master, struct generation *generation, struct child *child)
{
    if (child->acceptor >= 0)
        child_send(master, generation, &generation->children[child->acceptor], CHANNEL_UNLISTEN,
                   (uint32_t)(child - generation->children), -1);
    child->acceptor = -1;
}

void children_start(struct master *master, struct generation *generation)
{
    for (unsigned i = 0; i < generation->child_count; i++) {
        const struct child *child = &generation->children[i];

        if (generation->phase == PHASE_STOPPING)
            return;
        if (child->pid == 0 && child->restart_ms > 0 && child->restart_ms <= master->clock.monotonic_ms)
            start_child(master, generation, i);
        else if (child->pid == 0 && child->acceptor < 0)
            child_reassign_sockets(master, generation, i);
    }
}

static void child_is_ready(struct master *master, struct generation *generation, struct child *child)
{
    child->ready = true;
    child->heartbeat_ms = master->clock.monotonic_ms;
    return_sockets(master, generation, child);
}

/* Bounded for a compromised worker, too: any message except one CHANNEL_READY ends the loop. */
void child_read(struct master *master, struct generation *generation, struct child *child)
{
    struct channel_message message;
    int result;

    while ((result = channel_receive(child->channel_fd, &message)) == 1) {
        if (message.fd >= 0)
            close(message.fd);
        if (message.kind == CHANNEL_READY && !child->ready) {
            child_is_ready(master, generation, child);
            continue;
        }
        if (master_control_request(master, generation, child, &message))
            return;
        result = message.kind == CHANNEL_FAILED ? 0 : -EPROTO;
        break;
    }
    if (result == -EAGAIN)
        return;
    if (result == -EPROTO || result == -EMFILE) {
        log_write(&master->error_log.log, LOG_ALERT, "worker process %ld sent a malformed message: it is killed",
                  (long)child->pid);
        kill(child->pid, SIGKILL);
    }
    /* SIGCHLD follows: a worker that closes its channel, or reports a failure, exits. */
    child_channel_close(child);
}

/* `denied_call` is written by the worker and therefore not trusted: it is used for this log line only. */
static void log_denied_call(struct log *log, pid_t pid, uint64_t denied_call)
{
    char name[64];

    sandbox_call_name(denied_call, name, sizeof(name));
    log_write(log, LOG_ALERT,
              "worker process %ld exited on signal %d: the sandbox does not allow the system call %s; if a feature of "
              "sluice needs it, report it, and omit seccomp in `sandbox` until then",
              (long)pid, SIGSYS, name);
}

static void log_exit(struct master *master, const struct generation *generation, const struct child *child, int status)
{
    struct log *log = &master->error_log.log;
    bool expected = generation->phase == PHASE_QUITTING || generation->phase == PHASE_STOPPING;
    uint64_t denied_call = __atomic_load_n(&master->shared->workers[child->shared_index].denied_call, __ATOMIC_RELAXED);
    pid_t pid = child->pid;

    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS && denied_call > 0)
        log_denied_call(log, pid, denied_call);
    else if (WIFSIGNALED(status))
        log_write(log, LOG_ALERT, "worker process %ld exited on signal %d%s", (long)pid, WTERMSIG(status),
                  WCOREDUMP(status) ? " (core dumped)" : "");
    else if (expected && WEXITSTATUS(status) == 0)
        log_write(log, LOG_INFO, "worker process %ld exited with code 0", (long)pid);
    else
        log_write(log, LOG_ALERT, "worker process %ld exited with code %d", (long)pid, WEXITSTATUS(status));
}

static void child_ended(struct master *master, struct generation *generation, struct child *child, int status)
{
    log_exit(master, generation, child, status);
    child->pid = 0;
    child_channel_close(child);
    child->ready = false;
    child->kill_ms = 0;
    caches_abandon(&generation->configuration->caches, (unsigned)child->shared_index);
    if (master->current && master->current != generation) /* with new indexes, whose scan preceded its last files */
        caches_abandon(&master->current->configuration->caches, (unsigned)child->shared_index);
    limits_abandon(&generation->configuration->limits, (unsigned)child->shared_index);
    status_zones_abandon(&generation->configuration->zones, (unsigned)child->shared_index);
    if (generation->phase != PHASE_RUNNING) {
        shared_slot_release(master->shared, (unsigned)child->shared_index);
        child->shared_index = -1;
        if (generation->phase == PHASE_STARTING)
            fail_start(master, generation);
        return;
    }
    for (unsigned i = 0; i < generation->child_count; i++) {
        if (generation->children[i].acceptor == child - generation->children)
            generation->children[i].acceptor = -1;
    }
    shared_slot_reset(master->shared, (unsigned)child->shared_index);
    master->shared->restarts++;
    plan_restart(master, child);
}

/* Finds the generation and the struct child of a process; NULL: none. */
static struct generation *generation_of(struct master *master, pid_t pid, struct child **out_child)
{
    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        struct generation *generation = container_of(link, struct generation, link);

        for (unsigned i = 0; i < generation->child_count; i++) {
            *out_child = &generation->children[i];
            if (generation->children[i].pid == pid)
                return generation;
        }
    }
    return NULL;
}

void children_reap(struct master *master)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        struct child *child;
        struct generation *generation = generation_of(master, pid, &child);

        if (generation)
            child_ended(master, generation, child, status);
        else if (!master_acme_exited(master, pid, status) && !master_otlp_exited(master, pid, status))
            upgrade_child_exited(master, pid, status);
    }
}

void children_kill(struct master *master, struct generation *generation)
{
    for (unsigned i = 0; i < generation->child_count; i++) {
        if (generation->children[i].pid == 0)
            continue;
        log_write(&master->error_log.log, LOG_ALERT, "worker process %ld does not exit; it is killed",
                  (long)generation->children[i].pid);
        kill(generation->children[i].pid, SIGKILL);
    }
}

int children_next_ms(const struct master *master, const struct generation *generation)
{
    uint64_t earliest = UINT64_MAX;

    for (unsigned i = 0; i < generation->child_count; i++) {
        const struct child *child = &generation->children[i];

        if (child->pid == 0 && child->restart_ms > 0 && child->restart_ms < earliest)
            earliest = child->restart_ms;
    }
    return master_wait_ms(master, earliest);
}

unsigned children_alive(const struct generation *generation)
{
    unsigned alive = 0;

    for (unsigned i = 0; i < generation->child_count; i++)
        alive += generation->children[i].pid != 0;
    return alive;
}

bool children_ready(const struct generation *generation)
{
    for (unsigned i = 0; i < generation->child_count; i++) {
        if (!generation->children[i].ready)
            return false;
    }
    return true;
}
