/*
 * The sink of the error log. It counts the lines that it cannot write, and reports their number with the next line that
 * it can write.
 */
#include "log/error_log.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "log/log_file.h"
#include "log/log_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* Appends the text of a datagram. */
static int append_text(const struct error_log *error_log, const struct log_record *record, struct buffer *out)
{
    char line[LIMIT_LOG_LINE];
    struct str text;

    if (error_log->is_json)
        return log_record_json(record, out);
    text = log_record_text(record, error_log->syslog.form != SYSLOG_RFC3164, line);
    return buffer_append(out, str_ends(text, STR("\n")) ? str_slice(text, 0, text.length - 1) : text);
}

static int append_datagram(const struct error_log *error_log, const struct log_record *record, struct buffer *out)
{
    char header[SYSLOG_HEADER_SIZE];
    size_t text_at = 0;
    int error = error_log->syslog.form == SYSLOG_JOURNAL ? log_record_journal(record, out) : 0;

    if (error == 0)
        error = buffer_append(out, syslog_header(&error_log->syslog, record->level, record->clock, header));
    if (error == 0) {
        text_at = out->length;
        error = append_text(error_log, record, out);
    }
    return error < 0 ? error : syslog_finish(&error_log->syslog, out, text_at);
}

/* Formats on the stack, so that lines are also written when no memory is available. */
static bool write_structured(const struct error_log *error_log, const struct log_record *record)
{
    char room[LIMIT_LOG_RECORD];
    struct buffer line = {.data = room, .capacity = sizeof(room), .max = sizeof(room)};

    if (error_log->is_syslog)
        return append_datagram(error_log, record, &line) == 0 && syslog_send(error_log->fd, buffer_str(&line)) == 0;
    return log_record_json(record, &line) == 0 && buffer_append(&line, STR("\n")) == 0 &&
           log_file_write(error_log->fd, buffer_str(&line));
}

static bool write_line(const struct error_log *error_log, const struct log_record *record)
{
    char line[LIMIT_LOG_LINE];

    if (error_log->is_syslog || error_log->is_json)
        return write_structured(error_log, record);
    return log_file_write(error_log->fd, log_record_text(record, false, line));
}

static void report_lost_lines(struct error_log *error_log, const struct clock *clock)
{
    struct log_record record = {.level = LOG_ERROR, .clock = clock};
    char text[128];
    int length =
        snprintf(text, sizeof(text), "error log: %" PRIu64 " lines were lost, because the log could not be written",
                 u64_sub_sat(error_log->log.lost, error_log->lost_reported));

    record.message = str_of(text, (size_t)length);
    if (error_log->is_syslog && !log_limit_allows(&error_log->report_limit, clock->monotonic_ms))
        return;
    if (write_line(error_log, &record))
        error_log->lost_reported = error_log->log.lost;
}

/* Prints a line without time, level and number, for the terminal at startup. */
static void echo_line(const struct log_record *record)
{
    char line[LIMIT_LOG_LINE];

    error_log_print(record->level, STR_FMT, STR_ARG(str_trim(log_record_text(record, true, line))));
}

static void write_error_line(void *owner, const struct log_record *record)
{
    struct error_log *error_log = owner;

    if (error_log->log.lost > error_log->lost_reported)
        report_lost_lines(error_log, record->clock);
    if (!write_line(error_log, record))
        error_log->log.lost++;
    if (error_log->echo && !error_log->is_stderr && record->level == LOG_EMERG)
        echo_line(record);
}

int error_log_open(struct error_log *error_log, struct str path, enum log_level level)
{
    int fd = log_file_open(path);

    *error_log = (struct error_log){.fd = fd, .is_stderr = fd < 0 || str_equal(path, STR("stderr"))};
    error_log->log = (struct log){.level = level, .write = write_error_line, .owner = error_log};
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

void error_log_set_destination(struct error_log *error_log, int fd, const struct syslog *syslog,
                               enum error_log_format format)
{
    error_log_replace(error_log, fd);
    error_log->unreachable = false;
    error_log->is_syslog = syslog != NULL;
    error_log->is_json = format == ERROR_LOG_JSON;
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
