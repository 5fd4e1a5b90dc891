/*
 * The access log: lines made from compiled formats, written in batches, never
 * blocking the loop. What a full pipe or a slow disk does not take is dropped,
 * counted, and said in the error log.
 */
#ifndef SERVER_ACCESS_LOG_H
#define SERVER_ACCESS_LOG_H

#include "server/visit.h"

struct access_log_target {
    struct str path;                /* a file, "stdout", "stderr"; empty: off */
    const struct template *format;
    bool json;
    int fd;                         /* opened by the master, replaced after USR1 */
};

/* One line for each target of the location. Called once per finished exchange. */
void access_log_write(struct visit *visit);
/* Writes what is batched, without waiting: each turn's end or the flush timer, and at exit. */
void access_log_flush(struct worker *worker);

#endif
