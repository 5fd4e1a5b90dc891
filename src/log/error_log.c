/*
 * The sink of the error log. It counts the lines that it cannot write, and reports their number with the next line that
 * it can write.
 */
#include "log/error_log.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "log/log_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static void read_clock(const struct error_log *error_log, struct clock *out_clock)
{
    if (error_log->log.clock)
        *out_clock = *error_log->log.clock;
    else
        clock_read(out_clock);
}

/* The text of a line; without time, level and process if `bare`. */
static struct str line_text(struct str line, bool bare)
{
    ssize_t at = bare ? str_search(line, STR("#0: ")) : -1;

    if (at >= 0)
        line = str_skip(line, (size_t)at + 4);
    return str_slice(line, 0, line.length - 1);
}

static bool send_line(const struct error_log *error_log, enum log_level level, struct str line)
{
    char datagram[SYSLOG_HEADER_SIZE + LIMIT_LOG_LINE];
    struct clock now;
    struct str header, text = line_text(line, error_log->syslog.rfc5424);

    read_clock(error_log, &now);
    header = syslog_header(&error_log->syslog, level, &now, datagram);
    memcpy(datagram + header.length, text.data, text.length);
    return syslog_send(error_log->fd, str_of(datagram, header.length + text.length)) == 0;
}

static bool write_bytes(const struct error_log *error_log, enum log_level level, struct str line)
{
    return error_log->is_syslog ? send_line(error_log, level, line) : log_file_write(error_log->fd, line);
}

static void log_dropped(struct error_log *error_log)
{
    char line[128];
    struct clock now;
    int length =
        snprintf(line, sizeof(line), "error log: %" PRIu64 " lines were lost, because the log was not read in time\n",
                 u64_sub_sat(error_log->dropped, error_log->dropped_reported));

    read_clock(error_log, &now);
    if (error_log->is_syslog && !log_limit_allows(&error_log->report_limit, now.monotonic_ms))
        return;
    if (write_bytes(error_log, LOG_ERROR, str_of(line, (size_t)length)))
        error_log->dropped_reported = error_log->dropped;
}

/* Prints a line without time, level and number, for the terminal at startup. */
static void echo_line(enum log_level level, struct str line)
{
    error_log_print(level, STR_FMT, STR_ARG(str_trim(line_text(line, true))));
}

static void write_error_line(void *owner, enum log_level level, struct str line)
{
    struct error_log *error_log = owner;

    if (error_log->dropped > error_log->dropped_reported)
        log_dropped(error_log);
    if (!write_bytes(error_log, level, line))
        error_log->dropped++;
    if (error_log->echo && !error_log->is_stderr && level == LOG_EMERG)
        echo_line(level, line);
}

int error_log_open(struct error_log *error_log, struct str path, enum log_level level)
{
    int fd = log_file_open(path);

    *error_log = (struct error_log){.fd = fd, .is_stderr = fd < 0 || str_equal(path, STR("stderr"))};
    error_log->log = (struct log){.level = level, .sink = write_error_line, .owner = error_log};
    if (fd >= 0)
        return 0;
    error_log->fd = log_file_open(STR("stderr"));
    return fd;
}

void error_log_replace(struct error_log *error_log, int fd)
{
    if (error_log->fd > STDERR_FILENO)
        close(error_log->fd);
    error_log->fd = fd;
}

void error_log_use(struct error_log *error_log, int fd, const struct syslog *syslog)
{
    error_log_replace(error_log, fd);
    error_log->unreachable = false;
    error_log->is_syslog = syslog != NULL;
    if (syslog)
        error_log->syslog = *syslog;
}

void error_log_finish(struct error_log *error_log)
{
    if (error_log->fd > STDERR_FILENO)
        close(error_log->fd);
    error_log->fd = -1;
}

void error_log_print(enum log_level level, const char *format, ...)
{
    char line[LIMIT_LOG_LINE];
    va_list args;
    int head = snprintf(line, sizeof(line), "sluice: [%s] ", log_level_name(level));
    int length;

    va_start(args, format);
    length = vsnprintf(line + head, sizeof(line) - (size_t)head - 1, format, args);
    va_end(args);
    if (length < 0)
        return;
    length += head;
    if ((size_t)length > sizeof(line) - 2)
        length = sizeof(line) - 2;
    line[length++] = '\n';
    /* This write may block: the server is starting. */
    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        return;
}
