/*
 * Prints rates as JSON. Texts of the server are escaped.
 */
#include "top/top_json.h"

#include "conf/template.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* The object being printed. Records the first error, so that the writers need no checks. */
struct printer {
    struct buffer *out;
    int error;
};

static void print_format(struct printer *printer, const char *format, ...) PRINTF_LIKE(2, 3);

static void print_format(struct printer *printer, const char *format, ...)
{
    char text[256];
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (printer->error == 0 && length > 0)
        printer->error = (size_t)length < sizeof(text) ? buffer_append(printer->out, str_of(text, (size_t)length))
                                                       : -ENOBUFS;
}

static void print_text(struct printer *printer, const char *name, struct str text)
{
    print_format(printer, "\"%s\": \"", name);
    if (printer->error == 0)
        printer->error = template_escape_json(printer->out, str_or_empty(text));
    print_format(printer, "\"");
}

static void print_number(struct printer *printer, const char *name, uint64_t number)
{
    print_format(printer, ",\n  \"%s\": %llu", name, (unsigned long long)number);
}

static void print_rate(struct printer *printer, const char *name, double rate)
{
    print_format(printer, ",\n  \"%s\": %.3f", name, rate);
}

static void print_rates(struct printer *printer, const char *name, const char *const *labels, const double *rates)
{
    print_format(printer, ",\n  \"%s\": {", name);
    for (unsigned i = 0; labels[i]; i++)
        print_format(printer, "%s\"%s\": %.3f", i ? ", " : "", labels[i], rates[i]);
    print_format(printer, "}");
}

static void print_connections(struct printer *printer, const uint64_t *connections)
{
    print_format(printer, ",\n  \"connections\": {");
    for (unsigned i = 0; i < TOP_CONNECTIONS; i++)
        print_format(printer, "%s\"%s\": %llu", i ? ", " : "", top_connection_names[i],
                     (unsigned long long)connections[i]);
    print_format(printer, "}");
}

/* A quantile in the last bucket has no upper bound: null. */
static void print_latency(struct printer *printer, bool has_latency, const struct top_quantile *quantiles)
{
    print_format(printer, "\"latency_seconds\": %s", has_latency ? "{" : "null");
    for (unsigned i = 0; i < TOP_QUANTILES && has_latency; i++) {
        print_format(printer, "%s\"%s\": ", i ? ", " : "", top_quantile_names[i]);
        if (quantiles[i].beyond)
            print_format(printer, "null");
        else
            print_format(printer, "%.6f", quantiles[i].seconds);
    }
    print_format(printer, has_latency ? "}" : "");
}

static void print_paths(struct printer *printer, const struct top_rates *rates)
{
    print_format(printer, ",\n  \"paths\": [");
    for (unsigned i = 0; i < rates->path_count; i++) {
        const struct top_path_rate *path = &rates->paths[i];

        print_format(printer, "%s\n    {", i ? "," : "");
        print_text(printer, "path", path->name);
        print_format(printer, ", \"bytes_per_second\": %.3f, \"share\": %.6f, \"responses_per_second\": %.3f}",
                     path->bytes, path->share, path->transfers);
    }
    print_format(printer, rates->path_count ? "\n  ]" : "]");
}

static void print_upstream(struct printer *printer, const struct top_upstream_rate *rate)
{
    const struct top_upstream *upstream = rate->upstream;

    print_text(printer, "upstream", upstream->group);
    print_format(printer, ", ");
    print_text(printer, "server", upstream->server);
    print_format(printer, ", ");
    print_text(printer, "state", upstream->state);
    print_format(printer, ", \"requests_per_second\": %.3f, \"failures_per_second\": %.3f, \"active\": %llu",
                 rate->requests, rate->failures, (unsigned long long)upstream->active);
    print_format(printer, ", \"header_seconds\": %.6f, \"answer_seconds\": %.6f", (double)upstream->header_us / 1e6,
                 (double)upstream->answer_us / 1e6);
}

static void print_upstreams(struct printer *printer, const struct top_rates *rates)
{
    print_format(printer, ",\n  \"upstreams\": [");
    for (unsigned i = 0; i < rates->upstream_count; i++) {
        print_format(printer, "%s\n    {", i ? "," : "");
        print_upstream(printer, &rates->upstreams[i]);
        print_format(printer, "}");
    }
    print_format(printer, rates->upstream_count ? "\n  ]" : "]");
}

/* `unit`: the events that the zones count, requests or connections. */
static void print_zones(struct printer *printer, const char *name, const char *unit,
                        const struct top_zone_rates *zones)
{
    print_format(printer, ",\n  \"%s\": [", name);
    for (unsigned i = 0; i < zones->count; i++) {
        const struct top_zone_rate *rate = &zones->items[i];

        print_format(printer, "%s\n    {", i ? "," : "");
        print_text(printer, "zone", rate->zone->name);
        print_format(printer, ", \"%s_per_second\": %.3f, \"failures_per_second\": %.3f, \"active\": %.3f, ", unit,
                     rate->requests, rate->failures, rate->active);
        print_latency(printer, rate->has_latency, rate->quantiles);
        print_format(printer, "}");
    }
    print_format(printer, zones->count ? "\n  ]" : "]");
}

static void print_cache(struct printer *printer, const struct top_cache_rate *rate)
{
    print_text(printer, "cache", rate->cache->name);
    print_format(printer, ", \"files\": %llu, \"bytes\": %llu", (unsigned long long)rate->cache->files,
                 (unsigned long long)rate->cache->bytes);
    if (rate->cache->max_bytes > 0)
        print_format(printer, ", \"max_bytes\": %llu", (unsigned long long)rate->cache->max_bytes);
    else
        print_format(printer, ", \"max_bytes\": null");
    print_format(printer, ", \"responses_per_second\": %.3f, \"hits_per_second\": %.3f", rate->responses, rate->hits);
    if (rate->responses > 0)
        print_format(printer, ", \"hit_ratio\": %.6f", rate->hits / rate->responses);
    else
        print_format(printer, ", \"hit_ratio\": null");
}

static void print_caches(struct printer *printer, const struct top_rates *rates)
{
    print_format(printer, ",\n  \"caches\": [");
    for (unsigned i = 0; i < rates->cache_count; i++) {
        print_format(printer, "%s\n    {", i ? "," : "");
        print_cache(printer, &rates->caches[i]);
        print_format(printer, "}");
    }
    print_format(printer, rates->cache_count ? "\n  ]" : "]");
}

int top_json_print(const struct top_rates *rates, const struct top_sample *now, struct buffer *out)
{
    struct printer printer = {.out = out};

    print_format(&printer, "{\n  ");
    print_text(&printer, "version", now->version);
    print_number(&printer, "start_time_seconds", now->started_s);
    print_number(&printer, "generation", now->generation);
    print_number(&printer, "workers", now->workers);
    print_number(&printer, "worker_restarts", now->restarts);
    print_rate(&printer, "interval_seconds", rates->seconds);
    print_format(&printer, ",\n  \"restarted\": %s", rates->restarted ? "true" : "false");
    print_connections(&printer, now->connections);
    print_rate(&printer, "accepted_per_second", rates->accepted);
    print_rate(&printer, "requests_per_second", rates->requests);
    print_rates(&printer, "responses_per_second", top_class_names, rates->responses);
    print_rates(&printer, "tls_handshakes_per_second", top_handshake_names, rates->handshakes);
    print_rate(&printer, "bytes_per_second", rates->bytes);
    print_paths(&printer, rates);
    print_format(&printer, ",\n  ");
    print_latency(&printer, rates->has_latency, rates->quantiles);
    print_zones(&printer, "locations", "requests", &rates->zones[TOP_LOCATIONS]);
    print_zones(&printer, "server_zones", "requests", &rates->zones[TOP_SERVERS]);
    print_zones(&printer, "stream_zones", "connections", &rates->zones[TOP_STREAMS]);
    print_caches(&printer, rates);
    print_upstreams(&printer, rates);
    print_format(&printer, "\n}\n");
    return printer.error;
}
