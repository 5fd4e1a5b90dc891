/*
 * The error log: levels and line format. log.c formats a line, and the sink of the log's owner writes it; base/ uses
 * no descriptor.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/clock.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdbool.h>

enum log_level { LOG_EMERG, LOG_ALERT, LOG_CRIT, LOG_ERROR, LOG_WARN, LOG_NOTICE, LOG_INFO, LOG_DEBUG };

/* The subject of a line. A field whose data is NULL is absent. */
struct log_fields {
    uint64_t connection;            /* number; 0: none */
    struct str client, server, request, host, request_id, upstream;
};

/* One line before it is formatted; valid during the call. */
struct log_record {
    enum log_level level;
    const struct clock *clock;
    struct str message;                 /* any bytes: it may contain input */
    const struct log_fields *fields;    /* NULL: none */
};

struct log {
    enum log_level level;           /* lines above it are dropped before formatting */
    const struct clock *clock;      /* not owned; NULL: the log reads the clock itself */
    /*
     * Writes one line, which includes its newline; must not block or log. Counts a line that it cannot write in
     * `lost`. `owner` belongs to the sink.
     */
    void (*sink)(void *owner, enum log_level level, struct str line);
    /* The same for a record that is not formatted; NULL: `sink` is called. */
    void (*write)(void *owner, const struct log_record *record);
    void *owner;
    uint64_t lost;                  /* lines that were not written */
};

/*
 * Logs one line in nginx's format: "2026/11/20 16:05:01 [warn] 123#0: text\n". Control bytes in the text are written
 * as \xNN, so that a client cannot forge lines, and a line is truncated to LIMIT_LOG_LINE.
 */
void log_write(struct log *log, enum log_level level, const char *format, ...) PRINTF_LIKE(3, 4);
void log_vwrite(struct log *log, enum log_level level, const char *format, va_list args) PRINTF_LIKE(3, 0);
/* The same about a connection: "...: *5 text, client: 127.0.0.1, server: a, request: \"GET / HTTP/1.1\"\n". */
void log_write_fields(struct log *log, enum log_level level, const struct log_fields *fields, const char *format, ...)
    PRINTF_LIKE(4, 5);
void log_vwrite_fields(struct log *log, enum log_level level, const struct log_fields *fields, const char *format,
                       va_list args) PRINTF_LIKE(4, 0);

/*
 * Formats a record as log_write describes into LIMIT_LOG_LINE bytes; `bare`: without time, level, process and newline.
 */
struct str log_record_text(const struct log_record *record, bool bare, char *line);

#define LOG_FIELD_COUNT 6
/* Field `index`, and its name in structured logs. */
struct str log_field(const struct log_fields *fields, unsigned index, const char **out_name);

/* The last line of a cause that can recur at any rate. Zeroed: none. */
struct log_limit {
    uint64_t written_ms;            /* monotonic; 0: never */
};

/* Returns true, for at most one call per second, if a line may be written now. */
bool log_limit_allows(struct log_limit *limit, uint64_t now_ms);

/* The names of the levels, by enum log_level; NULL-terminated. */
extern const char *const log_level_names[];
/* Parses "debug" ... "emerg". 0 or -EINVAL. */
MUST_CHECK int log_level_parse(struct str name, enum log_level *out_level);
/* The name of a level: "error". */
const char *log_level_name(enum log_level level);

#endif
