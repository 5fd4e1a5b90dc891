/*
 * The destination of the error log: one descriptor, one write per line, never blocking. Lines that a full pipe does
 * not accept are dropped and counted. Formatting: base/log.h.
 */
#ifndef LOG_ERROR_LOG_H
#define LOG_ERROR_LOG_H

#include "base/log.h"

struct error_log {
    struct log log;                 /* its `owner` is this struct, which must not be moved */
    int fd;                         /* owned; -1: none */
    bool echo;                      /* startup: lines of level emerg go to stderr as well */
    bool is_stderr;
    uint64_t dropped;               /* lines that were not written */
    uint64_t dropped_reported;          /* the number of these in the last report */
};

/* Opens `path` (a file or "stderr"). Returns 0 or -errno; on failure the log writes to stderr. */
MUST_CHECK int error_log_open(struct error_log *error_log, struct str path, enum log_level level);
/* Switches to another descriptor (USR1), which becomes owned; the old one is closed. */
void error_log_replace(struct error_log *error_log, int fd);
/* Closes the descriptor. Accepts a zeroed or finished log. */
void error_log_finish(struct error_log *error_log);

/* Prints "sluice: [emerg] TEXT" on stderr at startup, without time and number. */
void error_log_print(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
