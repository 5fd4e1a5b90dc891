/*
 * The batches of the access log. For a regular file, a helper thread writes a batch when it has 32 KiB, or when its
 * first line is as old as `flush` (default: one second), while the next batch fills. The loop writes to pipes,
 * terminals and sockets at the end of the iteration, by whole lines of at most PIPE_BUF bytes, so that the lines of
 * several workers do not mix. Lines that do not fit into a batch are dropped.
 */
#include "log/access_log.h"

#include "base/limits.h"
#include "base/write_all.h"
#include "log/log_selection.h"
#include "log/syslog.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BATCH       32768
#define STOP_EACH_MS     1000
#define RETRY_MS         20
#define REPORT_INTERVAL_MS 10000

struct batch {
    struct access_log *log;
    const struct access_log_target *target;
    int fd;          /* -1: none, or a syslog receiver */
    int datagram_fd; /* of a syslog receiver; -1: none */
    int replaced_fd; /* to be closed when the write in flight completes; -1: none */
    bool regular, socket, blocking;
    struct buffer lines;   /* being filled */
    struct buffer writing; /* of a regular file, while the helper thread writes them */
    struct op op;
    uint64_t due_ms;  /* latest time of the next write, or of the next try */
    uint64_t dropped; /* lines dropped since the last report in the error log */
    int error;        /* -errno of the failed write; 0: the batch was full */
};

struct access_log {
    struct loop *loop;
    struct log *error_log;
    uint64_t *dropped;       /* dropped lines of all batches */
    struct op timer;
    uint64_t quiet_until_ms; /* no log line about drops before this time */
    bool pending;            /* a batch holds lines */
    uint32_t *counters;      /* of log_selection_includes */
    unsigned count;
    struct batch batches[];
};

static uint64_t log_now_ms(const struct access_log *log)
{
    return log->loop->clock.monotonic_ms;
}

static void batch_set_descriptor(struct batch *batch, int fd)
{
    struct stat stat;

    batch->fd = batch->target->syslog ? -1 : fd;
    batch->datagram_fd = batch->target->syslog ? fd : -1;
    batch->regular = batch->socket = batch->blocking = false;
    if (batch->fd < 0 || fstat(fd, &stat) < 0)
        return;
    batch->regular = S_ISREG(stat.st_mode);
    batch->socket = S_ISSOCK(stat.st_mode);
    batch->blocking = !batch->regular && !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

static void count_dropped(struct batch *batch, uint64_t lines)
{
    batch->dropped += lines;
    *batch->log->dropped += lines;
}

/* False: the error log has lost the line (both logs may have one receiver). The next report includes its number. */
static bool report_dropped(const struct batch *batch)
{
    struct log *log = batch->log->error_log;
    uint64_t lost = log->lost;

    log_write(log, LOG_ERROR, "access log \"" STR_FMT "\": %llu lines dropped: %s", STR_ARG(batch->target->path),
              (unsigned long long)batch->dropped, batch->error ? strerror(-batch->error) : "the batch was full");
    return log->lost == lost;
}

static void log_dropped_lines(struct access_log *log)
{
    if (log_now_ms(log) < log->quiet_until_ms)
        return;
    for (unsigned i = 0; i < log->count; i++) {
        struct batch *batch = &log->batches[i];

        if (!batch->dropped)
            continue;
        log->quiet_until_ms = log_now_ms(log) + REPORT_INTERVAL_MS;
        if (report_dropped(batch)) {
            batch->dropped = 0;
            batch->error = 0;
        }
    }
}

static uint64_t count_lines(struct str text)
{
    uint64_t lines = 0;

    for (size_t i = 0; i < text.length; i++)
        lines += text.data[i] == '\n';
    return lines;
}

/* The next whole lines of at most PIPE_BUF bytes; a longer line is one piece. */
static struct str next_piece(struct str lines)
{
    ssize_t end;

    if (lines.length <= PIPE_BUF)
        return lines;
    end = str_rfind(str_slice(lines, 0, PIPE_BUF), '\n');
    if (end < 0)
        end = str_find(lines, '\n');
    return end < 0 ? lines : str_slice(lines, 0, (size_t)end + 1);
}

static ssize_t write_piece(const struct batch *batch, struct str piece)
{
    struct pollfd room = {.fd = batch->fd, .events = POLLOUT};
    ssize_t written;

    if (batch->blocking && !batch->socket && (poll(&room, 1, 0) != 1 || !(room.revents & POLLOUT)))
        return -EAGAIN;
    do {
        written = batch->socket ? send(batch->fd, piece.data, piece.length, MSG_DONTWAIT | MSG_NOSIGNAL)
                                : write(batch->fd, piece.data, piece.length);
    } while (written < 0 && errno == EINTR);
    if (written == 0)
        return -EAGAIN;
    return written < 0 ? -errno : written;
}

/* Writes to a pipe, terminal or socket as much as possible without waiting. */
static void batch_push(struct batch *batch)
{
    struct str rest = buffer_str(&batch->lines);
    ssize_t written = 0;

    while (rest.length && written >= 0) {
        written = write_piece(batch, next_piece(rest));
        if (written > 0)
            rest = str_skip(rest, (size_t)written);
    }
    if (written == -EAGAIN) {
        batch->due_ms = log_now_ms(batch->log) + RETRY_MS;
    } else if (written < 0) {
        batch->error = (int)written;
        count_dropped(batch, count_lines(rest));
        rest.length = 0;
    }
    buffer_consume(&batch->lines, batch->lines.length - rest.length);
}

/* Runs on a helper thread: uses only the descriptor and the `writing` buffer. */
static int write_lines(void *argument)
{
    const struct batch *batch = argument;

    return write_all(batch->fd, buffer_str(&batch->writing));
}

static void lines_written(struct op *op, int result)
{
    struct batch *batch = container_of(op, struct batch, op);

    if (result < 0) {
        batch->error = result;
        count_dropped(batch, count_lines(buffer_str(&batch->writing)));
    }
    batch->writing.length = 0;
    if (batch->replaced_fd >= 0) {
        close(batch->fd);
        batch_set_descriptor(batch, batch->replaced_fd);
        batch->replaced_fd = -1;
    }
}

static void batch_submit(struct batch *batch)
{
    struct buffer lines = batch->lines;

    if (!op_idle(&batch->op))
        return;
    batch->lines = batch->writing;
    batch->writing = lines;
    loop_offload(batch->log->loop, &batch->op, write_lines, batch);
}

static bool batch_due(const struct batch *batch)
{
    if (!batch->lines.length)
        return false;
    return log_now_ms(batch->log) >= batch->due_ms || (batch->regular && batch->lines.length >= FILE_BATCH);
}

void access_log_flush(struct access_log *log)
{
    uint64_t next = UINT64_MAX;

    if (!log->pending)
        return;
    for (unsigned i = 0; i < log->count; i++) {
        struct batch *batch = &log->batches[i];

        if (batch_due(batch)) {
            if (batch->regular)
                batch_submit(batch);
            else
                batch_push(batch);
        }
        if (batch->dropped && next > log->quiet_until_ms)
            next = log->quiet_until_ms;
        if (batch->lines.length && next > batch->due_ms)
            next = batch->due_ms;
    }
    log_dropped_lines(log);
    log->pending = next != UINT64_MAX;
    if (log->pending)
        loop_timer_move(log->loop, &log->timer, next > log_now_ms(log) ? next : log_now_ms(log) + RETRY_MS);
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
    struct access_log *log = calloc(1, sizeof(*log) + count * sizeof(struct batch));
    uint32_t *counters = calloc(selections + 1, sizeof(*counters));

    if (!log || !counters) {
        free(log);
        free(counters);
        return NULL;
    }
    log->loop = loop;
    log->error_log = error_log;
    log->dropped = dropped;
    log->count = count;
    log->counters = counters;
    log->timer.done = flush_timer_done;
    for (unsigned i = 0; i < log->count; i++) {
        struct batch *batch = &log->batches[i];

        batch->log = log;
        batch->target = targets[i];
        batch->op.done = lines_written;
        batch->replaced_fd = -1;
        buffer_init(&batch->lines, LIMIT_ACCESS_BATCH);
        buffer_init(&batch->writing, LIMIT_ACCESS_BATCH);
        batch_set_descriptor(batch, batch->target->fd);
    }
    return log;
}

static template_escape *const escapes[] = {template_escape_log, template_escape_json, NULL};

static struct str absent_value(enum log_escape escape)
{
    return escape == LOG_ESCAPE_DEFAULT ? STR("-") : STR("");
}

static int write_log_line(struct batch *batch, const struct template *template, enum log_escape escape,
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
static void send_line(struct batch *batch, const struct template *template, enum log_escape escape,
                      const void *subject, struct arena *arena)
{
    const struct syslog *syslog = batch->target->syslog;
    char room[SYSLOG_HEADER_SIZE];
    struct str header = syslog_header(syslog, syslog->severity, &batch->log->loop->clock, room);
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
    batch->log->pending = true;
    count_dropped(batch, 1);
}

static void add_line(struct access_log *log, const struct access_log_row *row, const struct template *template,
                     const void *subject, struct arena *arena)
{
    struct batch *batch = &log->batches[row->target->index];
    uint64_t due_ms;

    if (batch->fd < 0) {
        if (batch->datagram_fd >= 0)
            send_line(batch, template, row->format->escape, subject, arena);
        return;
    }
    due_ms = log_now_ms(log) + (batch->regular ? row->flush_ms : 0);
    if (!batch->lines.length || (batch->regular && due_ms < batch->due_ms))
        batch->due_ms = due_ms;
    log->pending = true;
    if (write_log_line(batch, template, row->format->escape, subject, arena) < 0)
        count_dropped(batch, 1);
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

static bool pending_add(struct access_log_pending *rest, const struct access_log_row *row, const void *subject,
                        struct arena *arena)
{
    const struct log_format *format = row->format;
    const struct template *condition = row->selection ? row->selection->condition : NULL;
    struct template *evaluated = template_finish(format->template, subject, arena, escapes[format->escape],
                                                 absent_value(format->escape));
    struct template *finished = condition ? template_finish(condition, subject, arena, NULL, STR("")) : NULL;

    rest->lines[rest->count].row = row;
    rest->lines[rest->count].template = evaluated;
    rest->lines[rest->count++].condition = finished;
    return evaluated && (finished || !condition);
}

int access_log_evaluate(const struct conf_rows *logs, const void *subject, struct arena *arena,
                        struct access_log_pending **out_pending)
{
    const struct access_log_row *rows = logs->items;
    struct access_log_pending *rest = calloc(1, sizeof(*rest) + logs->count * sizeof(rest->lines[0]));

    if (!rest)
        return -ENOMEM;
    for (size_t i = 0; i < logs->count; i++) {
        if (!rows[i].target)
            continue;
        if (!pending_add(rest, &rows[i], subject, arena)) {
            access_log_pending_free(rest);
            return -ENOMEM;
        }
    }
    *out_pending = rest;
    return 0;
}

void access_log_write_pending(struct access_log *log, const struct access_log_pending *rest, const void *subject,
                              struct arena *arena)
{
    for (size_t i = 0; log && i < rest->count; i++) {
        const struct access_log_row *row = rest->lines[i].row;

        if (row->selection && !is_selected(log, row->selection, rest->lines[i].condition, subject, arena))
            continue;
        add_line(log, row, rest->lines[i].template, subject, arena);
    }
}

void access_log_pending_free(struct access_log_pending *rest)
{
    for (size_t i = 0; rest && i < rest->count; i++) {
        free(rest->lines[i].template);
        free(rest->lines[i].condition);
    }
    free(rest);
}

void access_log_replace(struct access_log *log, unsigned index, int fd)
{
    struct batch *batch;

    if (index >= log->count) {
        close(fd);
        return;
    }
    batch = &log->batches[index];
    if (batch->regular && batch->lines.length)
        batch_submit(batch); /* earlier lines belong to the old file */
    if (!op_idle(&batch->op)) {
        if (batch->replaced_fd >= 0)
            close(batch->replaced_fd);
        batch->replaced_fd = fd;
        return;
    }
    if (batch->fd >= 0)
        close(batch->fd);
    if (batch->datagram_fd >= 0)
        close(batch->datagram_fd);
    batch_set_descriptor(batch, fd);
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
    for (unsigned i = 0; i < log->count; i++) {
        struct batch *batch = &log->batches[i];

        if (batch->lines.length && batch->fd >= 0)
            batch_push(batch);
        count_dropped(batch, count_lines(buffer_str(&batch->lines)));
        buffer_finish(&batch->lines);
        buffer_finish(&batch->writing);
    }
    log_dropped_lines(log);
    free(log->counters);
    free(log);
}
