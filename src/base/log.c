/*
 * Formats the lines of the error log. The sink writes them; a line longer than LIMIT_LOG_LINE is cut and still ends
 * with a newline.
 */
#include "base/log.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = {
    [LOG_EMERG] = "emerg", [LOG_ALERT] = "alert",   [LOG_CRIT] = "crit", [LOG_ERROR] = "error",
    [LOG_WARN] = "warn",   [LOG_NOTICE] = "notice", [LOG_INFO] = "info", [LOG_DEBUG] = "debug",
};

#define LEVEL_COUNT (sizeof(level_names) / sizeof(level_names[0]))

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
        if (str_equal(name, str_from(level_names[i]))) {
            *out_level = (enum log_level)i;
            return 0;
        }
    }
    return -EINVAL;
}

const char *log_level_name(enum log_level level)
{
    return (size_t)level < LEVEL_COUNT ? level_names[level] : "?";
}

static size_t write_line_head(char *line, size_t size, const struct log *log, enum log_level level)
{
    struct clock now;
    struct tm local = {0};
    time_t seconds;
    int length;

    if (log->clock)
        now = *log->clock;
    else
        clock_read(&now);
    seconds = (time_t)clock_wall_s(&now);
    localtime_r(&seconds, &local);
    length = snprintf(line, size, "%04d/%02d/%02d %02d:%02d:%02d [%s] %ld#0: ", local.tm_year + 1900,
                      local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
                      log_level_name(level), (long)getpid());
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

void log_vwrite(struct log *log, enum log_level level, const char *format, va_list args)
{
    char line[LIMIT_LOG_LINE];
    char text[LIMIT_LOG_LINE];
    size_t end;
    int length;

    if (!log || !log->sink || level > log->level)
        return;
    length = vsnprintf(text, sizeof(text), format, args);
    if (length < 0)
        return;
    if ((size_t)length >= sizeof(text))
        length = sizeof(text) - 1;
    end = write_line_head(line, sizeof(line) - 1, log, level);
    end = write_text(line, end, sizeof(line) - 1, str_of(text, (size_t)length));
    line[end++] = '\n';
    log->sink(log->owner, level, str_of(line, end));
}

void log_write(struct log *log, enum log_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_vwrite(log, level, format, args);
    va_end(args);
}
