/*
 * What limit_req and limit_conn have in common: rows that name a zone, and where what is refused stands in the error log.
 */
#ifndef LIMIT_LIMIT_USE_H
#define LIMIT_LIMIT_USE_H

#include "limit/limit_conf.h"

/* Each of their rows begins with it. */
struct limit_use {
    struct str name;
    struct conf_mark mark;
    struct limit_conf *zone;        /* limit_uses_find */
};

/*
 * For conf_check: finds the zones of the rows, which are `row_size` bytes each; they may stand behind those who name them. 0, or -EINVAL where there is
 * none, or one is named twice: said.
 */
MUST_CHECK int limit_uses_find(struct conf_reader *reader, enum limit_kind kind, const struct conf_rows *rows, size_t row_size);

/* The choices of limit_req_log_level and limit_conn_log_level, and the level that one of them means; what is below the first means that. */
extern const char *const limit_levels[];
enum log_level limit_level(int choice);

#endif
