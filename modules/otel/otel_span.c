/*
 * The span of a request: its name, its times, and its attributes by the semantic conventions of OpenTelemetry for HTTP
 * servers (stable since 1.23).
 */
#include "otel.h"

#include "base/clock.h"
#include "otlp/span_ring.h"

#include <arpa/inet.h>
#include <stdio.h>

static void add_text(struct span *span, struct str key, struct str value)
{
    if (!str_empty(value))
        span_add_text(span, key, value);
}

static void add_address(struct span *span, const struct sockaddr *address, struct str key, struct str port_key)
{
    const struct sockaddr_in *ip4 = (const struct sockaddr_in *)(const void *)address;
    const struct sockaddr_in6 *ip6 = (const struct sockaddr_in6 *)(const void *)address;
    char text[INET6_ADDRSTRLEN];

    if (address->sa_family != AF_INET && address->sa_family != AF_INET6)
        return;
    if (inet_ntop(address->sa_family,
                  address->sa_family == AF_INET ? (const void *)&ip4->sin_addr : (const void *)&ip6->sin6_addr, text,
                  sizeof(text)))
        span_add_text(span, key, str_from(text));
    if (!str_empty(port_key))
        span_add_number(span, port_key, ntohs(address->sa_family == AF_INET ? ip4->sin_port : ip6->sin6_port));
}

static void add_server(struct span *span, const struct exchange *x)
{
    union proxy_address local;
    uint64_t port = x->request.port;

    exchange_local_address(x, &local);
    if (port == 0 && local.any.sa_family == AF_INET)
        port = ntohs(local.ip4.sin_port);
    if (port == 0 && local.any.sa_family == AF_INET6)
        port = ntohs(local.ip6.sin6_port);
    add_text(span, STR("server.address"), x->request.host);
    if (port > 0)
        span_add_number(span, STR("server.port"), port);
}

static void add_request(struct span *span, const struct exchange *x)
{
    const struct request *request = &x->request;
    struct str rest = request->target;
    bool known = request->method != METHOD_OTHER;

    span_add_text(span, STR("http.request.method"), known ? request->method_name : STR("_OTHER"));
    if (!known)
        add_text(span, STR("http.request.method_original"), request->method_name);
    add_text(span, STR("url.path"), str_cut(&rest, '?'));
    span_add_text(span, STR("url.scheme"), exchange_is_secure(x) ? STR("https") : STR("http"));
    add_text(span, STR("http.route"), exchange_location_name(x));
    span_add_text(span, STR("network.protocol.version"),
                  request->version == HTTP_2     ? STR("2")
                  : request->version == HTTP_1_1 ? STR("1.1")
                                                 : STR("1.0"));
}

/* Last, because they may be long: attributes without room are dropped. */
static void add_long(struct span *span, const struct exchange *x)
{
    struct str rest = x->request.target;

    (void)str_cut(&rest, '?');
    add_text(span, STR("url.query"), rest);
    add_text(span, STR("user_agent.original"), headers_value(&x->request.headers, STR("User-Agent")));
}

static void add_response(struct span *span, const struct exchange *x)
{
    int status = exchange_status(x);
    char text[16];

    if (status > 0)
        span_add_number(span, STR("http.response.status_code"), (uint64_t)status);
    if (status < 500)
        return;
    snprintf(text, sizeof(text), "%d", status);
    span_add_text(span, STR("error.type"), str_from(text));
    span->flags |= SPAN_FAILED;
}

static void add_configured(struct span *span, struct exchange *x, const struct otel_conf *conf)
{
    const struct otel_attributes *rows = conf->span_attributes.items;

    for (size_t i = 0; i < conf->span_attributes.count; i++) {
        for (size_t k = 0; k < rows[i].count; k++)
            add_text(span, rows[i].items[k].name, str_or_empty(exchange_eval(x, rows[i].items[k].value)));
    }
}

static struct str span_name(struct exchange *x, const struct otel_conf *conf)
{
    struct str name = conf->span_name ? str_or_empty(exchange_eval(x, conf->span_name)) : exchange_location_name(x);

    return str_empty(name) ? x->request.method_name : name;
}

/* The clocks are read here, because the loop's are the same for all events of an iteration. */
static void set_times(struct span *span, const struct exchange *x)
{
    uint64_t took_us = clock_monotonic_us() - x->started_us;

    span->end_ns = clock_wall_ns();
    span->start_ns = span->end_ns - took_us * 1000;
}

void otel_export_span(struct exchange *x, const struct otel_conf *conf, const struct otel_trace *trace)
{
    struct span_zone *zone = conf->otlp ? conf->otlp->zone : NULL;
    unsigned number = worker_number(exchange_worker(x));
    struct span *span = zone ? span_ring_reserve(zone, number) : NULL;

    if (!span)
        return;
    set_times(span, x);
    span_parse_id(trace->own.trace_id, span->trace_id);
    span_parse_id(trace->own.span_id, span->span_id);
    if (trace->parent.trace_id.data) {
        span_parse_id(trace->parent.span_id, span->parent_id);
        span->flags |= SPAN_HAS_PARENT;
    }
    span_set_name(span, span_name(x, conf));
    span_set_tracestate(span, trace->tracestate);
    add_response(span, x);
    add_request(span, x);
    add_server(span, x);
    add_address(span, exchange_client(x), STR("client.address"), STR(""));
    add_address(span, exchange_peer(x), STR("network.peer.address"), STR("network.peer.port"));
    add_configured(span, x, conf);
    add_long(span, x);
    span_ring_commit(zone, number);
}
