/*
 * The sorted tables of the live view: transmission paths, locations and upstream servers.
 */
#include "top/top_tables.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME_WIDTH_LEAST 16
#define NAME_WIDTH_MOST  63
#define UPSTREAM_ROW     "%-*s%-*s %-9s %7s %7s %6s %8s"
#define OTHER_COLUMNS    42 /* of the table of upstream servers, without the two names */

#define LOCATION_ROW     "%-*s %8s %8s %8s %10s"
#define LOCATION_COLUMNS 39 /* of the table of locations, without the name */

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

static double upstream_value(const struct top_upstream_rate *rate, enum top_sort sort)
{
    const double values[TOP_SORTS] = {[TOP_BY_REQUESTS] = rate->requests,
                                      [TOP_BY_FAILURES] = rate->failures,
                                      [TOP_BY_ACTIVE] = (double)rate->upstream->active,
                                      [TOP_BY_TIME] = (double)rate->upstream->answer_us};

    return values[sort];
}

static int compare_upstreams(const void *a, const void *b, void *sort)
{
    const struct top_upstream_rate *one = a, *other = b;
    enum top_sort by = *(const enum top_sort *)sort;
    int order = descending(upstream_value(one, by), upstream_value(other, by));

    if (order == 0)
        order = by_name(one->upstream->group, other->upstream->group);
    return order ? order : by_name(one->upstream->server, other->upstream->server);
}

static double location_value(const struct top_location_rate *rate, enum top_sort sort)
{
    const struct top_quantile *p99 = &rate->quantiles[TOP_P99];
    const double values[TOP_SORTS] = {[TOP_BY_REQUESTS] = rate->requests,
                                      [TOP_BY_FAILURES] = rate->failures,
                                      [TOP_BY_ACTIVE] = rate->active,
                                      [TOP_BY_TIME] = rate->has_latency ? p99->seconds + p99->beyond : -1};

    return values[sort];
}

static int compare_locations(const void *a, const void *b, void *sort)
{
    const struct top_location_rate *one = a, *other = b;
    enum top_sort by = *(const enum top_sort *)sort;
    int order = descending(location_value(one, by), location_value(other, by));

    return order ? order : by_name(one->location->zone, other->location->zone);
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

struct top_text top_quantile_text(const struct top_quantile *quantile)
{
    struct top_text bound = top_duration(quantile->seconds), out;

    snprintf(out.text, sizeof(out.text), "%s%.12s", quantile->beyond ? "> " : "", bound.text);
    return out;
}

/* Appends rows while there is room; the last one states how many are left out. */
static void add_rows(struct top_screen *screen, const struct top_rates *rates, unsigned count,
                     void (*add)(struct top_screen *screen, const struct top_rates *rates, unsigned i))
{
    unsigned rows = rows_left(screen);

    for (unsigned i = 0; i < count && i < rows; i++) {
        if (i + 1 == rows && i + 1 < count)
            top_screen_add(screen, TOP_NORMAL, "and %u more", count - i);
        else
            add(screen, rates, i);
    }
}

static void add_upstream_row(struct top_screen *screen, const struct top_rates *rates, unsigned i)
{
    add_upstream(screen, &rates->upstreams[i]);
}

static void add_upstreams(struct top_screen *screen, const struct top_rates *rates, enum top_sort sort)
{
    int width = (int)name_width(screen);

    top_screen_add(screen, TOP_NORMAL, "%s", "");
    top_screen_add(screen, TOP_HEADING, UPSTREAM_ROW, width, "UPSTREAM", width, "SERVER", "STATE", "REQ/S", "FAIL/S",
                   "ACTIVE", "TIME");
    qsort_r(rates->upstreams, rates->upstream_count, sizeof(rates->upstreams[0]), compare_upstreams, &sort);
    add_rows(screen, rates, rates->upstream_count, add_upstream_row);
}

static int location_width(const struct top_screen *screen)
{
    unsigned width = screen->columns > LOCATION_COLUMNS ? screen->columns - LOCATION_COLUMNS : 0;

    return width < NAME_WIDTH_LEAST ? NAME_WIDTH_LEAST : width > NAME_WIDTH_MOST ? NAME_WIDTH_MOST : (int)width;
}

static void add_location_row(struct top_screen *screen, const struct top_rates *rates, unsigned i)
{
    const struct top_location_rate *rate = &rates->locations[i];
    int width = location_width(screen);
    char zone[NAME_WIDTH_MOST + 1];

    top_escape(str_or_empty(rate->location->zone), zone, (size_t)width + 1);
    top_screen_add(screen, TOP_NORMAL, LOCATION_ROW, width, zone, top_count(rate->requests).text,
                   top_count(rate->failures).text, top_count(rate->active).text,
                   rate->has_latency ? top_quantile_text(&rate->quantiles[TOP_P99]).text : "-");
}

static void add_locations(struct top_screen *screen, const struct top_rates *rates, enum top_sort sort)
{
    top_screen_add(screen, TOP_NORMAL, "%s", "");
    top_screen_add(screen, TOP_HEADING, LOCATION_ROW, location_width(screen), "LOCATION", "REQ/S", "5XX/S", "ACTIVE",
                   "P99");
    qsort_r(rates->locations, rates->location_count, sizeof(rates->locations[0]), compare_locations, &sort);
    add_rows(screen, rates, rates->location_count, add_location_row);
}

void top_tables_add(struct top_screen *screen, const struct top_sample *now, const struct top_rates *rates,
                    enum top_sort sort)
{
    unsigned rows = screen->rows;
    unsigned lists = (rates->upstream_count > 0) + (rates->location_count > 0);
    unsigned reserved = rows_left(screen) > 6 ? rows_left(screen) / 3 + 1 : 0;

    /* The tables of locations and of upstream servers get at least a third of the rows each. */
    screen->rows -= lists * reserved < rows_left(screen) ? lists * reserved : 0;
    add_paths(screen, now, rates, sort);
    screen->rows = rows - (rates->upstream_count > 0 && screen->used + reserved < rows ? reserved : 0);
    if (rates->location_count > 0)
        add_locations(screen, rates, sort);
    screen->rows = rows;
    if (rates->upstream_count > 0)
        add_upstreams(screen, rates, sort);
}
