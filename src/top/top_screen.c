/*
 * Composes the live view: totals, then the tables of top_tables.c, or the help.
 */
#include "top/top_screen.h"

#include "top/top_text.h"

#include <stdio.h>

#define KEYS_ROW 1 /* lines kept for the keys or a fault */

static void add_title(struct top_screen *screen, const struct top_content *content)
{
    const struct top_sample *now = top_monitor_sample(content->monitor);
    char url[LIMIT_TOP_COLUMNS], version[32], uptime[32] = "";

    top_escape(str_from(content->monitor->server->url.text), url, screen->columns > 60 ? screen->columns - 44 : 17);
    if (!now) {
        top_screen_add(screen, TOP_TITLE, "sluice  %s", url);
        return;
    }
    top_escape(now->version, version, 12);
    top_uptime(now->started_s <= (uint64_t)content->wall_s ? content->wall_s - (int64_t)now->started_s : -1, uptime);
    top_screen_add(screen, TOP_TITLE, "sluice %s  %s  up %s  workers %s", version, url, uptime,
                   top_count((double)now->workers).text);
}

static void add_totals(struct top_screen *screen, const struct top_rates *rates)
{
    const double *classes = rates->responses;

    top_screen_add(screen, TOP_NORMAL, "Requests    %9s/s   2xx %s  3xx %s  4xx %s  5xx %s  other %s",
                   top_count(rates->requests).text, top_count(classes[2]).text, top_count(classes[3]).text,
                   top_count(classes[4]).text, top_count(classes[5]).text, top_count(classes[0] + classes[1]).text);
    top_screen_add(screen, TOP_NORMAL, "Sent        %9s/s", top_bytes(rates->bytes).text);
}

static void add_connections(struct top_screen *screen, const struct top_sample *now, const struct top_rates *rates)
{
    const uint64_t *open = now->connections;
    double sum = 0;

    for (unsigned i = 0; i < TOP_CONNECTIONS; i++)
        sum += (double)open[i];
    top_screen_add(screen, TOP_NORMAL,
                   "Connections %9s     new %s/s  handshake %s  reading %s  writing %s  waiting %s",
                   top_count(sum).text, top_count(rates->accepted).text, top_count((double)open[TOP_HANDSHAKE]).text,
                   top_count((double)open[TOP_READING]).text, top_count((double)open[TOP_WRITING]).text,
                   top_count((double)open[TOP_WAITING]).text);
}

static void add_handshakes(struct top_screen *screen, const struct top_rates *rates)
{
    const double *results = rates->handshakes;

    top_screen_add(screen, TOP_NORMAL, "Handshakes  %9s/s   full %s  resumed %s  failed %s",
                   top_count(results[TOP_FULL] + results[TOP_RESUMED] + results[TOP_FAILED]).text,
                   top_count(results[TOP_FULL]).text, top_count(results[TOP_RESUMED]).text,
                   top_count(results[TOP_FAILED]).text);
}

static void add_latency(struct top_screen *screen, const struct top_rates *rates)
{
    if (!rates->has_latency)
        top_screen_add(screen, TOP_NORMAL, "Latency             -");
    else
        top_screen_add(screen, TOP_NORMAL, "Latency %s %9s     %s %s  %s %s", top_quantile_names[0],
                       top_quantile_text(&rates->quantiles[0]).text, top_quantile_names[1],
                       top_quantile_text(&rates->quantiles[1]).text, top_quantile_names[2],
                       top_quantile_text(&rates->quantiles[2]).text);
}

static void add_help(struct top_screen *screen)
{
    static const char *const lines[] = {
        "q                quit",
        "s, right arrow   sort the tables by the next column",
        "left arrow       sort the tables by the previous column",
        "l, z, t, c       show locations, zones of servers, zones of stream, or caches",
        "h, ?             this text; any key ends it",
        "",
        "Locations, servers: zones of status_zone. ACTIVE: average number of requests in",
        "progress, the sum of their times per second; time sorts by P99.",
        "Zones of stream: connections that ended, and as ACTIVE those that are open.",
        "Caches: HITS: share of HIT among the responses; failures sorts by the others.",
        "Values are those of the last interval. Send path: $tls_path in the access log.",
        "ktls-...: encrypted by the kernel; user, openssl: encrypted in user space;",
        "-sendfile, -splice, -mapped: sent without a copy in user space.",
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        top_screen_add(screen, TOP_NORMAL, "%s", lines[i]);
}

/* The last line of the terminal. */
static void add_keys(struct top_screen *screen, const struct top_content *content)
{
    char fault[LIMIT_TOP_COLUMNS];

    top_escape(str_from(content->monitor->fault), fault, sizeof(fault));
    if (fault[0])
        top_screen_add(screen, TOP_FAULT, "%s", fault);
    else
        top_screen_add(screen, TOP_HEADING, "q quit  s sort: %s  l locations  z servers  t streams  c caches  h help",
                       top_sort_name(content->sort));
}

static void add_values(struct top_screen *screen, const struct top_content *content)
{
    const struct top_sample *now = top_monitor_sample(content->monitor);
    const struct top_rates *rates = &content->monitor->rates;

    add_totals(screen, rates);
    add_connections(screen, now, rates);
    add_handshakes(screen, rates);
    add_latency(screen, rates);
    top_screen_add(screen, TOP_NORMAL, "%s", rates->restarted ? "The server has restarted." : "");
    if (content->help)
        add_help(screen);
    else
        top_tables_add(screen, now, rates, content->list, content->sort);
}

void top_screen_compose(struct top_screen *screen, const struct top_content *content, unsigned columns, unsigned rows)
{
    screen->columns = columns < LIMIT_TOP_COLUMNS ? columns : LIMIT_TOP_COLUMNS;
    screen->used = 0;
    rows = rows < LIMIT_TOP_ROWS ? rows : LIMIT_TOP_ROWS;
    screen->rows = content->interactive && rows > KEYS_ROW ? rows - KEYS_ROW : rows;
    add_title(screen, content);
    if (content->monitor->readings == 2)
        add_values(screen, content);
    else if (content->help)
        add_help(screen);
    if (!content->interactive)
        return;
    while (screen->used < screen->rows)
        top_screen_add(screen, TOP_NORMAL, "%s", "");
    screen->rows = rows;
    add_keys(screen, content);
}
