/*
 * The sorted tables of the live view: transmission paths; a list of zones or caches; upstream servers.
 */
#include "top/top_tables.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME_WIDTH_LEAST 16
#define NAME_WIDTH_MOST  63
#define UPSTREAM_ROW     "%-*s%-*s %-9s %7s %7s %6s %8s"
#define OTHER_COLUMNS    42 /* of the table of upstream servers, without the two names */

#define ZONE_ROW         "%-*s %8s %8s %8s %10s"
#define ZONE_COLUMNS     39 /* of the tables of zones, without the name */

#define CACHE_ROW        "%-*s %8s %8s %8s %8s %10s %10s"
#define CACHE_COLUMNS    59 /* of the table of caches, without the name */

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

static int compare_descending(double a, double b)
{
    return (a < b) - (a > b);
}

static int compare_paths(const void *a, const void *b, void *sort)
{
    const struct top_path_rate *one = a, *other = b;
    int order = *(const enum top_sort *)sort == TOP_BY_NAME ? 0 : compare_descending(one->bytes, other->bytes);

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
    int order = compare_descending(upstream_value(one, by), upstream_value(other, by));

    if (order == 0)
        order = by_name(one->upstream->group, other->upstream->group);
    return order ? order : by_name(one->upstream->server, other->upstream->server);
}

static double zone_value(const struct top_zone_rate *rate, enum top_sort sort)
{
    const struct top_quantile *p99 = &rate->quantiles[TOP_P99];
    const double values[TOP_SORTS] = {[TOP_BY_REQUESTS] = rate->requests,
                                      [TOP_BY_FAILURES] = rate->failures,
                                      [TOP_BY_ACTIVE] = rate->active,
                                      [TOP_BY_TIME] = rate->has_latency ? p99->seconds + p99->beyond : -1};

    return values[sort];
}

static int compare_zones(const void *a, const void *b, void *sort)
{
    const struct top_zone_rate *one = a, *other = b;
    enum top_sort by = *(const enum top_sort *)sort;
    int order = compare_descending(zone_value(one, by), zone_value(other, by));

    return order ? order : by_name(one->zone->name, other->zone->name);
}

/* Caches have no columns for the other keys. */
static double cache_value(const struct top_cache_rate *rate, enum top_sort sort)
{
    const double values[TOP_SORTS] = {[TOP_BY_REQUESTS] = rate->responses,
                                      [TOP_BY_FAILURES] = rate->responses - rate->hits};

    return values[sort];
}

static int compare_caches(const void *a, const void *b, void *sort)
{
    const struct top_cache_rate *one = a, *other = b;
    enum top_sort by = *(const enum top_sort *)sort;
    int order = compare_descending(cache_value(one, by), cache_value(other, by));

    return order ? order : by_name(one->cache->name, other->cache->name);
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

/* Appends rows while there is room; the last row states the number of those left out. */
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

/* The width of the names in a table that has other columns of this width. */
static int width_beside(const struct top_screen *screen, unsigned others)
{
    unsigned width = screen->columns > others ? screen->columns - others : 0;

    return width < NAME_WIDTH_LEAST ? NAME_WIDTH_LEAST : width > NAME_WIDTH_MOST ? NAME_WIDTH_MOST : (int)width;
}

static void add_zone(struct top_screen *screen, const struct top_zone_rate *rate)
{
    int width = width_beside(screen, ZONE_COLUMNS);
    char name[NAME_WIDTH_MOST + 1];

    top_escape(str_or_empty(rate->zone->name), name, (size_t)width + 1);
    top_screen_add(screen, TOP_NORMAL, ZONE_ROW, width, name, top_count(rate->requests).text,
                   top_count(rate->failures).text, top_count(rate->active).text,
                   rate->has_latency ? top_quantile_text(&rate->quantiles[TOP_P99]).text : "-");
}

static void add_location_row(struct top_screen *screen, const struct top_rates *rates, unsigned i)
{
    add_zone(screen, &rates->zones[TOP_LOCATIONS].items[i]);
}

static void add_server_row(struct top_screen *screen, const struct top_rates *rates, unsigned i)
{
    add_zone(screen, &rates->zones[TOP_SERVERS].items[i]);
}

static void add_stream_row(struct top_screen *screen, const struct top_rates *rates, unsigned i)
{
    add_zone(screen, &rates->zones[TOP_STREAMS].items[i]);
}

static void add_cache_row(struct top_screen *screen, const struct top_rates *rates, unsigned i)
{
    const struct top_cache_rate *rate = &rates->caches[i];
    const struct top_cache *cache = rate->cache;
    int width = width_beside(screen, CACHE_COLUMNS);
    char name[NAME_WIDTH_MOST + 1];

    top_escape(str_or_empty(cache->name), name, (size_t)width + 1);
    top_screen_add(screen, TOP_NORMAL, CACHE_ROW, width, name, top_count(rate->responses).text,
                   top_count(rate->hits).text, rate->responses > 0 ? top_share(rate->hits / rate->responses).text : "-",
                   top_count((double)cache->files).text, top_bytes((double)cache->bytes).text,
                   cache->max_bytes > 0 ? top_bytes((double)cache->max_bytes).text : "-");
}

/* A list of zones. */
struct zone_list {
    enum top_zone_kind kind;
    const char *heading, *unit;     /* of the names, and of the first rate */
    void (*add_row)(struct top_screen *screen, const struct top_rates *rates, unsigned i);
};

static const struct zone_list zone_lists[TOP_LISTS] = {
    [TOP_LIST_LOCATIONS] = {TOP_LOCATIONS, "LOCATION", "REQ/S", add_location_row},
    [TOP_LIST_SERVERS] = {TOP_SERVERS, "SERVER ZONE", "REQ/S", add_server_row},
    [TOP_LIST_STREAMS] = {TOP_STREAMS, "STREAM ZONE", "CONN/S", add_stream_row},
};

static void add_zones(struct top_screen *screen, const struct top_rates *rates, enum top_list list, enum top_sort sort)
{
    const struct zone_list *of = &zone_lists[list];
    const struct top_zone_rates *zones = &rates->zones[of->kind];

    top_screen_add(screen, TOP_HEADING, ZONE_ROW, width_beside(screen, ZONE_COLUMNS), of->heading, of->unit, "5XX/S",
                   "ACTIVE", "P99");
    qsort_r(zones->items, zones->count, sizeof(zones->items[0]), compare_zones, &sort);
    add_rows(screen, rates, zones->count, of->add_row);
}

static void add_caches(struct top_screen *screen, const struct top_rates *rates, enum top_sort sort)
{
    top_screen_add(screen, TOP_HEADING, CACHE_ROW, width_beside(screen, CACHE_COLUMNS), "CACHE", "RESP/S", "HIT/S",
                   "HITS", "FILES", "BYTES", "MAX");
    qsort_r(rates->caches, rates->cache_count, sizeof(rates->caches[0]), compare_caches, &sort);
    add_rows(screen, rates, rates->cache_count, add_cache_row);
}

static void add_list(struct top_screen *screen, const struct top_rates *rates, enum top_list list, enum top_sort sort)
{
    top_screen_add(screen, TOP_NORMAL, "%s", "");
    if (list == TOP_LIST_CACHES)
        add_caches(screen, rates, sort);
    else
        add_zones(screen, rates, list, sort);
}

static unsigned list_length(const struct top_rates *rates, enum top_list list)
{
    return list == TOP_LIST_CACHES ? rates->cache_count : rates->zones[zone_lists[list].kind].count;
}

/* A list that was chosen shows its heading even if it is empty, except the first one. */
static bool is_shown(const struct top_rates *rates, enum top_list chosen, enum top_list list)
{
    bool any = list_length(rates, list) > 0;

    return chosen == TOP_LISTS ? any : chosen == list && (any || list != TOP_LIST_LOCATIONS);
}

void top_tables_add(struct top_screen *screen, const struct top_sample *now, const struct top_rates *rates,
                    enum top_list chosen, enum top_sort sort)
{
    unsigned rows = screen->rows;
    unsigned tables = rates->upstream_count > 0;
    unsigned reserved;

    for (enum top_list list = 0; list < TOP_LISTS; list++)
        tables += is_shown(rates, chosen, list);
    /* Each table after the first one gets at least an equal part of the rows, or a third. */
    reserved = rows_left(screen) > 6 ? rows_left(screen) / (tables > 2 ? tables + 1 : 3) + 1 : 0;
    screen->rows -= tables * reserved < rows_left(screen) ? tables * reserved : 0;
    add_paths(screen, now, rates, sort);
    for (enum top_list list = 0; list < TOP_LISTS; list++) {
        if (!is_shown(rates, chosen, list))
            continue;
        tables--;
        screen->rows = rows - (screen->used + tables * reserved < rows ? tables * reserved : 0);
        add_list(screen, rates, list, sort);
    }
    screen->rows = rows;
    if (rates->upstream_count > 0)
        add_upstreams(screen, rates, sort);
}
