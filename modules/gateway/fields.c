/*
 * Forwarding of header fields: hop-by-hop fields are removed (RFC 9110 7.6.1). X-Forwarded-For and similar are used
 * from trusted peers only.
 */
#include "fields.h"

#include "http/connection_options.h"
#include "http/freshness.h"

#include <errno.h>

/* Hop-by-hop fields, and fields that are generated: not copied from the client. */
static const struct str own_of_request[] = {
    {"Connection", 10}, {"Content-Length", 14}, {"Expect", 6}, {"Forwarded", 9}, {"Host", 4},
    {"HTTP2-Settings", 14}, {"Keep-Alive", 10}, {"Proxy-Authorization", 19}, {"Proxy-Connection", 16},
    {"TE", 2}, {"Transfer-Encoding", 17}, {"Upgrade", 7}, {"X-Forwarded-For", 15}, {"X-Forwarded-Host", 16},
    {"X-Forwarded-Port", 16}, {"X-Forwarded-Proto", 17}, {"X-Forwarded-Server", 18}, {"X-Real-IP", 9},
    {NULL, 0},
};

static const struct str response_hop_fields[] = {
    {"Connection", 10}, {"Content-Length", 14}, {"Keep-Alive", 10}, {"Proxy-Connection", 16},
    {"Transfer-Encoding", 17}, {"Upgrade", 7},
    {NULL, 0},
};

/* Fields that are removed, as in nginx, unless proxy_pass_header lists them. */
static const struct str hidden[] = {{"Date", 4}, {"Server", 6}, {"X-Pad", 5}, {NULL, 0}};

static bool is_among(const struct str *names, struct str name)
{
    for (; names->length; names++) {
        if (str_equal_nocase(name, *names))
            return true;
    }
    return false;
}

static bool is_in_words(const struct conf_words *words, struct str name)
{
    for (size_t i = 0; i < words->count; i++) {
        if (str_equal_nocase(name, words->items[i]))
            return true;
    }
    return false;
}

bool gateway_drops_fields(const struct headers *headers)
{
    struct connection_options options;

    if (connection_options_read(headers, &options) < 0)
        return true;
    for (unsigned i = 0; options.count > 0 && i < headers->count; i++) {
        struct str name = headers->items[i].name;

        if (!is_among(own_of_request, name) && connection_options_name(&options, name))
            return true;
    }
    return false;
}

/* Omits the fields listed in Connection, which are hop-by-hop. */
static int copy_fields(const struct headers *from, const struct str *own, struct arena *arena,
                       struct headers *to)
{
    struct connection_options options;
    int error = connection_options_read(from, &options);

    for (unsigned i = 0; i < from->count && error == 0; i++) {
        const struct header *field = &from->items[i];

        if (!is_among(own, field->name) && !connection_options_name(&options, field->name))
            error = headers_add(to, arena, field->name, field->value);
    }
    return error;
}

struct str gateway_request_host(struct exchange *x)
{
    char digits[6];
    size_t at = sizeof(digits);

    if (str_empty(x->request.host) || x->request.port == 0)
        return x->request.host;
    for (unsigned port = x->request.port; port > 0; port /= 10)
        digits[--at] = (char)('0' + port % 10);
    digits[--at] = ':';
    return arena_join(&x->arena, (const struct str[]){x->request.host, str_of(digits + at, sizeof(digits) - at)}, 2);
}

struct str gateway_forwarded_field(struct exchange *x, struct str name)
{
    struct str all = STR("");

    if (!exchange_is_trusted(x))
        return all;
    if (headers_join(&x->request.headers, str_equal_nocase, name, STR(", "), &x->arena, &all) < 0)
        return (struct str){NULL, 0};
    return all.data ? all : STR("");
}

struct str gateway_forwarded_for(struct gateway_request *p)
{
    struct exchange *x = p->x;
    struct str address = exchange_eval(x, exchange_is_trusted(x) ? p->conf->peer_addr : p->conf->remote_addr);
    struct str forwarded = gateway_forwarded_field(x, STR("X-Forwarded-For"));

    if (!forwarded.data || !address.data || str_empty(forwarded))
        return forwarded.data ? address : forwarded;
    return arena_join(&x->arena, (const struct str[]){forwarded, STR(", "), address}, 3);
}

int gateway_request_fields(const struct headers *headers, struct arena *arena, struct headers *out)
{
    return copy_fields(headers, own_of_request, arena, out);
}

/* With proxy_cache the upstream server's Date is passed on: the age depends on it (RFC 9111 4.2.3). */
static bool is_hidden(const struct gateway_conf *conf, struct str name)
{
    if (is_in_words(&conf->hide_headers, name))
        return true;
    if (conf->cache.cache && str_equal_nocase(name, STR("Date")))
        return false;
    if (!is_among(hidden, name) &&
        !(name.length > 8 && str_equal_nocase(str_slice(name, 0, 8), STR("X-Accel-"))))
        return false;
    return !is_in_words(&conf->pass_headers, name);
}

int gateway_end_to_end_fields(const struct gateway_request *p, const struct headers *headers, struct headers *out)
{
    return copy_fields(headers, response_hop_fields, &p->x->arena, out);
}

int gateway_pass_fields(const struct gateway_request *p, const struct headers *headers, struct arena *arena,
                        struct headers *out)
{
    unsigned kept = 0;
    int error = copy_fields(headers, response_hop_fields, arena, out);

    for (unsigned i = 0; i < out->count; i++) {
        if (!is_hidden(p->conf, out->items[i].name))
            out->items[kept++] = out->items[i];
    }
    out->count = kept;
    if (error == 0 && p->conf->cache.cache && !headers_have_date(out, clock_wall_s(exchange_clock(p->x))))
        headers_remove(out, STR("Date"));
    return error;
}
