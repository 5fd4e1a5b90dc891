/*
 * The journal's native protocol has lines NAME=value; a value with a line break follows NAME, a newline and its length
 * in 64 bits, little-endian.
 */
#include "log/log_record.h"

#include "base/limits.h"
#include "conf/template.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

void log_time_print(const struct clock *clock, char out[LOG_TIME_SIZE])
{
    time_t seconds = (time_t)clock_wall_s(clock);
    struct tm local = {0};
    unsigned offset_min;

    localtime_r(&seconds, &local);
    offset_min = (unsigned)(labs(local.tm_gmtoff) / 60) % 1440;
    snprintf(out, LOG_TIME_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%03d%c%02u:%02u", local.tm_year + 1900,
             local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec, (int)(clock->wall_ms % 1000),
             local.tm_gmtoff < 0 ? '-' : '+', offset_min / 60, offset_min % 60);
}

static int append_string(struct buffer *out, const char *name, struct str value)
{
    int error = buffer_printf(out, ",\"%s\":\"", name);

    if (error == 0)
        error = template_escape_json(out, value);
    return error < 0 ? error : buffer_append(out, STR("\""));
}

int log_record_json(const struct log_record *record, struct buffer *out)
{
    char time[LOG_TIME_SIZE];
    int error;

    log_time_print(record->clock, time);
    error = buffer_printf(out, "{\"time\":\"%s\",\"level\":\"%s\",\"pid\":%ld", time, log_level_name(record->level),
                          (long)getpid());
    if (error == 0 && record->fields && record->fields->connection)
        error = buffer_printf(out, ",\"connection\":%" PRIu64, record->fields->connection);
    if (error == 0)
        error = append_string(out, "message", record->message);
    for (unsigned i = 0; record->fields && i < LOG_FIELD_COUNT && error == 0; i++) {
        const char *name;
        struct str value = log_field(record->fields, i, &name);

        if (value.data)
            error = append_string(out, name, str_slice(value, 0, LIMIT_LOG_FIELD));
    }
    return error < 0 ? error : buffer_append(out, STR("}"));
}

static int append_journal_value(struct buffer *out, struct str value)
{
    char length[8];
    int error;

    if (str_find(value, '\n') < 0) {
        error = buffer_append(out, STR("="));
    } else {
        for (unsigned i = 0; i < sizeof(length); i++)
            length[i] = (char)((uint64_t)value.length >> (8 * i));
        error = buffer_append(out, STR("\n"));
        if (error == 0)
            error = buffer_append(out, str_of(length, sizeof(length)));
    }
    if (error == 0)
        error = buffer_append(out, value);
    return error < 0 ? error : buffer_append(out, STR("\n"));
}

static int append_journal_name(struct buffer *out, const char *name)
{
    size_t at = out->length + STR("SLUICE_").length;
    int error = buffer_printf(out, "SLUICE_%s", name);

    for (; error == 0 && at < out->length; at++) {
        if (out->data[at] >= 'a' && out->data[at] <= 'z')
            out->data[at] = (char)(out->data[at] - 'a' + 'A');
    }
    return error;
}

int log_record_journal(const struct log_record *record, struct buffer *out)
{
    int error = 0;

    if (record->fields && record->fields->connection)
        error = buffer_printf(out, "SLUICE_CONNECTION=%" PRIu64 "\n", record->fields->connection);
    for (unsigned i = 0; record->fields && i < LOG_FIELD_COUNT && error == 0; i++) {
        const char *name;
        struct str value = log_field(record->fields, i, &name);

        if (!value.data)
            continue;
        error = append_journal_name(out, name);
        if (error == 0)
            error = append_journal_value(out, str_slice(value, 0, LIMIT_LOG_FIELD));
    }
    return error;
}
