/*
 * Formats the lines of the error log. The sink writes them; a line longer than LIMIT_LOG_LINE is truncated and ends
 * with a newline.
 */
#include "base/log.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

const char *const log_level_names[] = {
    [LOG_EMERG] = "emerg", [LOG_ALERT] = "alert",   [LOG_CRIT] = "crit", [LOG_ERROR] = "error",
    [LOG_WARN] = "warn",   [LOG_NOTICE] = "notice", [LOG_INFO] = "info", [LOG_DEBUG] = "debug",
    [LOG_DEBUG + 1] = NULL,
};

#define LEVEL_COUNT (LOG_DEBUG + 1)

bool log_limit_allows(struct log_limit *limit, uint64_t now_ms)
{
    if (limit->written_ms > 0 && u64_sub_sat(now_ms, limit->written_ms) < LIMIT_LOG_INTERVAL_MS)
        return false;
    limit->written_ms = now_ms;
    return true;
}

int log_level_parse(struct str name, enum log_level *out_level)
{
    for (size_t i = 0; i < LEVEL_COUNT; i++) {
        if (str_equal(name, str_from(log_level_names[i]))) {
            *out_level = (enum log_level)i;
            return 0;
        }
    }
    return -EINVAL;
}

const char *log_level_name(enum log_level level)
{
    return (size_t)level < LEVEL_COUNT ? log_level_names[level] : "?";
}

static const struct {
    const char *name;       /* in structured logs */
    const char *before;     /* in text */
    const char *after;
    size_t offset;
} fields[LOG_FIELD_COUNT] = {
    {"client", ", client: ", "", offsetof(struct log_fields, client)},
    {"server", ", server: ", "", offsetof(struct log_fields, server)},
    {"request", ", request: \"", "\"", offsetof(struct log_fields, request)},
    {"host", ", host: \"", "\"", offsetof(struct log_fields, host)},
    {"request_id", ", id: ", "", offsetof(struct log_fields, request_id)},
    {"upstream", ", upstream: \"", "\"", offsetof(struct log_fields, upstream)},
};

struct str log_field(const struct log_fields *values, unsigned index, const char **out_name)
{
    struct str value;

    *out_name = fields[index].name;
    memcpy(&value, (const char *)values + fields[index].offset, sizeof(value));
    return value;
}

static size_t write_line_head(char *line, size_t size, const struct log_record *record)
{
    struct tm local = {0};
    time_t seconds = (time_t)clock_wall_s(record->clock);
    int length;

    localtime_r(&seconds, &local);
    length = snprintf(line, size, "%04d/%02d/%02d %02d:%02d:%02d [%s] %ld#0: ", local.tm_year + 1900,
                      local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
                      log_level_name(record->level), (long)getpid());
    return length < 0 ? 0 : (size_t)length;
}

/* Copies text with control bytes as \xNN, so that input cannot forge lines or control a terminal. Returns the end. */
static size_t write_text(char *line, size_t at, size_t size, struct str text)
{
    static const char hex[] = "0123456789abcdef";

    for (size_t i = 0; i < text.length; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        bool control = byte < 0x20 || byte == 0x7f;

        if (at + (control ? 4 : 1) > size)
            break;
        if (!control) {
            line[at++] = (char)byte;
            continue;
        }
        line[at++] = '\\';
        line[at++] = 'x';
        line[at++] = hex[byte >> 4];
        line[at++] = hex[byte & 15];
    }
    return at;
}

static size_t write_fields(char *line, size_t at, size_t size, const struct log_fields *values)
{
    for (unsigned i = 0; i < LOG_FIELD_COUNT; i++) {
        const char *name;
        struct str value = log_field(values, i, &name);

        if (!value.data)
            continue;
        at = write_text(line, at, size, str_from(fields[i].before));
        at = write_text(line, at, size, value);
        at = write_text(line, at, size, str_from(fields[i].after));
    }
    return at;
}

struct str log_record_text(const struct log_record *record, bool bare, char *line)
{
    size_t end = bare ? 0 : write_line_head(line, LIMIT_LOG_LINE - 1, record);

    if (record->fields && record->fields->connection)
        end += (size_t)snprintf(line + end, LIMIT_LOG_LINE - 1 - end, "*%" PRIu64 " ", record->fields->connection);
    end = write_text(line, end, LIMIT_LOG_LINE - 1, record->message);
    if (record->fields)
        end = write_fields(line, end, LIMIT_LOG_LINE - 1, record->fields);
    if (!bare)
        line[end++] = '\n';
    return str_of(line, end);
}

PRINTF_LIKE(4, 0)
static void write_record(struct log *log, enum log_level level, const struct log_fields *values, const char *format,
                         va_list args)
{
    struct log_record record = {.level = level, .clock = log->clock, .fields = values};
    char line[LIMIT_LOG_LINE];
    char text[LIMIT_LOG_LINE];
    struct clock now;
    int length = vsnprintf(text, sizeof(text), format, args);

    if (length < 0)
        return;
    record.message = str_of(text, (size_t)length >= sizeof(text) ? sizeof(text) - 1 : (size_t)length);
    if (!record.clock) {
        clock_read(&now);
        record.clock = &now;
    }
    if (log->write)
        log->write(log->owner, &record);
    else
        log->sink(log->owner, level, log_record_text(&record, false, line));
}

static bool is_written(const struct log *log, enum log_level level)
{
    return log && (log->sink || log->write) && level <= log->level;
}

void log_vwrite_fields(struct log *log, enum log_level level, const struct log_fields *values, const char *format,
                       va_list args)
{
    if (is_written(log, level))
        write_record(log, level, values, format, args);
}

void log_vwrite(struct log *log, enum log_level level, const char *format, va_list args)
{
    log_vwrite_fields(log, level, NULL, format, args);
}

void log_write(struct log *log, enum log_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_vwrite(log, level, format, args);
    va_end(args);
}

void log_write_fields(struct log *log, enum log_level level, const struct log_fields *values, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_vwrite_fields(log, level, values, format, args);
    va_end(args);
}
