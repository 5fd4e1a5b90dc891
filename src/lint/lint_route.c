/*
 * Rules about unreachable locations and patterns that match too much.
 */
#include "lint/lint_config.h"

#include "site/capture.h"

/* A regular expression that matches every path. */
static bool matches_all(const struct location *location)
{
    static const char *const all[] = {"/",    "^/",    ".",   ".*",     "^",       "^.*",  "^.*$",
                                      "^/.*", "^/.*$", "/.*", "^/(.*)", "^/(.*)$", "(.*)", "^(.*)$"};
    struct str text = capture_text(location->regex);

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (str_equal(text, str_from(all[i])))
            return true;
    }
    return false;
}

/* True if `other` has the same expression, and ignores case at least where `location` does. */
static bool matches_at_least(const struct location *other, const struct location *location)
{
    return str_equal(capture_text(other->regex), capture_text(location->regex)) &&
           (str_starts(other->pattern, STR("~*")) || !str_starts(location->pattern, STR("~*")));
}

/*
 * Returns the first regex location of the same scope that precedes `location` and matches all of its paths; NULL:
 * none.
 */
static const struct location *find_wider_location(const struct location *outer, const struct location *location)
{
    for (size_t i = 0; i < outer->pattern_count && outer->patterns[i] != location; i++) {
        const struct location *other = outer->patterns[i];

        if (matches_all(other) || (location->regex && matches_at_least(other, location)))
            return other;
    }
    return NULL;
}

static void location_unreachable(struct lint *lint, const struct lint_place *place)
{
    const struct location *location = place->location, *other;

    if (!place->outer || place->is_overlay || location->kind == LOCATION_EXACT ||
        location->kind == LOCATION_PREFIX_FINAL || location->kind == LOCATION_NAMED)
        return;
    other = find_wider_location(place->outer, location);
    if (other)
        lint_report(lint, config_mark(place),
                    STR("move the general one to the end, or write ^~ or = before this path"),
                    "location \"" STR_FMT "\" is never reached: \"" STR_FMT "\" is tried first and matches",
                    STR_ARG(location->pattern), STR_ARG(other->pattern));
}

/* Reports a server's `return`, which handles requests before a location is selected. */
static void check_return_before_locations(struct lint *lint, const struct lint_place *place)
{
    const struct conf_node *returned = config_find(place->location->values, "return");
    const struct location *root = place->location;

    if (!returned || !root->inner_count)
        return;
    for (size_t i = 0; i < root->inner_count; i++) {
        if (root->inner[i]->kind != LOCATION_NAMED)
            lint_report(lint, returned->mark, STR("move it into location /"),
                        "return of the server handles all requests for location \"" STR_FMT "\"",
                        STR_ARG(root->inner[i]->pattern));
    }
}

/*
 * Reports a location without any directive that produces a response; `deny` counts, since it responds with 403. Such
 * a location can only respond with 404.
 */
static void check_unhandled_location(struct lint *lint, const struct lint_place *place)
{
    static const char *const handlers[] = {"root",      "alias",  "return",      "proxy_pass", "fastcgi_pass",
                                           "grpc_pass", "status", "stub_status", "rewrite",    "when",
                                           "deny"};
    const struct conf_scope_values *values = place->location->values;

    for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
        if (config_find_inherited(values, handlers[i]))
            return;
    }
    if (place->outer && !config_find(values, "try_files") && !config_find(values, "location"))
        lint_report(lint, config_mark(place), STR("add root, return or proxy_pass"),
                    "no directive handles requests in location \"" STR_FMT "\": it has neither files nor a server to "
                                                                           "pass them to",
                    STR_ARG(place->location->pattern));
}

/* True for an unescaped dot before letters, as in ".php". */
static bool has_unescaped_dot(struct str text)
{
    for (size_t i = 0; i + 1 < text.length; i++) {
        char next = text.data[i + 1];

        if (text.data[i] == '\\')
            i++;
        else if (text.data[i] == '[')
            return false;
        else if (text.data[i] == '.' && next >= 'a' && next <= 'z' && (i == 0 || text.data[i - 1] != '('))
            return true;
    }
    return false;
}

/* True for "\.php" without an anchor at the end, which also matches "/a.php/b" and "/a.phpx". */
static bool has_open_extension(struct str text)
{
    ssize_t at = str_search(text, STR("\\."));
    struct str rest = str_skip(text, at < 0 ? text.length : (size_t)at + 2);

    if (at < 0 || !rest.length || (at > 0 && !strchr("*+)", text.data[at - 1])))
        return false;
    for (size_t i = 0; i < rest.length; i++) {
        char c = str_lower(rest.data[i]);

        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !strchr("()|?:", c))
            return false;
    }
    return true;
}

/* Reports loose expressions, except in a location that denies access, where a wider match is safe. */
static void regex_loose(struct lint *lint, const struct lint_place *place)
{
    const struct location *location = place->location;
    struct str text = location->regex ? capture_text(location->regex) : STR("");

    if (!place->outer || !location->regex || config_find(location->values, "deny"))
        return;
    if (has_open_extension(text))
        lint_report(lint, config_mark(place), STR("end it with $"),
                    "\"" STR_FMT "\" matches at any place in a path: \"/a" STR_FMT "x/b\" as well",
                    STR_ARG(text), STR_ARG(str_skip(text, (size_t)str_search(text, STR("\\.")) + 1)));
    else if (has_unescaped_dot(text))
        lint_report(lint, config_mark(place), STR("write \\. for a dot"),
                    "the dot in \"" STR_FMT "\" matches any character", STR_ARG(text));
}

/* Reports an unanchored pattern of names, which matches names of other domains: "example.com.attacker.net". */
static void name_loose(struct lint *lint, const struct lint_place *place)
{
    const struct conf_node *names = config_find(place->server->root->values, "server_name");

    for (size_t i = 0; i < place->server->pattern_count; i++) {
        struct str text = capture_text(place->server->patterns[i]);

        if (!str_starts(text, STR("^")) || !str_ends(text, STR("$")))
            lint_report(lint, names ? names->mark : place->server->root->values->node->mark,
                        STR("~^www\\.example\\.com$"),
                        "the name \"" STR_FMT "\" also matches parts of other names: it lacks ^ and $",
                        STR_ARG(text));
    }
}

/* Reports "return: 301 https://$host$request_uri" of a server that listens with ssl. */
static void redirect_loop(struct lint *lint, const struct lint_place *place)
{
    static const char *const same[] = {"https://$host$request_uri", "https://$host$uri",
                                       "https://$http_host$request_uri", "https://$server_name$request_uri"};
    const struct conf_node *returned = config_find(place->location->values, "return");
    struct str text = config_text(returned);

    if (!returned || place->is_overlay || !config_listens(lint, place->server, true))
        return;
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        if (str_ends(text, str_from(same[i])))
            lint_report(lint, returned->mark, STR("redirect in a server of its own, which listens without ssl"),
                        "the redirect leads back to this server, which listens with ssl, too");
    }
}

/* Reports a redirect to $http_host, which the client chooses and caches may store. */
static void host_chosen(struct lint *lint, const struct lint_place *place)
{
    const struct conf_node *returned = config_find(place->location->values, "return");

    if (str_search(config_text(returned), STR("://$http_host")) >= 0)
        lint_report(lint, returned->mark, STR("write $host, or the name itself"),
                    "$http_host is not checked and may have any port: the client chooses the target of the redirect");
}

const struct lint_rule lint_rules_route[] = {
    {"unreachable-location", LINT_LOCATION, location_unreachable,
     "Another location is tried first and always matches."},
    {"return-before-locations", LINT_SERVER, check_return_before_locations,
     "A server's return handles the requests of all its locations."},
    {"nothing-answers", LINT_LOCATION, check_unhandled_location,
     "A location has neither files nor an upstream server."},
    {"loose-regex", LINT_LOCATION, regex_loose, "A regular expression matches more paths than its text suggests."},
    {"loose-name", LINT_SERVER, name_loose, "A pattern of server_name matches names of other domains."},
    {"redirect-loop", LINT_LOCATION, redirect_loop, "A redirect leads back to its own server."},
    {"host-of-client", LINT_LOCATION, host_chosen, "The client can choose the host of a redirect."},
    {0},
};
