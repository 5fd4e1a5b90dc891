/*
 * The sorted tables of the live view: transmission paths and upstream servers.
 */
#include "top/top_tables.h"

#include "top/top_text.h"

#include <stdlib.h>

#define NAME_WIDTH_LEAST 16
#define NAME_WIDTH_MOST  63
#define UPSTREAM_ROW     "%-*s%-*s %-9s %7s %7s %6s %8s"
#define OTHER_COLUMNS    42 /* of the table of upstream servers, without the two names */

const char *top_sort_name(enum top_sort sort)
{
    static const char *const names[TOP_SORTS] = {[TOP_BY_REQUESTS] = "requests",
                                                 [TOP_BY_FAILURES] = "failures",
                                                 [TOP_BY_ACTIVE] = "active",
                                                 [TOP_BY_TIME] = "time",
                                                 [TOP_BY_NAME] = "name"};

    return names[sort];
}

static int by_name(struct str a, struct str b)
{
    return str_compare(str_or_empty(a), str_or_empty(b));
}

static int descending(double a, double b)
{
    return (a < b) - (a > b);
}

static int compare_paths(const void *a, const void *b, void *sort)
{
    const struct top_path_rate *one = a, *other = b;
    int order = *(const enum top_sort *)sort == TOP_BY_NAME ? 0 : descending(one->bytes, other->bytes);

    return order ? order : by_name(one->name, other->name);
}

static double sort_value(const struct top_upstream_rate *rate, enum top_sort sort)
{
    switch (sort) {
    case TOP_BY_REQUESTS:
        return rate->requests;
    case TOP_BY_FAILURES:
        return rate->failures;
    case TOP_BY_ACTIVE:
        return (double)rate->upstream->active;
    case TOP_BY_TIME:
        return (double)rate->upstream->answer_us;
    case TOP_BY_NAME:
    case TOP_SORTS:
        break;
    }
    return 0;
}

static int compare_upstreams(const void *a, const void *b, void *sort)
{
    const struct top_upstream_rate *one = a, *other = b;
    enum top_sort by = *(const enum top_sort *)sort;
    int order = descending(sort_value(one, by), sort_value(other, by));

    if (order == 0)
        order = by_name(one->upstream->group, other->upstream->group);
    return order ? order : by_name(one->upstream->server, other->upstream->server);
}

static unsigned rows_left(const struct top_screen *screen)
{
    return screen->rows - screen->used;
}

static void add_path(struct top_screen *screen, const struct top_path_rate *path)
{
    char name[LIMIT_TOP_KEY];

    top_escape(str_or_empty(path->name), name, 33);
    top_screen_add(screen, TOP_NORMAL, "%-32s %10s %8s %12s", name, top_bytes(path->bytes).text,
                   top_share(path->share).text, top_count(path->transfers).text);
}

/* Omits paths that the server has never used. */
static void add_paths(struct top_screen *screen, const struct top_sample *now, const struct top_rates *rates,
                      enum top_sort sort)
{
    struct top_path_rate used[LIMIT_TOP_PATHS];
    unsigned count = 0;

    for (unsigned i = 0; i < rates->path_count; i++) {
        if (now->paths[i].bytes > 0 || now->paths[i].transfers > 0)
            used[count++] = rates->paths[i];
    }
    qsort_r(used, count, sizeof(used[0]), compare_paths, &sort);
    top_screen_add(screen, TOP_HEADING, "%-32s %10s %8s %12s", "SEND PATH", "BYTES/S", "SHARE", "RESPONSES/S");
    for (unsigned i = 0; i < count; i++)
        add_path(screen, &used[i]);
}

static size_t name_width(const struct top_screen *screen)
{
    size_t width = screen->columns > OTHER_COLUMNS ? (screen->columns - OTHER_COLUMNS) / 2 : 0;

    return width < NAME_WIDTH_LEAST ? NAME_WIDTH_LEAST : width > NAME_WIDTH_MOST ? NAME_WIDTH_MOST : width;
}

static void add_upstream(struct top_screen *screen, const struct top_upstream_rate *rate)
{
    const struct top_upstream *upstream = rate->upstream;
    char group[NAME_WIDTH_MOST + 1], server[NAME_WIDTH_MOST + 1], state[10];
    size_t width = name_width(screen);

    top_escape(str_or_empty(upstream->group), group, width);
    top_escape(str_or_empty(upstream->server), server, width + 1);
    top_escape(str_or_empty(upstream->state), state, sizeof(state));
    top_screen_add(screen, TOP_NORMAL, UPSTREAM_ROW, (int)width, group, (int)width, server, state,
                   top_count(rate->requests).text, top_count(rate->failures).text,
                   top_count((double)upstream->active).text, top_duration((double)upstream->answer_us / 1e6).text);
}

static void add_upstreams(struct top_screen *screen, const struct top_rates *rates, enum top_sort sort)
{
    int width = (int)name_width(screen);
    unsigned rows;

    top_screen_add(screen, TOP_NORMAL, "%s", "");
    top_screen_add(screen, TOP_HEADING, UPSTREAM_ROW, width, "UPSTREAM", width, "SERVER", "STATE", "REQ/S", "FAIL/S",
                   "ACTIVE", "TIME");
    qsort_r(rates->upstreams, rates->upstream_count, sizeof(rates->upstreams[0]), compare_upstreams, &sort);
    rows = rows_left(screen);
    for (unsigned i = 0; i < rates->upstream_count && i < rows; i++) {
        if (i + 1 == rows && i + 1 < rates->upstream_count)
            top_screen_add(screen, TOP_NORMAL, "and %u more", rates->upstream_count - i);
        else
            add_upstream(screen, &rates->upstreams[i]);
    }
}

void top_tables_add(struct top_screen *screen, const struct top_sample *now, const struct top_rates *rates,
                    enum top_sort sort)
{
    unsigned rows = screen->rows;

    /* The table of upstream servers gets at least a third of the rows. */
    if (rates->upstream_count > 0 && rows_left(screen) > 6)
        screen->rows -= rows_left(screen) / 3 + 1;
    add_paths(screen, now, rates, sort);
    screen->rows = rows;
    if (rates->upstream_count > 0)
        add_upstreams(screen, rates, sort);
}
