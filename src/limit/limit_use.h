/*
 * Common to limit_req and limit_conn: rows that name a zone, and the log level of rejections.
 */
#ifndef LIMIT_LIMIT_USE_H
#define LIMIT_LIMIT_USE_H

#include "limit/limit_conf.h"

#include <stddef.h>

/* The first member of their rows. */
struct limit_use {
    struct str name;
    struct conf_mark mark;
    struct limit_conf *zone;        /* set by limit_uses_find */
};

/*
 * For conf_check: finds the zones of the rows, which are `row_size` bytes each; a zone may be defined after its use.
 * 0, or -EINVAL (reported): unknown, or named twice.
 */
MUST_CHECK int limit_uses_find(struct conf_reader *reader, enum limit_kind kind, const struct conf_rows *rows,
                               size_t row_size);

/* Records for the control socket that the limit delayed or rejected a request of `key`. */
void limit_use_record(const struct limit_use *use, struct str key, enum limit_action action, int64_t now_s);

/* The response and the log line of a request beyond a limit. */
struct limit_rejection {
    uint64_t status;
    int log_level;                  /* index of limit_levels */
    bool dry_run;
};

/* `directive`_status (of http alone), _log_level and _dry_run, read into the struct limit_rejection at offset `at`. */
#define LIMIT_REJECTION_ROWS(directive, where, at, status_help, log_level_help, dry_run_help)                \
    {.name = directive "_status",                                                                            \
     .scopes = SCOPE_SITE,                                                                                   \
     .type = DIRECTIVE_NUMBER,                                                                               \
     .offset = (at) + offsetof(struct limit_rejection, status),                                              \
     .low = 400,                                                                                             \
     .high = 599,                                                                                            \
     .default_value = "429",                                                                                 \
     .example = directive "_status: 503",                                                                    \
     .help = (status_help)},                                                                                 \
    {.name = directive "_log_level",                                                                         \
     .scopes = (where),                                                                                      \
     .type = DIRECTIVE_CHOICE,                                                                               \
     .offset = (at) + offsetof(struct limit_rejection, log_level),                                           \
     .choices = limit_levels,                                                                                \
     .default_value = "error",                                                                               \
     .example = directive "_log_level: notice",                                                              \
     .help = (log_level_help)},                                                                              \
    {.name = directive "_dry_run",                                                                           \
     .scopes = (where),                                                                                      \
     .type = DIRECTIVE_SWITCH,                                                                               \
     .offset = (at) + offsetof(struct limit_rejection, dry_run),                                             \
     .default_value = "off",                                                                                 \
     .example = directive "_dry_run: on",                                                                    \
     .help = (dry_run_help)}

/* The values of limit_req_log_level and limit_conn_log_level, and the log level of each. */
extern const char *const limit_levels[];
/* Returns the log level of limit_levels[choice]. */
enum log_level limit_level(int choice);

#endif
