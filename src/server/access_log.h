/*
 * The access log: lines made from compiled formats, written in batches, never
 * blocking the loop. What a full pipe or a slow disk does not take is dropped in whole lines,
 * counted in shared memory, and said in the error log (rarely).
 */
#ifndef SERVER_ACCESS_LOG_H
#define SERVER_ACCESS_LOG_H

#include "server/visit.h"

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

/* The worker's batches, one for each target of its configuration: worker->access_log. 0 or -ENOMEM. */
MUST_CHECK int access_log_start(struct worker *worker);
/* One line for each target of the location. Called once per finished exchange. */
void access_log_write(struct visit *visit);
/* The same for any subject of the formats in these rows (struct access_log_row). */
void access_log_lines(struct worker *worker, const struct conf_rows *rows, const void *subject, struct arena *arena);
/* What these lines still have to say at the end of an exchange whose memory is given back long before. */
struct access_log_rest;
/* The visit's lines, all that is settled written out. 0 or -ENOMEM. */
MUST_CHECK int access_log_settle(const struct visit *visit, struct access_log_rest **out_rest);
/* Writes them, with what only the end has told. */
void access_log_write_rest(struct worker *worker, const struct access_log_rest *rest, const struct exchange *x, struct arena *arena);
/* Accepts NULL. */
void access_log_rest_free(struct access_log_rest *rest);
/* Each turn's end: what is due leaves without waiting. Costs nothing where nothing is batched. */
void access_log_flush(struct worker *worker);
/* USR1: the target `index` is written to `fd` from now on (owned); what was batched goes there too. */
void access_log_replace(struct worker *worker, unsigned index, int fd);
/* The worker ends: writes the rest, as far as it goes without waiting, and frees. Turns the loop until its own op has finished. */
void access_log_stop(struct worker *worker);

#endif
