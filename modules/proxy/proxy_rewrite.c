/*
 * Maps URLs, domains and paths of the upstream server in response fields to those that the client uses.
 */
#include "proxy.h"

#include "base/text_writer.h"

#include <errno.h>

/* Replaces the part of `value` before `rest` by `front`. 0 or -ENOMEM. */
static int replace_front(struct arena *arena, struct str *value, struct str front, struct str rest)
{
    struct str made = arena_join(arena, (const struct str[]){front, rest}, 2);

    if (!made.data)
        return -ENOMEM;
    *value = made;
    return 0;
}

/* True for "//host", "/\host" and "/<tab>/host", which browsers interpret as a URL of another host. */
static bool names_host(struct str url)
{
    struct str two = str_slice(url, 0, 2);

    return two.length == 2 && str_find(STR("/\\\t"), two.data[0]) >= 0 && str_find(STR("/\\\t"), two.data[1]) >= 0;
}

/* As replace_front, for a URL: "http://backend//x" becomes "/x" instead of the URL of another host. 0 or -ENOMEM. */
static int replace_origin(struct arena *arena, struct str *url, struct str front, struct str rest)
{
    int error = replace_front(arena, url, front, rest);

    while (error == 0 && names_host(*url) && !names_host(front))
        *url = str_skip(*url, 1);
    return error;
}

/*
 * Maps "http://backend/one/x" to "/two/x" if the location /two/ passes to http://backend/one/. 1: changed; 0; or
 * -ENOMEM.
 */
static int rewrite_by_default(struct gateway_request *p, struct str *location)
{
    struct exchange *x = p->x;
    struct str uri = p->target.uri.data ? p->target.uri : STR("/");
    struct str front = p->target.uri.data ? exchange_location(x) : STR("/");
    const struct str origin[] = {str_from(gateway_scheme(p)), STR("://"), gateway_target_host(&p->target), uri};
    struct str from;

    if (!p->conf->pass.upstream || !front.data)
        return 0;
    from = arena_join(&x->arena, origin, 4);
    if (!from.data)
        return -ENOMEM;
    if (!str_starts(*location, from))
        return 0;
    return replace_origin(&x->arena, location, front, str_skip(*location, from.length)) < 0 ? -ENOMEM : 1;
}

/* 1: the row matched and changed the value; 0; or -ENOMEM. */
static int rewrite_by_pair(struct gateway_request *p, const struct proxy_rewrite *row, struct str *value)
{
    struct str from = exchange_eval(p->x, row->from);
    struct str to = exchange_eval(p->x, row->to);

    if (!from.data || !to.data)
        return -ENOMEM;
    if (!str_starts(*value, from))
        return 0;
    return replace_origin(&p->x->arena, value, to, str_skip(*value, from.length)) < 0 ? -ENOMEM : 1;
}

/* Applies the first row that matches. 0 or -ENOMEM. */
static int rewrite_url(struct gateway_request *p, struct str *url)
{
    static const struct proxy_rewrite usual = {.kind = REWRITE_DEFAULT};
    const struct proxy_rewrite *rows = proxy_conf_of(p)->redirects.items;
    size_t count = proxy_conf_of(p)->redirects.count;
    int done = 0;

    if (count == 0) {
        rows = &usual;
        count = 1;
    }
    for (size_t i = 0; i < count && done == 0 && rows[i].kind != REWRITE_OFF; i++)
        done = rows[i].kind == REWRITE_DEFAULT ? rewrite_by_default(p, url)
                                               : rewrite_by_pair(p, &rows[i], url);
    return done < 0 ? done : 0;
}

/* Returns the offset of the URL in "5; url=http://backend/x", found as in nginx; -1: none. */
static ssize_t refresh_url_offset(struct str value)
{
    for (size_t i = 0; i + 4 <= value.length; i++) {
        if (str_equal_nocase(str_slice(value, i, i + 4), STR("url=")))
            return (ssize_t)i + 4;
    }
    return -1;
}

static int rewrite_refresh(struct gateway_request *p, struct str *value)
{
    ssize_t at = refresh_url_offset(*value);
    struct str url = at < 0 ? STR("") : str_skip(*value, (size_t)at);
    struct str was = url;

    if (at < 0)
        return 0;
    if (rewrite_url(p, &url) < 0)
        return -ENOMEM;
    return url.data == was.data ? 0 : replace_front(&p->x->arena, value, str_slice(*value, 0, (size_t)at), url);
}

int proxy_rewrite_location(struct gateway_request *p)
{
    const struct headers *headers = &p->x->response.headers;
    struct header *location = headers_find(headers, STR("Location"));
    struct header *refresh = headers_find(headers, STR("Refresh"));
    int error = location ? rewrite_url(p, &location->value) : 0;

    return error == 0 && refresh ? rewrite_refresh(p, &refresh->value) : error;
}

/* Cookies. */

static struct str without_dot(struct str domain)
{
    return str_starts(domain, STR(".")) ? str_skip(domain, 1) : domain;
}

/* A domain is replaced as a whole, ignoring case and a leading dot. */
static int rewrite_domain(struct gateway_request *p, struct str *value)
{
    const struct proxy_rewrite *rows = proxy_conf_of(p)->cookie_domains.items;

    for (size_t i = 0; i < proxy_conf_of(p)->cookie_domains.count && rows[i].kind != REWRITE_OFF; i++) {
        struct str from = exchange_eval(p->x, rows[i].from);
        struct str to = exchange_eval(p->x, rows[i].to);

        if (!from.data || !to.data)
            return -ENOMEM;
        if (str_equal_nocase(without_dot(*value), without_dot(from))) {
            *value = without_dot(to);
            return 0;
        }
    }
    return 0;
}

static int rewrite_path(struct gateway_request *p, struct str *value)
{
    const struct proxy_rewrite *rows = proxy_conf_of(p)->cookie_paths.items;
    int done = 0;

    for (size_t i = 0; i < proxy_conf_of(p)->cookie_paths.count && done == 0 && rows[i].kind != REWRITE_OFF; i++)
        done = rewrite_by_pair(p, &rows[i], value);
    return done < 0 ? done : 0;
}

static const struct proxy_flags *flags_of(const struct proxy_conf *conf, struct str cookie)
{
    const struct proxy_flags *rows = conf->cookie_flags.items;

    for (size_t i = 0; i < conf->cookie_flags.count && !str_empty(rows[i].cookie); i++) {
        if (str_equal(rows[i].cookie, cookie))
            return &rows[i];
    }
    return NULL;
}

/* Parts of a cookie: as many as separated by semicolons, plus those of proxy_cookie_flags. */
struct parts {
    struct str *items;
    size_t count;
};

enum { ADDED_FLAGS = 3 };

static int parts_init(struct arena *arena, struct str cookie, struct parts *parts)
{
    size_t max = 1 + ADDED_FLAGS;

    for (size_t i = 0; i < cookie.length; i++)
        max += cookie.data[i] == ';';
    *parts = (struct parts){.items = arena_zalloc(arena, max, sizeof(struct str))};
    return parts->items ? 0 : -ENOMEM;
}

static void add_part(struct parts *parts, struct str part)
{
    parts->items[parts->count++] = part;
}

/* Returns the attribute to send. data NULL: out of memory; empty: removed. */
static struct str rewrite_cookie_attribute(struct gateway_request *p, struct str part, const struct proxy_flags *flags)
{
    struct str value = part;
    struct str name = str_trim(str_cut(&value, '='));
    int error = 0;

    value = str_trim(value);
    if (flags && ((str_equal_nocase(name, STR("Secure")) && flags->secure) ||
                  (str_equal_nocase(name, STR("HttpOnly")) && flags->http_only) ||
                  (str_equal_nocase(name, STR("SameSite")) && flags->same_site)))
        return STR("");
    if (str_equal_nocase(name, STR("Domain")) && value.data)
        error = rewrite_domain(p, &value);
    else if (str_equal_nocase(name, STR("Path")) && value.data)
        error = rewrite_path(p, &value);
    else
        return part;
    return error < 0 ? (struct str){NULL, 0}
                     : arena_join(&p->x->arena, (const struct str[]){name, STR("="), value}, 3);
}

static void add_flags(struct parts *parts, const struct proxy_flags *flags)
{
    static const char *const same_sites[] = {[SAME_SITE_NONE] = "SameSite=None",
                                             [SAME_SITE_LAX] = "SameSite=Lax",
                                             [SAME_SITE_STRICT] = "SameSite=Strict",
                                             [SAME_SITE_DROP] = NULL};
    const char *same_site = same_sites[flags->same_site];

    if (flags->secure > 0)
        add_part(parts, STR("Secure"));
    if (flags->http_only > 0)
        add_part(parts, STR("HttpOnly"));
    if (same_site)
        add_part(parts, str_from(same_site));
}

static int rewrite_cookie(struct gateway_request *p, struct str *value)
{
    struct arena *arena = &p->x->arena;
    struct str rest = *value;
    struct str pair = str_trim(str_cut(&rest, ';'));
    const struct proxy_flags *flags;
    struct parts parts;
    struct str made;

    if (parts_init(arena, *value, &parts) < 0)
        return -ENOMEM;
    add_part(&parts, pair);
    flags = flags_of(proxy_conf_of(p), str_trim(str_cut(&pair, '=')));
    while (rest.data) {
        struct str part = str_trim(str_cut(&rest, ';'));

        if (!str_empty(part))
            part = rewrite_cookie_attribute(p, part, flags);
        if (!part.data)
            return -ENOMEM;
        if (!str_empty(part))
            add_part(&parts, part);
    }
    if (flags)
        add_flags(&parts, flags);
    made = arena_join_with(arena, parts.items, parts.count, STR("; "));
    if (!made.data)
        return -ENOMEM;
    *value = made;
    return 0;
}

int proxy_rewrite_cookies(struct gateway_request *p)
{
    const struct proxy_conf *conf = proxy_conf_of(p);
    const struct headers *headers = &p->x->response.headers;
    struct str name = STR("Set-Cookie");
    int error = 0;

    if (conf->cookie_domains.count + conf->cookie_paths.count + conf->cookie_flags.count == 0)
        return 0;
    for (struct header *field = headers_find(headers, name); field && error == 0;
         field = headers_next(headers, name, field))
        error = rewrite_cookie(p, &field->value);
    return error;
}
