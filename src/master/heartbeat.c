/*
 * Heartbeats: each worker increments a number in shared memory from a timer of its loop, and the master checks that
 * the number changes. Only equality of the number is used, so a worker that writes any value there affects only
 * itself.
 */
#include "master/master_state.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

uint64_t worker_heartbeat_interval_ms(const struct core_main *main)
{
    uint64_t interval_ms = main->worker_heartbeat_timeout_ms / 4;

    return interval_ms < LIMIT_HEARTBEAT_INTERVAL_MS ? interval_ms : LIMIT_HEARTBEAT_INTERVAL_MS;
}

/* 0: the workers of the generation are not checked. */
static uint64_t check_interval_ms(const struct generation *generation)
{
    if (generation->phase == PHASE_STOPPING)
        return 0;
    return worker_heartbeat_interval_ms(generation->configuration->main);
}

/* Returns the shortest interval of all generations; 0: no checks. */
static uint64_t shortest_interval_ms(const struct master *master)
{
    uint64_t shortest = 0;

    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        uint64_t interval_ms = check_interval_ms(container_of(link, struct generation, link));

        if (interval_ms > 0 && (shortest == 0 || interval_ms < shortest))
            shortest = interval_ms;
    }
    return shortest;
}

int heartbeats_next_ms(const struct master *master)
{
    uint64_t interval_ms = shortest_interval_ms(master);

    return interval_ms == 0 ? -1 : master_wait_ms(master, master->heartbeats_ms + interval_ms);
}

static void signal_worker(struct master *master, const struct child *child, int number)
{
    if (kill(child->pid, number) < 0)
        log_write(&master->error_log.log, LOG_ALERT, "kill() of worker process %ld failed (%d: %s)", (long)child->pid,
                  errno, strerror(errno));
}

static uint64_t worker_timeout_ms(const struct generation *generation, const struct child *child)
{
    uint64_t timeout_ms = generation->configuration->main->worker_heartbeat_timeout_ms;

    return child->ready ? timeout_ms : timeout_ms * LIMIT_HEARTBEAT_START_FACTOR;
}

_Static_assert(LIMIT_HEARTBEAT_START_FACTOR == 6, "the message below and the help of the directive name it");

static void worker_hangs(struct master *master, struct generation *generation, struct child *child)
{
    log_write(&master->error_log.log, LOG_ALERT,
              "worker process %ld has not %s for %llu ms (%sworker_heartbeat_timeout): it is killed%s",
              (long)child->pid, child->ready ? "run its event loop" : "become ready",
              (unsigned long long)(master->clock.monotonic_ms - child->heartbeat_ms), child->ready ? "" : "6 times ",
              generation->phase == PHASE_RUNNING ? " and replaced" : "");
    child->kill_ms = master->clock.monotonic_ms + LIMIT_ABORT_MS;
    if (generation->phase == PHASE_RUNNING && child->acceptor < 0)
        child_reassign_sockets(master, generation, (unsigned)(child - generation->children));
    signal_worker(master, child, SIGABRT); /* a core dump shows where it hangs */
}

/* Returns the process that traces another (a debugger, proc(5)); 0: none, or not visible in this PID namespace. */
static pid_t tracer_of(pid_t pid)
{
    char text[128];
    int tracer = 0;
    FILE *status;

    snprintf(text, sizeof(text), "/proc/%ld/status", (long)pid);
    status = fopen(text, "re");
    while (status && fgets(text, sizeof(text), status)) {
        if (sscanf(text, "TracerPid: %d", &tracer) == 1)
            break;
    }
    if (status)
        fclose(status);
    return tracer;
}

static bool is_traced(struct master *master, struct child *child)
{
    pid_t tracer = tracer_of(child->pid);

    if (tracer != 0 && !child->traced)
        log_write(&master->error_log.log, LOG_WARN,
                  "worker process %ld does not run its event loop, because process %ld traces it: it is not killed",
                  (long)child->pid, (long)tracer);
    child->traced = tracer != 0;
    return child->traced;
}

/* `missed_ms`: time in which the master did not run (a suspended machine), which does not count. */
static void check_worker(struct master *master, struct generation *generation, struct child *child, uint64_t missed_ms)
{
    uint64_t seen = __atomic_load_n(&master->shared->workers[child->shared_index].heartbeat, __ATOMIC_RELAXED);
    uint64_t now_ms = master->clock.monotonic_ms;
    bool late;

    if (child->kill_ms > 0) {
        /* SIGABRT does not end a stopped process. */
        if (now_ms >= child->kill_ms)
            signal_worker(master, child, SIGKILL);
        return;
    }
    child->heartbeat_ms += missed_ms;
    if (child->heartbeat_ms > now_ms)
        child->heartbeat_ms = now_ms;
    late = u64_sub_sat(now_ms, child->heartbeat_ms) >= worker_timeout_ms(generation, child);
    if (seen != child->heartbeat) {
        child->heartbeat = seen;
        child->heartbeat_ms = now_ms;
        child->traced = false;
    } else if ((late || child->traced) && is_traced(master, child)) {
        child->heartbeat_ms = now_ms; /* the timeout begins when the debugger has detached */
    } else if (late) {
        worker_hangs(master, generation, child);
    }
}

void heartbeats_check(struct master *master)
{
    uint64_t since_ms = master->heartbeats_ms > 0 ? master->clock.monotonic_ms - master->heartbeats_ms : 0;
    uint64_t missed_ms = since_ms > 2 * LIMIT_HEARTBEAT_INTERVAL_MS ? since_ms : 0;

    if (heartbeats_next_ms(master) != 0)
        return;
    master->heartbeats_ms = master->clock.monotonic_ms;
    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        struct generation *generation = container_of(link, struct generation, link);

        for (unsigned i = 0; check_interval_ms(generation) > 0 && i < generation->child_count; i++) {
            struct child *child = &generation->children[i];

            if (child->pid > 0)
                check_worker(master, generation, child, missed_ms);
        }
    }
}
