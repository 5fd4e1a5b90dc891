/*
 * The access log: lines made from compiled formats, written in batches, never
 * blocking the loop. What a full pipe or a slow disk does not take is dropped in whole lines,
 * counted in shared memory, and said in the error log (rarely).
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

/* One place to write to, shared by every location that names it. */
struct access_log_target {
    struct str path;                /* an absolute path, "stdout" or "stderr" */
    unsigned index;                 /* in configuration->access_logs */
    int fd;                         /* opened by the master (log_file_open), replaced after USR1; -1: closed */
};

/* One `access_log` line of the configuration. */
struct access_log_row {
    struct str path;                /* empty: off */
    struct str format_name;
    uint64_t flush_ms;              /* a regular file gets a line so long after it was made, at the latest */
    struct conf_mark mark;
    struct access_log_target *target;   /* both filled in once everything is read; NULL: off */
    const struct log_format *format;
};

/* One worker's batches. */
struct access_log;

/* One batch for each of `count` targets; all arguments must outlive it. `dropped` counts lines that were lost. NULL: out of memory. */
struct access_log *access_log_create(struct loop *loop, struct log *error_log, uint64_t *dropped,
                                     struct access_log_target *const *targets, unsigned count);
/* One line for each of the rows (struct access_log_row) that has a target; `subject` is that of their formats. `log` NULL: nothing is written. */
void access_log_lines(struct access_log *log, const struct conf_rows *rows, const void *subject, struct arena *arena);
/* Lines that are written later than the memory of their subject is freed. */
struct access_log_pending;
/* The lines of these rows, with the variables that do not change any more evaluated. 0 or -ENOMEM. */
MUST_CHECK int access_log_evaluate(const struct conf_rows *rows, const void *subject, struct arena *arena, struct access_log_pending **out_rest);
/* Writes them; `subject` has the values of the other variables. `log` NULL: nothing is written. */
void access_log_write_pending(struct access_log *log, const struct access_log_pending *rest, const void *subject, struct arena *arena);
/* Accepts NULL. */
void access_log_pending_free(struct access_log_pending *rest);
/* At the end of each loop iteration: writes the batches that are due, without blocking. */
void access_log_flush(struct access_log *log);
/* USR1: the target `index` is written to `fd` from now on (owned), and so is the present batch. */
void access_log_replace(struct access_log *log, unsigned index, int fd);
/* Writes the rest, as far as that is possible without blocking, and frees. Turns the loop until its operations have finished. Accepts NULL. */
void access_log_destroy(struct access_log *log);

#endif
