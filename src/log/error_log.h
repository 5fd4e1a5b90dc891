/*
 * Where the lines of the error log go: one descriptor, one write a line, never
 * waited for. What a full pipe does not take is dropped and counted. Formatting is
 * base/log.h's.
 */
#ifndef LOG_ERROR_LOG_H
#define LOG_ERROR_LOG_H

#include "base/log.h"

struct error_log {
    struct log log;                 /* its owner is this struct: it must not be moved */
    int fd;                         /* owned; -1: none */
    bool echo;                      /* starting up: lines of level emerg go to stderr as well */
    bool is_stderr;
    uint64_t dropped;               /* lines that did not leave */
    uint64_t dropped_said;          /* of these, already told */
};

/* Opens `path` (a file or "stderr"). 0 or -errno; on failure the log writes to stderr. */
MUST_CHECK int error_log_open(struct error_log *error_log, struct str path, enum log_level level);
/* Goes on with another descriptor (USR1), which it owns from then on; the old one is closed. */
void error_log_replace(struct error_log *error_log, int fd);
/* Closes the descriptor. Accepts a zeroed or finished log. */
void error_log_finish(struct error_log *error_log);

/* For users at start: "sluice: [emerg] TEXT" on stderr, without time and number. */
void error_log_print(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
