/*
 * A helper thread writes the batch of a regular file when it has 32 KiB, or when its first line is as old as `flush`
 * (default: one second), while the next batch fills. The loop writes to pipes, terminals and sockets at the end of the
 * iteration, by whole lines of at most PIPE_BUF bytes, so that the lines of several workers do not mix. Lines that do
 * not fit into a batch are dropped.
 */
#include "log/log_batch.h"

#include "base/limits.h"
#include "base/write_all.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BATCH 32768

static uint64_t batch_now_ms(const struct log_batch *batch)
{
    return batch->loop->clock.monotonic_ms;
}

static void batch_set_descriptor(struct log_batch *batch, int fd)
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

static ssize_t write_piece(const struct log_batch *batch, struct str piece)
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

void log_batch_count_dropped(struct log_batch *batch, uint64_t lines)
{
    batch->dropped += lines;
    *batch->all_dropped += lines;
}

/* If the error log has lost the line (both logs may have one receiver), the next report includes its number. */
bool log_batch_report_dropped(struct log_batch *batch, struct log *error_log)
{
    uint64_t lost = error_log->lost;

    if (!batch->dropped)
        return false;
    log_write(error_log, LOG_ERROR, "access log \"" STR_FMT "\": %llu lines dropped: %s", STR_ARG(batch->target->path),
              (unsigned long long)batch->dropped, batch->error ? strerror(-batch->error) : "the batch was full");
    if (error_log->lost == lost) {
        batch->dropped = 0;
        batch->error = 0;
    }
    return true;
}

/* Writes to a pipe, terminal or socket as much as possible without waiting. */
static void batch_push(struct log_batch *batch)
{
    struct str rest = buffer_str(&batch->lines);
    ssize_t written = 0;

    while (rest.length && written >= 0) {
        written = write_piece(batch, next_piece(rest));
        if (written > 0)
            rest = str_skip(rest, (size_t)written);
    }
    if (written == -EAGAIN) {
        batch->due_ms = batch_now_ms(batch) + LOG_BATCH_RETRY_MS;
    } else if (written < 0) {
        batch->error = (int)written;
        log_batch_count_dropped(batch, count_lines(rest));
        rest.length = 0;
    }
    buffer_consume(&batch->lines, batch->lines.length - rest.length);
}

/* Runs on a helper thread: uses only the descriptor and the `writing` buffer. */
static int write_lines(void *argument)
{
    const struct log_batch *batch = argument;

    return write_all(batch->fd, buffer_str(&batch->writing));
}

static void lines_written(struct op *op, int result)
{
    struct log_batch *batch = container_of(op, struct log_batch, op);

    if (result < 0) {
        batch->error = result;
        log_batch_count_dropped(batch, count_lines(buffer_str(&batch->writing)));
    }
    batch->writing.length = 0;
    if (batch->replaced_fd >= 0) {
        close(batch->fd);
        batch_set_descriptor(batch, batch->replaced_fd);
        batch->replaced_fd = -1;
    }
}

static void batch_submit(struct log_batch *batch)
{
    struct buffer lines = batch->lines;

    if (!op_idle(&batch->op))
        return;
    batch->lines = batch->writing;
    batch->writing = lines;
    loop_offload(batch->loop, &batch->op, write_lines, batch);
}

static bool batch_due(const struct log_batch *batch)
{
    if (!batch->lines.length)
        return false;
    return batch_now_ms(batch) >= batch->due_ms || (batch->regular && batch->lines.length >= FILE_BATCH);
}

void log_batch_flush(struct log_batch *batch)
{
    if (!batch_due(batch))
        return;
    if (batch->regular)
        batch_submit(batch);
    else
        batch_push(batch);
}

void log_batch_init(struct log_batch *batch, struct loop *loop, uint64_t *all_dropped,
                    const struct access_log_target *target)
{
    batch->loop = loop;
    batch->all_dropped = all_dropped;
    batch->target = target;
    batch->op.done = lines_written;
    batch->replaced_fd = -1;
    buffer_init(&batch->lines, LIMIT_ACCESS_BATCH);
    buffer_init(&batch->writing, LIMIT_ACCESS_BATCH);
    batch_set_descriptor(batch, target->fd);
}

void log_batch_replace(struct log_batch *batch, int fd)
{
    if (batch->regular && batch->lines.length)
        batch_submit(batch); /* unless a write is in flight, these lines go to the old file */
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

void log_batch_finish(struct log_batch *batch)
{
    if (batch->lines.length && batch->fd >= 0)
        batch_push(batch);
    log_batch_count_dropped(batch, count_lines(buffer_str(&batch->lines)));
    buffer_finish(&batch->lines);
    buffer_finish(&batch->writing);
}
