/*
 * The access log: lines from compiled formats, written in batches without blocking the loop. Lines that do not fit
 * into a full pipe, or into the batch of a slow disk, and datagrams that a syslog receiver does not accept are dropped
 * whole. They are counted in shared memory, and reported in the error log at most once per ten seconds.
 */
#ifndef LOG_ACCESS_LOG_H
#define LOG_ACCESS_LOG_H

#include "conf/directive.h"
#include "io/loop.h"

enum log_escape { LOG_ESCAPE_DEFAULT, LOG_ESCAPE_JSON, LOG_ESCAPE_NONE };

struct log_format {
    struct str name;
    const struct template *template; /* without the newline */
    enum log_escape escape;
};

/* One log destination, shared by every location that names it. */
struct access_log_target {
    struct str path;                /* an absolute path, "stdout", "stderr", or the text of a syslog receiver */
    const struct syslog *syslog;    /* log/syslog.h; NULL: not a receiver */
    unsigned index;                 /* in configuration->access_logs */
    int fd;                         /* opened by the master (log_file_open), replaced after USR1; -1: closed */
    bool unreachable;               /* the master logged that it cannot connect to the receiver */
};

/* One `access_log` line of the configuration. */
struct access_log_row {
    struct str path;                    /* empty: off */
    const struct syslog *syslog;        /* as in the target */
    struct str format_name;
    struct log_selection *selection;    /* log/log_selection.h; NULL: every request */
    uint64_t flush_ms;                  /* longest delay before a line is written to a regular file */
    struct conf_mark mark;
    struct access_log_target *target;   /* both set when the whole configuration is loaded; NULL: off */
    const struct log_format *format;
};

/* One worker's batches. */
struct access_log;

/*
 * Creates one batch for each of `count` targets, and a counter for each of `selections` rows with `if` or `sample`; all
 * arguments must outlive it. `dropped` counts lost lines. NULL: out of memory.
 */
struct access_log *access_log_create(struct loop *loop, struct log *error_log, uint64_t *dropped,
                                     struct access_log_target *const *targets, unsigned count,
                                     unsigned selections);
/*
 * Adds one line per row (struct access_log_row) with a target; `subject` is that of their formats. `log` NULL: does
 * nothing.
 */
void access_log_lines(struct access_log *log, const struct conf_rows *rows, const void *subject, struct arena *arena);
/* Lines that are written after most of the memory of their subject is freed. */
struct access_log_pending;
/* Evaluates the variables of the rows' formats whose values are final. Returns 0 or -ENOMEM. */
MUST_CHECK int access_log_evaluate(const struct conf_rows *rows, const void *subject, struct arena *arena,
                                   struct access_log_pending **out_pending);
/* Completes and writes the lines; `subject` has the values of the other variables. `log` NULL: does nothing. */
void access_log_write_pending(struct access_log *log, const struct access_log_pending *pending, const void *subject,
                              struct arena *arena);
/* Accepts NULL. */
void access_log_pending_free(struct access_log_pending *pending);
/* Writes the batches that are due, without blocking; called at the end of each loop iteration. */
void access_log_flush(struct access_log *log);
/*
 * USR1: writes target `index` to `fd` (owned) from now on, including the lines that are already queued for a pipe,
 * terminal or socket.
 */
void access_log_replace(struct access_log *log, unsigned index, int fd);
/*
 * Writes the rest as far as possible without blocking, and frees. Runs the loop until its operations complete.
 * Accepts NULL.
 */
void access_log_destroy(struct access_log *log);

#endif
