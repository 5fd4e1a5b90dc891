/*
 * `status`: the counters of all workers, as Prometheus text, JSON or an HTML page; `stub_status`: the format of nginx.
 * For GET and HEAD, with no-store. Access control is left to other directives.
 */
#include "status.h"

#include "http/exchange.h"
#include "server/module.h"
#include "server/page/page.h"
#include "upstream/upstream_pool.h"

#include <errno.h>
#include <stddef.h>

enum status_format { STATUS_OFF, STATUS_ON, STATUS_PROMETHEUS, STATUS_JSON, STATUS_HTML };

struct status_conf {
    int status_format; /* enum status_format */
    bool nginx;
    /* complete when requests are handled */
    const struct acme *acme;
    const struct caches *caches;
    const struct limits *limits;
};

struct format {
    const char *name;               /* in ?format= */
    status_page *page;
    struct str type;                /* media type in Accept */
    struct str content_type;
};

/* In the order of enum status_format. The first one is the default. */
static const struct format formats[] = {
    {"prometheus", status_prometheus, {"text/plain", 10}, {"text/plain; version=0.0.4; charset=utf-8", 40}},
    {"json", status_json, {"application/json", 16}, {"application/json", 16}},
    {"html", status_html, {"text/html", 9}, {"text/html; charset=utf-8", 24}},
};
static const struct format nginx = {.page = status_nginx, .content_type = {"text/plain", 10}};

#define FORMATS (sizeof(formats) / sizeof(formats[0]))

static const char *const choices[] = {"off", "on", "prometheus", "json", "html", NULL};

static const struct directive directives[] = {
    {.name = "status",
     .scopes = SCOPE_LOCATION,
     .type = DIRECTIVE_CHOICE,
     .merge = MERGE_NONE,
     .offset = offsetof(struct status_conf, status_format),
     .choices = choices,
     .default_value = "off",
     .example = "status: on",
     .help =
         "Answer with the counters of all workers: as Prometheus text, as JSON, as an HTML page, or (on) by ?format= "
         "or Accept: browsers get the page. All clients that can reach the location get it: use a separate listen "
         "address."},
    {.name = "stub_status",
     .scopes = SCOPE_LOCATION,
     .type = DIRECTIVE_SWITCH,
     .merge = MERGE_NONE,
     .offset = offsetof(struct status_conf, nginx),
     .default_value = "off",
     .example = "stub_status: on",
     .help = "Answer with nginx's counters of connections and requests, in the format of nginx's stub_status."},
    {0},
};

static int check_status(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct status_conf *own = conf;

    own->acme = reader->acme;
    own->caches = reader->caches;
    own->limits = reader->limits;
    if (own->status_format == STATUS_OFF || !own->nginx)
        return 0;
    conf_error(reader->errors, at->mark, STR("use a separate location for each"),
               "status and stub_status cannot be used in one location");
    return -EINVAL;
}

/* The weight of a member of Accept, in thousandths (RFC 9110 12.4.2). */
static unsigned weight_of(struct str member)
{
    unsigned weight = 1000;

    (void)str_cut(&member, ';');
    while (member.data) {
        struct str parameter = str_trim(str_cut(&member, ';'));

        if (parameter.length < 3 || !str_equal_nocase(str_slice(parameter, 0, 2), STR("q=")))
            continue;
        weight = parameter.data[2] == '1' ? 1000 : 0;
        for (size_t i = 4, digit = 100; weight < 1000 && i < parameter.length && digit > 0; i++, digit /= 10)
            weight += parameter.data[i] >= '0' && parameter.data[i] <= '9'
                          ? (unsigned)((size_t)(parameter.data[i] - '0') * digit)
                          : 0;
    }
    return weight;
}

/* NULL: no format has this media type. */
static const struct format *by_type(struct str type)
{
    for (size_t i = 0; i < FORMATS; i++) {
        if (str_equal_nocase(type, formats[i].type))
            return &formats[i];
    }
    return NULL;
}

/* Returns the format with the highest weight in Accept, the first one of equal weights. Default: Prometheus text. */
static const struct format *by_accept(const struct exchange *x)
{
    const struct format *best = &formats[0];
    struct header_list list;
    struct str member;
    unsigned max = 0;

    header_list_start(&list, &x->request.headers, STR("Accept"));
    while (header_list_next(&list, &member)) {
        struct str rest = member;
        const struct format *format = by_type(str_trim(str_cut(&rest, ';')));
        unsigned weight = format ? weight_of(member) : 0;

        if (weight > max) {
            max = weight;
            best = format;
        }
    }
    return best;
}

/* NULL: there is no such format. */
static const struct format *by_name(struct str name)
{
    for (size_t i = 0; i < FORMATS; i++) {
        if (str_equal(name, str_from(formats[i].name)))
            return &formats[i];
    }
    return NULL;
}

/* NULL: the query has an unknown format. */
static const struct format *by_request(const struct exchange *x)
{
    struct str rest = x->request.query;

    while (rest.data) {
        struct str value = str_cut(&rest, '&');
        struct str name = str_cut(&value, '=');

        if (str_equal(name, STR("format")))
            return by_name(value);
    }
    return by_accept(x);
}

static const struct format *format_of(const struct exchange *x, const struct status_conf *conf)
{
    if (conf->nginx)
        return &nginx;
    return conf->status_format == STATUS_ON ? by_request(x) : &formats[conf->status_format - STATUS_PROMETHEUS];
}

static enum outcome reject_method(struct exchange *x)
{
    exchange_error_response(x, x->request.method == METHOD_OTHER ? 501 : 405);
    if (headers_add(&x->response.headers, &x->arena, STR("Allow"), STR("GET, HEAD")) < 0)
        return exchange_error_response(x, 500);
    return OUTCOME_RESPONDED;
}

/* Writes the page into the exchange's arena. data NULL: out of memory. */
static struct str write_page(struct exchange *x, const struct format *format, const struct status_conf *conf)
{
    struct status_values *values = arena_zalloc(&x->arena, 1, sizeof(*values));
    const struct status_zones *zones;
    struct str text = {NULL, 0};
    struct buffer buffer = {0};
    unsigned slots;

    if (!values)
        return text;
    if (format == &nginx) /* nginx counts the request for the page under Writing */
        exchange_count_as_writing(x);
    worker_counters(exchange_worker(x), &values->total);
    values->upstreams = upstream_pool_zone(worker_upstreams(exchange_worker(x)));
    values->acme = conf->acme;
    values->now_s = clock_wall_s(exchange_clock(x));
    status_collect(values);
    zones = worker_status_zones(exchange_worker(x), &slots);
    if (format != &nginx && (status_zones_collect(values, &x->arena, zones, slots) < 0 ||
                             status_caches_collect(values, &x->arena, conf->caches) < 0 ||
                             status_limits_collect(values, &x->arena, conf->limits) < 0))
        return text;
    if (format->page(values, &buffer) == 0)
        text = arena_copy(&x->arena, buffer_str(&buffer));
    buffer_finish(&buffer);
    return text;
}

static int add_fields(struct exchange *x, const struct format *format)
{
    struct headers *fields = &x->response.headers;
    int error = headers_add(fields, &x->arena, STR("Content-Type"), format->content_type);

    if (error == 0)
        error = headers_add(fields, &x->arena, STR("Cache-Control"), STR("no-store"));
    if (error == 0 && format->page == status_html)
        error = exchange_set_security_policy(x, page_policy);
    return error;
}

static enum outcome status_handler(struct exchange *x, const void *conf, void *state)
{
    const struct status_conf *own = conf;
    const struct format *format;
    struct str text;

    if (x->request.method != METHOD_GET && x->request.method != METHOD_HEAD)
        return reject_method(x);
    format = format_of(x, own);
    if (!format)
        return exchange_error_response(x, 400);
    text = write_page(x, format, own);
    if (!text.data)
        return exchange_error_response(x, 500);
    x->response.status = 200;
    x->response.body = body_bytes(&x->arena, text);
    if (!x->response.body || add_fields(x, format) < 0)
        return exchange_error_response(x, 500);
    return OUTCOME_RESPONDED;
}

static bool status_idle(const void *conf)
{
    const struct status_conf *own = conf;

    return own->status_format == STATUS_OFF && !own->nginx;
}

const struct module module_status = {
    .name = "status",
    .directives = directives,
    .conf_size = sizeof(struct status_conf),
    .conf_check = check_status,
    .idle = status_idle,
    .handler = status_handler,
};
