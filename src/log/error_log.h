/*
 * The destination of the error log: one descriptor, one write or datagram per line, never blocking. Lines that a full
 * pipe or a receiver does not accept are lost, and counted in log.lost. Formatting: base/log.h.
 */
#ifndef LOG_ERROR_LOG_H
#define LOG_ERROR_LOG_H

#include "log/syslog.h"

enum error_log_format { ERROR_LOG_TEXT, ERROR_LOG_JSON };

/* The directive error_log. */
struct error_log_settings {
    struct str path;                /* a file, "stderr", "stdout", or the text of a syslog receiver */
    enum log_level level;
    const struct syslog *syslog;    /* NULL: not a receiver */
    int format;                     /* enum error_log_format */
};

struct error_log {
    struct log log;                 /* its `owner` is this struct, which must not be moved */
    int fd;                         /* owned; -1: none */
    bool echo;                      /* startup: lines of level emerg go to stderr as well */
    bool is_stderr;                 /* the log itself goes to stderr: no echo */
    bool is_syslog;
    bool is_json;
    bool unreachable;               /* the master logged that it cannot connect to the receiver */
    struct syslog syslog;           /* if is_syslog */
    uint64_t lost_reported;         /* log.lost at the last report */
    struct log_limit report_limit;
};

/* Opens `path` as log_file_open. Returns 0 or -errno; on failure the log writes to stderr. */
MUST_CHECK int error_log_open(struct error_log *error_log, struct str path, enum log_level level);
/* Switches to another descriptor (USR1), which becomes owned; the old one is closed. */
void error_log_replace(struct error_log *error_log, int fd);
/* As error_log_replace, and sets the format and the receiver, which is copied; `syslog` NULL: a file. */
void error_log_set_destination(struct error_log *error_log, int fd, const struct syslog *syslog,
                               enum error_log_format format);
/* Closes the descriptor. Accepts a zeroed or finished log. */
void error_log_finish(struct error_log *error_log);

/* Prints "sluice: [emerg] TEXT" on stderr at startup, without time and number. */
void error_log_print(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
