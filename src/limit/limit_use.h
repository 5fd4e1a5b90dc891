/*
 * Common to limit_req and limit_conn: rows that name a zone, and the log level of refusals.
 */
#ifndef LIMIT_LIMIT_USE_H
#define LIMIT_LIMIT_USE_H

#include "limit/limit_conf.h"

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
MUST_CHECK int limit_uses_find(struct conf_reader *reader, enum limit_kind kind, const struct conf_rows *rows, size_t row_size);

/* The values of limit_req_log_level and limit_conn_log_level, and the log level of each. */
extern const char *const limit_levels[];
enum log_level limit_level(int choice);

#endif
