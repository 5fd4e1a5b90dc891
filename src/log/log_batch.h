/*
 * The batch of one target of the access log: lines that are added, and their writing without blocking the loop. Private
 * to src/log.
 */
#ifndef LOG_LOG_BATCH_H
#define LOG_LOG_BATCH_H

#include "base/buffer.h"
#include "log/access_log.h"

#define LOG_BATCH_RETRY_MS 20       /* pause after a pipe, terminal or socket was full */

struct log_batch {
    struct loop *loop;              /* not owned */
    uint64_t *all_dropped;          /* dropped lines of all batches; not owned */
    const struct access_log_target *target;
    int fd;                         /* -1: none, or a syslog receiver */
    int datagram_fd;                /* of a syslog receiver; -1: none */
    int replaced_fd;                /* to be closed when the write in flight completes; -1: none */
    bool regular, socket, blocking;
    struct buffer lines;            /* being filled by the owner */
    struct buffer writing;          /* of a regular file, while the helper thread writes them */
    struct op op;
    uint64_t due_ms;                /* latest time of the next write, or of the next try */
    uint64_t dropped;               /* lines dropped since the last report in the error log */
    int error;                      /* -errno of the failed write; 0: the batch was full */
};

/* Initialises a zeroed batch with the descriptor of its target. `loop`, `all_dropped` and `target` outlive it. */
void log_batch_init(struct log_batch *batch, struct loop *loop, uint64_t *all_dropped,
                    const struct access_log_target *target);
/* Counts lines that are lost. */
void log_batch_count_dropped(struct log_batch *batch, uint64_t lines);
/* Reports dropped lines in the error log, if there are any, and counts from 0 again. Returns true if there were any. */
bool log_batch_report_dropped(struct log_batch *batch, struct log *error_log);
/*
 * Writes the lines if they are due: to a regular file on a helper thread, to others as much as possible without
 * waiting.
 */
void log_batch_flush(struct log_batch *batch);
/*
 * Writes to `fd` (owned) from now on. Lines for a regular file that were added before are written to the old one; if a
 * write is in flight, only its lines.
 */
void log_batch_replace(struct log_batch *batch, int fd);
/*
 * Writes the rest without waiting, counts as dropped what remains, and frees. batch->op is idle; the descriptors stay
 * open.
 */
void log_batch_finish(struct log_batch *batch);

#endif
