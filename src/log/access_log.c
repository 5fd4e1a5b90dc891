/*
 * Lines of the access log: which rows get one, formatting, and the batches of all targets (log_batch.c).
 */
#include "log/access_log.h"

#include "log/log_batch.h"
#include "log/log_selection.h"
#include "log/syslog.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define STOP_EACH_MS     1000
#define REPORT_INTERVAL_MS 10000

struct access_log {
    struct loop *loop;
    struct log *error_log;
    struct op timer;
    uint64_t quiet_until_ms; /* no log line about drops before this time */
    bool pending;            /* a batch holds lines */
    uint32_t *counters;      /* of log_selection_includes */
    unsigned count;
    struct log_batch batches[];
};

static uint64_t log_now_ms(const struct access_log *log)
{
    return log->loop->clock.monotonic_ms;
}

static void log_dropped_lines(struct access_log *log)
{
    if (log_now_ms(log) < log->quiet_until_ms)
        return;
    for (unsigned i = 0; i < log->count; i++) {
        if (log_batch_report_dropped(&log->batches[i], log->error_log))
            log->quiet_until_ms = log_now_ms(log) + REPORT_INTERVAL_MS;
    }
}

void access_log_flush(struct access_log *log)
{
    uint64_t next = UINT64_MAX;

    if (!log->pending)
        return;
    for (unsigned i = 0; i < log->count; i++) {
        struct log_batch *batch = &log->batches[i];

        log_batch_flush(batch);
        if (batch->dropped && next > log->quiet_until_ms)
            next = log->quiet_until_ms;
        if (batch->lines.length && next > batch->due_ms)
            next = batch->due_ms;
    }
    log_dropped_lines(log);
    log->pending = next != UINT64_MAX;
    if (log->pending)
        loop_timer_move(log->loop, &log->timer, next > log_now_ms(log) ? next : log_now_ms(log) + LOG_BATCH_RETRY_MS);
}

static void flush_timer_done(struct op *op, int result)
{
    struct access_log *log = container_of(op, struct access_log, timer);

    if (result == 0)
        access_log_flush(log);
}

struct access_log *access_log_create(struct loop *loop, struct log *error_log, uint64_t *dropped,
                                     struct access_log_target *const *targets, unsigned count,
                                     unsigned selections)
{
    struct access_log *log = calloc(1, sizeof(*log) + count * sizeof(struct log_batch));
    uint32_t *counters = calloc(selections + 1, sizeof(*counters));

    if (!log || !counters) {
        free(log);
        free(counters);
        return NULL;
    }
    log->loop = loop;
    log->error_log = error_log;
    log->count = count;
    log->counters = counters;
    log->timer.done = flush_timer_done;
    for (unsigned i = 0; i < log->count; i++)
        log_batch_init(&log->batches[i], loop, dropped, targets[i]);
    return log;
}

static template_escape *const escapes[] = {template_escape_log, template_escape_json, NULL};

static struct str absent_value(enum log_escape escape)
{
    return escape == LOG_ESCAPE_DEFAULT ? STR("-") : STR("");
}

static int write_log_line(struct log_batch *batch, const struct template *template, enum log_escape escape,
                          const void *subject, struct arena *arena)
{
    size_t before = batch->lines.length;
    int error = template_write(template, subject, arena, &batch->lines, escapes[escape], absent_value(escape));

    if (error == 0)
        error = buffer_append(&batch->lines, STR("\n"));
    if (error < 0)
        batch->lines.length = before;
    return error;
}

/* Sends one datagram, without a newline. */
static void send_line(struct access_log *log, struct log_batch *batch, const struct template *template,
                      enum log_escape escape, const void *subject, struct arena *arena)
{
    const struct syslog *syslog = batch->target->syslog;
    char room[SYSLOG_HEADER_SIZE];
    struct str header = syslog_header(syslog, syslog->severity, &log->loop->clock, room);
    int error = buffer_append(&batch->lines, header);

    if (error == 0)
        error = template_write(template, subject, arena, &batch->lines, escapes[escape], absent_value(escape));
    if (error == 0)
        error = syslog_finish(syslog, &batch->lines, header.length);
    if (error == 0)
        error = syslog_send(batch->datagram_fd, buffer_str(&batch->lines));
    batch->lines.length = 0;
    if (error == 0)
        return;
    batch->error = error;
    log->pending = true;
    log_batch_count_dropped(batch, 1);
}

static void add_line(struct access_log *log, const struct access_log_row *row, const struct template *template,
                     const void *subject, struct arena *arena)
{
    struct log_batch *batch = &log->batches[row->target->index];
    uint64_t due_ms;

    if (batch->fd < 0) {
        if (batch->datagram_fd >= 0)
            send_line(log, batch, template, row->format->escape, subject, arena);
        return;
    }
    due_ms = log_now_ms(log) + (batch->regular ? row->flush_ms : 0);
    if (!batch->lines.length || (batch->regular && due_ms < batch->due_ms))
        batch->due_ms = due_ms;
    log->pending = true;
    if (write_log_line(batch, template, row->format->escape, subject, arena) < 0)
        log_batch_count_dropped(batch, 1);
}

static bool is_selected(struct access_log *log, const struct log_selection *selection,
                        const struct template *condition, const void *subject, struct arena *arena)
{
    return log_selection_includes(selection, condition, &log->counters[selection->index], subject, arena);
}

void access_log_lines(struct access_log *log, const struct conf_rows *logs, const void *subject,
                      struct arena *arena)
{
    const struct access_log_row *rows = logs->items;

    for (size_t i = 0; log && i < logs->count; i++) {
        const struct log_selection *selection = rows[i].selection;

        if (selection && !is_selected(log, selection, selection->condition, subject, arena))
            continue;
        if (rows[i].target)
            add_line(log, &rows[i], rows[i].format->template, subject, arena);
    }
}

struct access_log_pending {
    size_t count;
    struct {
        const struct access_log_row *row;
        struct template *template, *condition; /* owned; the second may be NULL */
    } lines[];
};

static bool pending_add(struct access_log_pending *pending, const struct access_log_row *row, const void *subject,
                        struct arena *arena)
{
    const struct log_format *format = row->format;
    const struct template *condition = row->selection ? row->selection->condition : NULL;
    struct template *evaluated = template_finish(format->template, subject, arena, escapes[format->escape],
                                                 absent_value(format->escape));
    struct template *finished = condition ? template_finish(condition, subject, arena, NULL, STR("")) : NULL;

    pending->lines[pending->count].row = row;
    pending->lines[pending->count].template = evaluated;
    pending->lines[pending->count++].condition = finished;
    return evaluated && (finished || !condition);
}

int access_log_evaluate(const struct conf_rows *logs, const void *subject, struct arena *arena,
                        struct access_log_pending **out_pending)
{
    const struct access_log_row *rows = logs->items;
    struct access_log_pending *pending = calloc(1, sizeof(*pending) + logs->count * sizeof(pending->lines[0]));

    if (!pending)
        return -ENOMEM;
    for (size_t i = 0; i < logs->count; i++) {
        if (!rows[i].target)
            continue;
        if (!pending_add(pending, &rows[i], subject, arena)) {
            access_log_pending_free(pending);
            return -ENOMEM;
        }
    }
    *out_pending = pending;
    return 0;
}

void access_log_write_pending(struct access_log *log, const struct access_log_pending *pending, const void *subject,
                              struct arena *arena)
{
    for (size_t i = 0; log && i < pending->count; i++) {
        const struct access_log_row *row = pending->lines[i].row;

        if (row->selection && !is_selected(log, row->selection, pending->lines[i].condition, subject, arena))
            continue;
        add_line(log, row, pending->lines[i].template, subject, arena);
    }
}

void access_log_pending_free(struct access_log_pending *pending)
{
    for (size_t i = 0; pending && i < pending->count; i++) {
        free(pending->lines[i].template);
        free(pending->lines[i].condition);
    }
    free(pending);
}

void access_log_replace(struct access_log *log, unsigned index, int fd)
{
    if (index < log->count)
        log_batch_replace(&log->batches[index], fd);
    else
        close(fd);
}

static bool is_busy(const struct access_log *log)
{
    for (unsigned i = 0; i < log->count; i++) {
        if (!op_idle(&log->batches[i].op))
            return true;
    }
    return !op_idle(&log->timer);
}

void access_log_destroy(struct access_log *log)
{
    if (!log)
        return;
    loop_cancel(log->loop, &log->timer);
    while (is_busy(log)) {
        if (loop_run_iteration(log->loop, log_now_ms(log) + STOP_EACH_MS) < 0)
            break;
    }
    log->quiet_until_ms = 0;
    for (unsigned i = 0; i < log->count; i++)
        log_batch_finish(&log->batches[i]);
    log_dropped_lines(log);
    free(log->counters);
    free(log);
}
