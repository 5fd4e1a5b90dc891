/*
 * The tables of the live view.
 */
#ifndef TOP_TOP_TABLES_H
#define TOP_TOP_TABLES_H

#include "top/top_lines.h"
#include "top/top_rates.h"
#include "top/top_text.h"

enum top_sort { TOP_BY_REQUESTS, TOP_BY_FAILURES, TOP_BY_ACTIVE, TOP_BY_TIME, TOP_BY_NAME, TOP_SORTS };

/* The list between the transmission paths and the upstream servers. TOP_LISTS: all, one after the other. */
enum top_list { TOP_LIST_LOCATIONS, TOP_LIST_SERVERS, TOP_LIST_STREAMS, TOP_LIST_CACHES, TOP_LISTS };

/* Sorts the lists of `rates`, and appends the tables, each with a part of the rows that are left. */
void top_tables_add(struct top_screen *screen, const struct top_sample *now, const struct top_rates *rates,
                    enum top_list chosen, enum top_sort sort);
/* Formats a quantile; if it is in the last bucket, as "> " and the lower bound of the bucket. */
struct top_text top_quantile_text(const struct top_quantile *quantile);
/* The name of a column. */
const char *top_sort_name(enum top_sort sort);

#endif
