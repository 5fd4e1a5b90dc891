/*
 * The exporters of `otel_exporter` (src/otlp): the master forks one for each generation that has the directive, starts
 * it again if it dies, and ends it after the workers of the generation, whose last spans it sends.
 */
#include "master/master_state.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "otlp/otlp_exporter.h"
#include "otlp/span_ring.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DELAY_DOUBLED = 6, STABLE_MS = 60000 }; /* the delay begins again after an exporter that ran for a minute */

int master_otlp_open(struct master *master, struct generation *generation)
{
    struct otlp *otlp = &generation->configuration->otlp;
    int error;

    if (str_empty(otlp->endpoint.url))
        return 0;
    error = span_zone_open(generation->child_count, otlp->batch_size * otlp->batch_count, otlp->batch_size,
                           &master->shared->spans, &otlp->zone);
    if (error < 0)
        log_write(&master->error_log.log, LOG_EMERG,
                  "otel_exporter: the queues of the workers cannot be mapped (%d: %s)", -error, strerror(-error));
    return error;
}

static _Noreturn void become_exporter(struct master *master, struct generation *generation, int channel_fd)
{
    struct log *log = &master->error_log.log;
    struct otlp_exporter exporter = {
        .otlp = &generation->configuration->otlp, .channel_fd = channel_fd, .log = log};
    const int kept[] = {channel_fd, master->error_log.fd, span_zone_wake_fd(exporter.otlp->zone)};
    const char *step = "closing files";
    int result = child_close_others(kept, sizeof(kept) / sizeof(kept[0])), status = EXIT_FAILURE;

    if (result == 0)
        result = privileges_drop(&generation->identity, &step);
    if (result < 0)
        log_write(log, LOG_ALERT, "otlp: %s failed (%d: %s)", step, -result, strerror(-result));
    else
        status = otlp_exporter_run(&exporter);
    exit(status);
}

static void plan_restart(struct master *master, struct exporter_child *exporter)
{
    unsigned doubled = exporter->failures < DELAY_DOUBLED ? exporter->failures : DELAY_DOUBLED;

    exporter->failures++;
    exporter->start_ms = master->clock.monotonic_ms + ((uint64_t)LIMIT_OTLP_RESTART_MS << doubled);
}

static void start_exporter(struct master *master, struct generation *generation)
{
    struct exporter_child *exporter = &generation->exporter;
    struct log *log = &master->error_log.log;
    int ends[2] = {-1, -1};
    pid_t pid = -1;

    exporter->start_ms = 0;
    exporter->started_ms = master->clock.monotonic_ms;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0) {
        channel_refuse_descriptors(ends[0]);
        pid = fork();
    }
    if (pid == 0)
        become_exporter(master, generation, ends[1]);
    if (pid < 0) {
        log_write(log, LOG_ALERT, "starting the exporter of spans failed (%d: %s)", errno, strerror(errno));
        plan_restart(master, exporter);
        if (ends[0] >= 0)
            close(ends[0]);
    } else {
        exporter->pid = pid;
        exporter->channel_fd = ends[0];
        log_write(log, LOG_INFO, "exporter process %ld started", (long)pid);
    }
    if (ends[1] >= 0)
        close(ends[1]);
}

/* The exporter sends the spans that are left, and exits. */
static void end_exporter(struct master *master, struct exporter_child *exporter)
{
    close(exporter->channel_fd);
    exporter->channel_fd = -1;
    exporter->kill_ms = master->clock.monotonic_ms + LIMIT_STOP_MS;
}

void master_otlp_start(struct master *master, struct generation *generation)
{
    if (generation->configuration->otlp.zone)
        start_exporter(master, generation);
}

void master_otlp_check(struct master *master, struct generation *generation)
{
    struct exporter_child *exporter = &generation->exporter;

    if (exporter->kill_ms > 0 && master->clock.monotonic_ms >= exporter->kill_ms) {
        kill(exporter->pid, SIGKILL);
        exporter->kill_ms = UINT64_MAX;
    }
    if (exporter->start_ms > 0 && master->clock.monotonic_ms >= exporter->start_ms)
        start_exporter(master, generation);
}

int master_otlp_next_ms(const struct master *master, const struct generation *generation)
{
    const struct exporter_child *exporter = &generation->exporter;
    uint64_t due_ms = exporter->kill_ms > 0 ? exporter->kill_ms : exporter->start_ms;

    return due_ms == 0 ? -1 : master_wait_ms(master, due_ms);
}

void master_otlp_reopen(struct master *master, struct generation *generation)
{
    if (generation->exporter.channel_fd >= 0)
        end_exporter(master, &generation->exporter);
}

/* The spans that the exporter did not send before its time was over. */
static void count_rest(struct master *master, struct generation *generation)
{
    struct span_zone *zone = generation->configuration->otlp.zone;
    uint64_t left = zone ? span_zone_waiting(zone) : 0;

    if (left == 0)
        return;
    otlp_count(&master->shared->spans.dropped_failed, left);
    log_write(&master->error_log.log, LOG_WARN,
              "otlp: %llu spans were dropped: they were not sent before the server ended", (unsigned long long)left);
}

bool master_otlp_end(struct master *master, struct generation *generation)
{
    struct exporter_child *exporter = &generation->exporter;

    exporter->ending = true;
    exporter->start_ms = 0;
    if (exporter->channel_fd >= 0)
        end_exporter(master, exporter);
    if (exporter->pid > 0)
        return false;
    count_rest(master, generation);
    return true;
}

void master_otlp_close(struct generation *generation)
{
    span_zone_close(generation->configuration->otlp.zone);
    generation->configuration->otlp.zone = NULL;
}

static void exporter_exited(struct master *master, struct generation *generation, int status)
{
    struct exporter_child *exporter = &generation->exporter;
    bool asked = exporter->kill_ms > 0;

    if (exporter->channel_fd >= 0)
        close(exporter->channel_fd);
    exporter->channel_fd = -1;
    exporter->pid = 0;
    exporter->kill_ms = 0;
    if (asked && !exporter->ending)
        exporter->start_ms = master->clock.monotonic_ms;
    if (asked)
        return;
    if (u64_sub_sat(master->clock.monotonic_ms, exporter->started_ms) > STABLE_MS)
        exporter->failures = 0;
    plan_restart(master, exporter);
    log_write(&master->error_log.log, LOG_ALERT, "the exporter of spans exited %s %d; it starts again in %llu ms",
              WIFSIGNALED(status) ? "on signal" : "with code",
              WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
              (unsigned long long)(exporter->start_ms - master->clock.monotonic_ms));
}

bool master_otlp_exited(struct master *master, pid_t pid, int status)
{
    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        struct generation *generation = container_of(link, struct generation, link);

        if (generation->exporter.pid == pid) {
            exporter_exited(master, generation, status);
            return true;
        }
    }
    return false;
}
