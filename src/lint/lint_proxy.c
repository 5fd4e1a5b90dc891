/*
 * Rules about proxying.
 */
#include "lint/lint_config.h"

/*
 * Returns the host of "http://host/path", and the path with its slash. The host of "http://unix:/socket:/path" is
 * "unix:/socket".
 */
static struct str host_of(struct str url, struct str *out_path)
{
    ssize_t scheme = str_search(url, STR("://"));
    struct str rest = scheme < 0 ? url : str_skip(url, (size_t)scheme + 3);
    bool local = str_starts(rest, STR("unix:"));
    struct str name = str_skip(rest, local ? 5 : 0);
    ssize_t end = str_find(name, local ? ':' : '/');
    size_t length = end < 0 ? rest.length : rest.length - name.length + (size_t)end;

    *out_path = str_skip(rest, length + local);
    return str_slice(rest, 0, length);
}

/* Variables controlled by the client; a name with a trailing '_' is a prefix. */
static bool is_chosen(struct str name)
{
    static const char *const chosen[] = {"host",         "http_", "arg_",        "args",
                                         "cookie_",      "uri",   "request_uri", "query_string",
                                         "document_uri", "1",     "2",           "3"};

    for (size_t i = 0; i < sizeof(chosen) / sizeof(chosen[0]); i++) {
        struct str known = str_from(chosen[i]);

        if (str_equal(name, known) || (str_ends(known, STR("_")) && str_starts(name, known)))
            return true;
    }
    return false;
}

/* Returns the name of the variable at the beginning of the text, without "$" and "{". */
static struct str variable_name(struct str text)
{
    struct str rest = str_skip(text, str_starts(text, STR("${")) ? 2 : 1);
    size_t length = 0;

    while (length < rest.length &&
           (rest.data[length] == '_' || (rest.data[length] >= '0' && rest.data[length] <= '9') ||
            (rest.data[length] >= 'a' && rest.data[length] <= 'z')))
        length++;
    return str_slice(rest, 0, length);
}

static void host_chosen(struct lint *lint, const struct lint_place *place)
{
    const struct conf_node *pass = config_find(place->location->values, "proxy_pass");
    struct str path, host = host_of(config_text(pass), &path);

    for (size_t i = 0; pass && i < host.length; i++) {
        if (host.data[i] == '$' && is_chosen(variable_name(str_skip(host, i)))) {
            lint_report(lint, pass->mark, STR("name the server, or set the variable by a map with a default"),
                        "the client can choose the target of this request, internal hosts included: \"" STR_FMT "\"",
                        STR_ARG(host));
            return;
        }
    }
}

static void tls_unverified(struct lint *lint, const struct lint_place *place)
{
    const struct conf_node *verify = config_find_inherited(place->location->values, "proxy_ssl_verify");
    struct str pass = config_text(config_find_inherited(place->location->values, "proxy_pass"));

    if (verify && !config_is_on(verify) && str_starts(pass, STR("https://")))
        lint_report(
            lint, verify->mark, STR("set proxy_ssl_trusted_certificate to the certificate of its authority"),
            "the server's certificate is not verified, so an attacker on the network can impersonate it");
}

/* Reports "location /api" with "proxy_pass http://a/": "/apix" becomes "/x", and "/api/x" becomes "//x". */
static void slash_unequal(struct lint *lint, const struct lint_place *place)
{
    const struct location *location = place->location;
    const struct conf_node *pass = config_find(location->values, "proxy_pass");
    struct str url = config_text(pass), path;
    bool prefix = location->kind == LOCATION_PREFIX || location->kind == LOCATION_PREFIX_FINAL;

    host_of(url, &path);
    if (place->outer && prefix && path.length && str_find(url, '$') < 0 &&
        str_ends(location->pattern, STR("/")) != str_ends(path, STR("/")))
        lint_report(lint, pass->mark, STR("end both with a slash, or omit the path"),
                    "location \"" STR_FMT
                    "\" and the path of its proxy_pass do not both end with a slash: the rest of the path is "
                    "appended without a slash, or with two",
                    STR_ARG(location->pattern));
}

static const char *suggest_group(const struct conf_node *groups, struct str name)
{
    const char *suggestion = NULL;
    size_t best = name.length / 3 + 2;

    for (size_t i = 0; groups && groups->kind == CONF_MAP && i < groups->count; i++) {
        struct str own = groups->pairs[i].key->text;
        size_t distance = own.length > 64 || name.length > 64 ? best : str_distance(own, name);

        if (distance < best) {
            suggestion = own.data;
            best = distance;
        }
    }
    return suggestion;
}

/* Reports a name without a dot that is not an upstream group. With a port, it must also resemble a group's name. */
static void group_missing(struct lint *lint, const struct lint_place *place)
{
    static const char *const names[] = {"proxy_pass", "fastcgi_pass", "grpc_pass"};
    const struct conf_node *groups =
        conf_map_get(conf_map_get(lint->configuration->tree, STR("http")), STR("upstream"));

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct conf_node *pass = config_find(place->location->values, names[i]);
        struct str path, host = host_of(config_text(pass), &path);
        struct str name = str_slice(host, 0, str_find(host, ':') < 0 ? host.length : (size_t)str_find(host, ':'));
        const char *suggestion = suggest_group(groups, name);
        struct str hint = STR("write the upstream, or a host with a port");

        if (!pass || str_empty(name) || str_find(host, '.') >= 0 || str_find(host, '$') >= 0 ||
            host.data[0] == '[' || str_equal(name, STR("unix")) || str_equal(name, STR("localhost")) ||
            conf_map_get(groups, name) || (name.length < host.length && !suggestion))
            continue;
        if (suggestion)
            hint = arena_printf(lint->arena, "did you mean \"%s\"?", suggestion);
        lint_report(lint, pass->mark, hint, "there is no upstream \"" STR_FMT "\", and the name is not a host of a "
                                                                              "domain",
                    STR_ARG(name));
    }
}

/* Reports a cache that stores responses with Set-Cookie: it would send the cookie of one client to all clients. */
static void check_cached_cookie(struct lint *lint, const struct lint_place *place)
{
    const struct conf_scope_values *values = place->location->values;
    const struct conf_node *ignored = config_find_inherited(values, "proxy_ignore_headers");
    const struct conf_node *cache = config_find_inherited(values, "proxy_cache");

    if (cache && !str_equal(config_text(cache), STR("off")) && config_has_word(ignored, STR("Set-Cookie")) &&
        !config_has_word(config_find_inherited(values, "proxy_hide_header"), STR("Set-Cookie")))
        lint_report(lint, ignored->mark, STR("proxy_hide_header: Set-Cookie"),
                    "responses are stored with the cookie of one client, and sent to all clients");
}

/* True if fastcgi_param names one script for all paths. */
static bool script_fixed(const struct conf_node *node)
{
    struct str text = config_text(node);

    if (!node)
        return false;
    if (node->kind == CONF_SCALAR)
        return str_equal(str_cut(&text, ' '), STR("SCRIPT_FILENAME")) && str_find(text, '$') < 0;
    for (size_t i = 0; i < node->count; i++) {
        bool named = node->kind == CONF_MAP && str_equal(node->pairs[i].key->text, STR("SCRIPT_FILENAME"));

        if (named && str_find(config_text(node->pairs[i].value), '$') < 0)
            return true;
        if (node->kind == CONF_LIST && script_fixed(node->items[i]))
            return true;
    }
    return false;
}

/* True if a condition checks that the file exists: `!-f $document_root$uri`. */
static bool tests_for_file(const struct conf_node *when)
{
    for (size_t i = 0; when && when->kind == CONF_MAP && i < when->count; i++) {
        if (str_search(when->pairs[i].key->text, STR("-f ")) >= 0)
            return true;
    }
    return false;
}

/* Reports an unchecked script path: for "/avatar.jpg/x.php", PHP with cgi.fix_pathinfo runs /avatar.jpg. */
static void script_unchecked(struct lint *lint, const struct lint_place *place)
{
    const struct conf_scope_values *values = place->location->values;
    const struct conf_node *pass = config_find(values, "fastcgi_pass");
    bool php = place->location->kind == LOCATION_REGEX && str_search(place->location->pattern, STR("php")) >= 0;

    if (pass && php && !config_find(values, "try_files") && !tests_for_file(config_find_inherited(values, "when")) &&
        !script_fixed(config_find_inherited(values, "fastcgi_param")))
        lint_report(lint, pass->mark, STR("add try_files: $uri =404"),
                    "the existence of the script is not checked: for \"/avatar.jpg/x.php\" PHP may run /avatar.jpg, "
                    "which a client has uploaded");
}

const struct lint_rule lint_rules_proxy[] = {
    {"proxy-to-anywhere", LINT_LOCATION, host_chosen,
     "The client can choose the server that a request is passed to."},
    {"proxy-unverified", LINT_LOCATION, tls_unverified,
     "The certificate of an upstream server is not verified."},
    {"proxy-slash", LINT_LOCATION, slash_unequal,
     "Only one of a location and the path of its proxy_pass ends with a slash."},
    {"php-unchecked", LINT_LOCATION, script_unchecked,
     "A location of PHP scripts does not check that the script exists."},
    {"unknown-upstream", LINT_LOCATION, group_missing,
     "Requests are passed to a name that is neither an upstream nor a host of a domain."},
    {"cached-cookie", LINT_LOCATION, check_cached_cookie, "A cache stores responses with the cookie of one client."},
    {0},
};
