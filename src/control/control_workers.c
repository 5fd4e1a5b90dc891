/*
 * GET /v1/workers: reads the state of all workers from shared memory.
 */
#include "control/control.h"

static uint64_t open_connections(const struct counters *counters)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < CONNECTION_STATES; i++)
        sum += __atomic_load_n(&counters->connections[i], __ATOMIC_RELAXED);
    return sum;
}

static void write_worker(struct report *report, const struct shared_worker *slot, int64_t now_s)
{
    uint64_t pid = __atomic_load_n(&slot->facts.pid, __ATOMIC_ACQUIRE);
    int64_t started_s = (int64_t)__atomic_load_n(&slot->facts.started_s, __ATOMIC_RELAXED);

    if (pid == 0)
        return;
    report_row(report);
    report_number(report, pid);
    report_number(report, __atomic_load_n(&slot->facts.generation, __ATOMIC_RELAXED));
    report_text(report, __atomic_load_n(&slot->facts.draining, __ATOMIC_RELAXED) ? STR("draining") : STR("running"));
    report_number(report, now_s > started_s ? (uint64_t)(now_s - started_s) : 0);
    report_number(report, open_connections(&slot->counters));
    report_number(report, __atomic_load_n(&slot->counters.requests, __ATOMIC_RELAXED));
}

int control_workers(struct control_call *call)
{
    static const char *const columns[] = {"pid", "generation", "state", "seconds", "connections", "requests", NULL};
    const struct shared *shared = call->worker->shared;
    unsigned used = __atomic_load_n(&shared->slots_used, __ATOMIC_RELAXED);

    report_begin(&call->report, "workers", columns);
    for (unsigned i = 0; i < used && i < shared->slot_count; i++)
        write_worker(&call->report, &shared->workers[i], clock_wall_s(&call->worker->loop.clock));
    report_end(&call->report);
    return 200;
}
