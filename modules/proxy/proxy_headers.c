/*
 * The header of an HTTP request: forwarded fields, fields about the client, and those of proxy_set_header.
 */
#include "proxy.h"

#include "http/connection_options.h"
#include "http/h2/client_session.h"
#include "modules/gateway/fields.h"

#include <errno.h>

/* RFC 7239 6: IPv6 addresses are quoted and in brackets; a client without an IP address is "unknown". */
static struct str forwarded_for(struct arena *arena, struct str address)
{
    if (str_starts(address, STR("unix:")))
        return STR("unknown");
    if (str_find(address, ':') < 0)
        return address;
    return arena_printf(arena, "\"[" STR_FMT "]\"", STR_ARG(address));
}

static struct str forwarded_value(struct exchange *x, struct str address, struct str host, struct str scheme)
{
    struct str from = forwarded_for(&x->arena, address);

    if (!from.data)
        return from;
    if (str_empty(host))
        return arena_join(&x->arena, (const struct str[]){STR("for="), from, STR(";proto="), scheme}, 4);
    return arena_join(&x->arena,
                      (const struct str[]){STR("for="), from, STR(";host=\""), host, STR("\";proto="), scheme}, 6);
}

/*
 * Fields of a trusted peer are kept: a list gets this server's value appended, any other field is passed on
 * unchanged.
 */
static int add_forwarded_field(struct gateway_request *p, struct headers *fields, struct str name,
                               struct str own, bool is_list)
{
    struct arena *arena = &p->x->arena;
    struct str all = gateway_forwarded_field(p->x, name);

    if (!all.data)
        return -ENOMEM;
    if (is_list && all.length && own.data)
        own = arena_join(arena, (const struct str[]){all, STR(", "), own}, 3);
    else if (all.length)
        own = all;
    if (str_empty(own))
        return own.data ? 0 : -ENOMEM;
    return headers_add(fields, arena, name, own);
}

static struct str via_value(const struct exchange *x)
{
    return x->request.version == HTTP_1_0   ? STR("1.0 sluice")
           : x->request.version == HTTP_1_1 ? STR("1.1 sluice")
                                            : STR("2 sluice");
}

/* Adds address, scheme and host of the client. The client's own values are dropped, unless it is a trusted peer. */
static int add_origin(struct gateway_request *p, struct headers *fields)
{
    struct exchange *x = p->x;
    struct str address = exchange_eval(x, exchange_is_trusted(x) ? p->conf->peer_addr : p->conf->remote_addr);
    struct str scheme = exchange_eval(x, p->conf->scheme);
    struct str host = gateway_request_host(x);
    struct str all = forwarded_value(x, address, host, scheme);

    if (!address.data || !scheme.data || !all.data || (x->request.port && !host.data) ||
        add_forwarded_field(p, fields, STR("X-Forwarded-For"), address, true) < 0 ||
        add_forwarded_field(p, fields, STR("X-Forwarded-Proto"), scheme, false) < 0 ||
        add_forwarded_field(p, fields, STR("X-Forwarded-Host"), host.data ? host : STR(""), false) < 0 ||
        add_forwarded_field(p, fields, STR("X-Forwarded-Port"), STR(""), false) < 0 ||
        add_forwarded_field(p, fields, STR("X-Forwarded-Server"), STR(""), false) < 0 ||
        add_forwarded_field(p, fields, STR("X-Real-IP"), STR(""), false) < 0 ||
        add_forwarded_field(p, fields, STR("Forwarded"), all, true) < 0)
        return -ENOMEM;
    return headers_add(fields, &x->arena, STR("Via"), via_value(x));
}

/* Returns true if proxy_set_header sets a field with the same CGI variable but another name. */
static bool is_second_name(const struct proxy_conf *conf, struct str name)
{
    const struct proxy_fields *rows = conf->set_headers.items;

    for (size_t i = 0; i < conf->set_headers.count; i++) {
        for (size_t k = 0; k < rows[i].count; k++) {
            struct str set = rows[i].items[k].name;

            if (header_same_variable(set, name) && !str_equal_nocase(set, name))
                return true;
        }
    }
    return false;
}

/* A client's "X_User" must not be sent beside X-User of proxy_set_header, nor the other way round. */
static void remove_second_names(const struct proxy_conf *conf, struct headers *fields)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < fields->count; i++) {
        if (!is_second_name(conf, fields->items[i].name))
            fields->items[kept++] = fields->items[i];
    }
    fields->count = kept;
}

/* proxy_set_header, from the outermost scope to the innermost: later rows replace earlier ones. */
static int set_fields(struct gateway_request *p, struct headers *fields)
{
    const struct conf_rows *set = &proxy_conf_of(p)->set_headers;
    const struct proxy_fields *rows = set->items;

    for (size_t i = 0; i < set->count; i++) {
        for (size_t k = 0; k < rows[i].count; k++) {
            struct str name = rows[i].items[k].name;
            struct str value = exchange_eval(p->x, rows[i].items[k].value);

            if (!value.data)
                return -ENOMEM;
            if (str_empty(value))
                headers_remove(fields, name);
            else if (headers_set(fields, &p->x->arena, name, value) < 0)
                return -ENOMEM;
        }
    }
    return 0;
}

/* Rejects h2c and TLS: requests inside such a connection would bypass all checks of this server. */
static bool may_change_to(struct str protocol)
{
    return !str_equal_nocase(str_slice(protocol, 0, 3), STR("h2c")) &&
           !str_equal_nocase(str_slice(protocol, 0, 4), STR("HTTP")) &&
           !str_equal_nocase(str_slice(protocol, 0, 3), STR("TLS"));
}

/* Returns the client's Upgrade if it may be forwarded; else empty. */
static struct str find_upgrade(const struct exchange *x)
{
    const struct request *request = &x->request;
    const struct header *field = headers_find(&request->headers, STR("Upgrade"));
    struct connection_options options;

    if (!field || (request->version != HTTP_1_1 && !request->tunnel) || request->content_length != 0 ||
        headers_next(&request->headers, STR("Upgrade"), field) || str_find(field->value, ',') >= 0 ||
        str_empty(field->value) || !may_change_to(field->value) ||
        connection_options_read(&request->headers, &options) < 0 || !options.upgrade)
        return STR("");
    return field->value;
}

/* Trailers are forwarded to clients of HTTP/1.1 or later that accept them (RFC 9110 10.1.4). */
static bool passes_trailers(const struct gateway_request *p)
{
    const struct request *request = &p->x->request;

    return request->version >= HTTP_1_1 && !proxy_conf_of(p)->drop_fields && str_empty(p->upgrade) &&
           headers_list_has(&request->headers, STR("TE"), STR("trailers"));
}

/* The same head as fields of HTTP/2. Host becomes :authority. */
static int write_http2(struct gateway_request *p, const struct h1_request_head *head, struct str *out_fault)
{
    struct arena *arena = &p->x->arena;
    struct h2_client_request *request = arena_zalloc(arena, 1, sizeof(*request));
    struct headers *fields = arena_zalloc(arena, 1, sizeof(*fields));
    int error = request && fields ? h1_check_request(arena, head, out_fault) : -ENOMEM;

    if (error < 0)
        return error;
    *fields = *head->headers;
    for (unsigned i = 0; i < fields->count; i++)
        fields->items[i].value = str_trim(fields->items[i].value);
    *request = (struct h2_client_request){
        .pseudo = {.method = head->method,
                   .scheme = p->target.https ? STR("https") : STR("http"),
                   .authority = str_or_empty(headers_value(fields, STR("Host"))),
                   .path = head->target},
        .headers = fields,
        .trailers = &p->x->request.trailers,
        .content_length = head->content_length,
        .send_content_length = head->send_content_length && head->content_length != BODY_LENGTH_UNKNOWN,
        .head = p->sent.method == METHOD_HEAD,
    };
    p->sent.h2 = request;
    return 0;
}

int proxy_write_head(struct gateway_request *p, struct str *out_fault)
{
    static const struct headers none;
    const struct proxy_conf *conf = proxy_conf_of(p);
    const struct request *request = &p->x->request;
    struct arena *arena = &p->x->arena;
    struct headers fields = {0};
    struct h1_request_head head = {
        .method = p->sent.method_name,
        .target = p->sent.uri,
        .headers = &fields,
        .connection = upstream_group_upstream(p->upstream.group)->keepalive && !p->conf->proxy_protocol
                          ? STR("")
                          : STR("close"),
        .send_content_length = request->content_length > 0 || p->sent.content_length > 0 ||
                    headers_find(&request->headers, STR("Content-Length")),
        .content_length = p->sent.content_length,
    };

    p->upgrade = str_empty(p->sent.replacement_body) && !p->conf->gateway->streams ? find_upgrade(p->x) : STR("");
    if (headers_add(&fields, arena, STR("Host"), gateway_target_host(&p->target)) < 0 ||
        gateway_request_fields(conf->drop_fields ? &none : &request->headers, arena, &fields) < 0 ||
        add_origin(p, &fields) < 0)
        return -ENOMEM;
    remove_second_names(conf, &fields);
    if (set_fields(p, &fields) < 0 || (p->cached && p->cache->request_fields(p, &fields) < 0))
        return -ENOMEM;
    if (gateway_counts_hops(p->x) && gateway_forward_hops(p, &fields) < 0)
        return -ENOMEM;
    if (passes_trailers(p)) {
        head.connection = str_empty(head.connection) ? STR("TE") : STR("close, TE");
        if (headers_add(&fields, arena, STR("TE"), STR("trailers")) < 0)
            return -ENOMEM;
    }
    if (proxy_forwards_expect(p) && headers_add(&fields, arena, STR("Expect"), STR("100-continue")) < 0)
        return -ENOMEM;
    headers_remove(&fields, STR("Upgrade"));
    if (!str_empty(p->upgrade)) {
        head.connection = STR("upgrade");
        if (headers_add(&fields, arena, STR("Upgrade"), p->upgrade) < 0 ||
            (request->tunnel && proxy_websocket_begin(p, &fields) < 0))
            return -ENOMEM;
    }
    if (p->conf->gateway->streams)
        return write_http2(p, &head, out_fault);
    return h1_write_request(arena, &head, out_fault, &p->sent.head);
}
