/*
 * `status`: the counters of all workers, as Prometheus text or JSON; `stub_status`: the format of nginx. For GET and
 * HEAD, with no-store. Access control is left to other directives.
 */
#include "status.h"

#include "http/exchange.h"
#include "server/module.h"
#include "upstream/upstream_pool.h"

#include <errno.h>
#include <stddef.h>

enum status_format { STATUS_OFF, STATUS_ON, STATUS_PROMETHEUS, STATUS_JSON };

struct status_conf {
    int status_format; /* enum wanted */
    bool nginx;
};

struct format {
    status_page *page;
    struct str media_type; /* Content-Type */
};

static const struct format prometheus = {status_prometheus, {"text/plain; version=0.0.4; charset=utf-8", 40}};
static const struct format json = {status_json, {"application/json", 16}};
static const struct format nginx = {status_nginx, {"text/plain", 10}};

static const char *const choices[] = {"off", "on", "prometheus", "json", NULL};

static const struct directive directives[] = {
    {.name = "status",
     .scopes = SCOPE_LOCATION,
     .type = DIRECTIVE_CHOICE,
     .merge = MERGE_NONE,
     .offset = offsetof(struct status_conf, status_format),
     .choices = choices,
     .fallback = "off",
     .example = "status: on",
     .help =
         "Answer with the counters of all workers: as Prometheus text, as JSON, or (on) by ?format= "
                      "or Accept. All clients that can reach the location get it: use a separate listen address."},
    {.name = "stub_status",
     .scopes = SCOPE_LOCATION,
     .type = DIRECTIVE_SWITCH,
     .merge = MERGE_NONE,
     .offset = offsetof(struct status_conf, nginx),
     .fallback = "off",
     .example = "stub_status: on",
     .help = "Answer with nginx's counters of connections and requests, in the format of nginx's stub_status."},
    {0},
};

static int check_status(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    const struct status_conf *own = conf;

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

/* Selects by the weights in Accept; the first one of equals. Without either type: Prometheus text. */
static const struct format *by_accept(const struct exchange *x)
{
    const struct format *best = &prometheus;
    struct header_list list;
    struct str member;
    unsigned most = 0;

    header_list_start(&list, &x->request.headers, STR("Accept"));
    while (header_list_next(&list, &member)) {
        struct str rest = member;
        struct str type = str_trim(str_cut(&rest, ';'));
        bool is_json = str_equal_nocase(type, STR("application/json"));
        unsigned weight = is_json || str_equal_nocase(type, STR("text/plain")) ? weight_of(member) : 0;

        if (weight > most) {
            most = weight;
            best = is_json ? &json : &prometheus;
        }
    }
    return best;
}

/* NULL: the query has an unknown format. */
static const struct format *by_request(const struct exchange *x)
{
    struct str rest = x->request.query;

    while (rest.data) {
        struct str value = str_cut(&rest, '&');
        struct str name = str_cut(&value, '=');

        if (!str_equal(name, STR("format")))
            continue;
        if (str_equal(value, STR("json")))
            return &json;
        return str_equal(value, STR("prometheus")) ? &prometheus : NULL;
    }
    return by_accept(x);
}

static const struct format *format_of(const struct exchange *x, const struct status_conf *conf)
{
    if (conf->nginx)
        return &nginx;
    if (conf->status_format == STATUS_PROMETHEUS)
        return &prometheus;
    return conf->status_format == STATUS_JSON ? &json : by_request(x);
}

static enum outcome refuse_method(struct exchange *x)
{
    exchange_error_response(x, x->request.method == METHOD_OTHER ? 501 : 405);
    if (headers_add(&x->response.headers, &x->arena, STR("Allow"), STR("GET, HEAD")) < 0)
        return exchange_error_response(x, 500);
    return OUTCOME_RESPONDED;
}

/* Writes the page into the exchange's arena. data NULL: out of memory. */
static struct str write_page(struct exchange *x, const struct format *format)
{
    struct status_values *values = arena_zalloc(&x->arena, 1, sizeof(*values));
    struct str text = {NULL, 0};
    struct buffer buffer = {0};

    if (!values)
        return text;
    if (format == &nginx) /* nginx counts the request for the page under Writing */
        exchange_count_as_writing(x);
    worker_counters(exchange_worker(x), &values->total);
    values->upstreams = upstream_pool_zone(worker_upstreams(exchange_worker(x)));
    status_collect(values);
    if (format->page(values, &buffer) == 0)
        text = arena_copy(&x->arena, buffer_str(&buffer));
    buffer_finish(&buffer);
    return text;
}

static enum outcome status_handler(struct exchange *x, const void *conf, void *state)
{
    const struct status_conf *own = conf;
    const struct format *format;
    struct str text;

    if (x->request.method != METHOD_GET && x->request.method != METHOD_HEAD)
        return refuse_method(x);
    format = format_of(x, own);
    if (!format)
        return exchange_error_response(x, 400);
    text = write_page(x, format);
    if (!text.data)
        return exchange_error_response(x, 500);
    x->response.status = 200;
    x->response.body = body_bytes(&x->arena, text);
    if (!x->response.body ||
        headers_add(&x->response.headers, &x->arena, STR("Content-Type"), format->media_type) < 0 ||
        headers_add(&x->response.headers, &x->arena, STR("Cache-Control"), STR("no-store")) < 0)
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
