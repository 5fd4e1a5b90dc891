/*
 * The lines of the live view, without a terminal: `sluice top` shows them, `--once` prints them.
 */
#ifndef TOP_TOP_SCREEN_H
#define TOP_TOP_SCREEN_H

#include "top/top_monitor.h"
#include "top/top_tables.h"

/* The values and settings of the view. */
struct top_content {
    const struct top_monitor *monitor;
    int64_t wall_s;                 /* for the time since the start of the server */
    enum top_list list;
    enum top_sort sort;
    bool help;                      /* the keys, in place of the tables */
    bool interactive;               /* the last line names the keys */
};

/*
 * Fills the lines for a terminal of this size, at most LIMIT_TOP_COLUMNS by LIMIT_TOP_ROWS. Lines that do not fit are
 * left out.
 */
void top_screen_compose(struct top_screen *screen, const struct top_content *content, unsigned columns, unsigned rows);

#endif
