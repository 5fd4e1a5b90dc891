/*
 * Rules about requests that are passed on.
 */
#include "lint/lint_look.h"

/* The part of "http://host/path" before the path. */
static struct str host_of(struct str url)
{
    ssize_t scheme = str_search(url, STR("://"));
    struct str rest = scheme < 0 ? url : str_skip(url, (size_t)scheme + 3);

    return str_cut(&rest, '/');
}

/* Of these a client writes every letter. */
static void host_chosen(struct lint *lint, const struct lint_place *place)
{
    static const char *const chosen[] = {"$host",    "$http_", "$arg_",        "$args",
                                         "$cookie_", "$uri",   "$request_uri", "$query_string",
                                         "$1",       "$2",     "$3",           "$document_uri"};
    const struct conf_node *pass = look_here(place->location->values, "proxy_pass");
    struct str host = host_of(look_text(pass));

    for (size_t i = 0; pass && i < sizeof(chosen) / sizeof(chosen[0]); i++) {
        if (str_search(host, str_from(chosen[i])) >= 0) {
            lint_say(lint, pass->mark, STR("name the server, or make the variable by a map with a default"),
                     "the client chooses where this request goes, to machines that only this one reaches, "
                     "too: \"" STR_FMT "\"",
                     STR_ARG(host));
            return;
        }
    }
}

static void tls_unverified(struct lint *lint, const struct lint_place *place)
{
    const struct conf_node *verify = look_up(place->location->values, "proxy_ssl_verify");
    struct str pass = look_text(look_up(place->location->values, "proxy_pass"));

    if (verify && !look_on(verify) && str_starts(pass, STR("https://")))
        lint_say(
            lint, verify->mark, STR("proxy_ssl_trusted_certificate: the file of its authority"),
            "anybody between here and the server can answer in its place: its certificate is not looked at");
}

/* "location /api" with "proxy_pass http://a/": "/apix" becomes "/x", and "/api/x" becomes "//x". */
static void slash_unequal(struct lint *lint, const struct lint_place *place)
{
    const struct location *location = place->location;
    const struct conf_node *pass = look_here(location->values, "proxy_pass");
    struct str url = look_text(pass);
    struct str host = host_of(url);
    bool prefix = location->kind == LOCATION_PREFIX || location->kind == LOCATION_PREFIX_FINAL;
    bool has_path = pass && host.data + host.length < url.data + url.length;

    if (place->outer && prefix && has_path && str_find(url, '$') < 0 &&
        str_ends(location->pattern, STR("/")) != str_ends(url, STR("/")))
        lint_say(lint, pass->mark, STR("end both with a slash, or leave the path out"),
                 "location \"" STR_FMT
                 "\" and the path of its proxy_pass do not end alike: what follows is put together without a "
                 "slash between, or with two",
                 STR_ARG(location->pattern));
}

/* Cookies of one visitor in the cache are everybody's. */
static void cache_of_one(struct lint *lint, const struct lint_place *place)
{
    const struct conf_scope_values *values = place->location->values;
    const struct conf_node *ignored = look_up(values, "proxy_ignore_headers");
    const struct conf_node *cache = look_up(values, "proxy_cache");

    if (cache && !str_equal(look_text(cache), STR("off")) && look_word(ignored, STR("Set-Cookie")) &&
        !look_word(look_up(values, "proxy_hide_header"), STR("Set-Cookie")))
        lint_say(lint, ignored->mark, STR("proxy_hide_header: Set-Cookie"),
                 "an answer is stored with the cookie that was meant for one visitor, and given to all");
}

const struct lint_rule lint_rules_proxy[] = {
    {"proxy-to-anywhere", LINT_LOCATION, host_chosen,
     "The client chooses the server that a request is passed to."},
    {"proxy-unverified", LINT_LOCATION, tls_unverified,
     "The certificate of a server behind is not looked at."},
    {"proxy-slash", LINT_LOCATION, slash_unequal,
     "A location and the path of its proxy_pass end with a slash both, or neither."},
    {"cached-cookie", LINT_LOCATION, cache_of_one, "A cache keeps answers with the cookie of one visitor."},
    {0},
};
