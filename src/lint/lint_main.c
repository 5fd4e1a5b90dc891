/*
 * Rules about the whole configuration: processes, addresses, unused names.
 */
#include "lint/lint_config.h"

static void user_root(struct lint *lint, const struct lint_place *place)
{
    const struct conf_node *user = conf_map_get(lint->configuration->tree, STR("user"));

    if (str_equal(config_text(user), STR("root")))
        lint_report(lint, user->mark, STR("user: www-data, or another user without files of its own"),
                    "workers keep the rights of root: a compromised worker controls the machine");
}

static void log_debug(struct lint *lint, const struct lint_place *place)
{
    const struct conf_node *log = conf_map_get(lint->configuration->tree, STR("error_log"));

    if (log && lint->configuration->main->error_log.level == LOG_DEBUG)
        lint_report(lint, log->mark, STR("use level notice"),
                    "each request writes to the error log at level debug");
    if (log && str_equal(lint->configuration->main->error_log.path, STR("/dev/null")))
        lint_report(lint, log->mark, STR("use error_log: {path: stderr, level: crit}"),
                    "errors are discarded: the causes of failures are lost");
}

static bool same_servers(const struct endpoint *a, const struct endpoint *b)
{
    return a->server_count == b->server_count && a->servers[0] == b->servers[0];
}

/*
 * Reports an address with several servers and no default_server. Addresses with the same servers are reported
 * together.
 */
static void default_server(struct lint *lint, const struct lint_place *place)
{
    const struct configuration *configuration = lint->configuration;

    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        const struct endpoint *endpoint = &configuration->endpoints[i];
        bool reported = false;

        for (size_t k = 0; k < i; k++)
            reported |= same_servers(endpoint, &configuration->endpoints[k]);
        if (!reported && endpoint->server_count > 1 && !endpoint->has_default && !endpoint->servers[0]->stream)
            lint_report(lint, endpoint->mark,
                        STR("set default_server on the intended server, or on one that returns 404"),
                        "requests for any other name on " STR_FMT " go to this server, because it is the first one",
                        STR_ARG(endpoint->text));
    }
}

static bool is_pass(struct str key)
{
    return str_ends(key, STR("_pass"));
}

/* "http://name/..." or "name": true if the group is named, or may be named by a variable. */
static bool names_group(struct str text, struct str name)
{
    ssize_t scheme = str_search(text, STR("://"));
    struct str rest = scheme < 0 ? text : str_skip(text, (size_t)scheme + 3);

    return str_find(rest, '$') >= 0 || str_equal(str_cut(&rest, '/'), name);
}

static bool group_used(const struct conf_node *node, struct str name)
{
    bool used = false;

    for (size_t i = 0; node->kind != CONF_SCALAR && i < node->count && !used; i++) {
        const struct conf_node *value = node->kind == CONF_LIST ? node->items[i] : node->pairs[i].value;

        used = node->kind == CONF_MAP && is_pass(node->pairs[i].key->text) && value->kind == CONF_SCALAR
                   ? names_group(value->text, name)
                   : group_used(value, name);
    }
    return used;
}

static void upstream_unused(struct lint *lint, const struct lint_place *place)
{
    static const char *const scopes[] = {"http", "stream"};

    for (size_t s = 0; s < 2; s++) {
        const struct conf_node *scope = conf_map_get(lint->configuration->tree, str_from(scopes[s]));
        const struct conf_node *groups = conf_map_get(scope, STR("upstream"));

        for (size_t i = 0; groups && groups->kind == CONF_MAP && i < groups->count; i++) {
            const struct conf_node *key = groups->pairs[i].key;

            if (!str_starts(key->text, STR("x-")) && !group_used(scope, key->text))
                lint_report(lint, key->mark, STR("name it in proxy_pass, or delete it"),
                            "no proxy_pass, fastcgi_pass or grpc_pass uses upstream \"" STR_FMT "\"",
                            STR_ARG(key->text));
        }
    }
}

static void named_unused(struct lint *lint, const struct lint_place *place)
{
    if (place->location->kind == LOCATION_NAMED &&
        !config_has_word(lint->configuration->tree, place->location->pattern))
        lint_report(lint, config_mark(place), STR("name it in try_files or error_page, or delete it"),
                    "no try_files or error_page uses location " STR_FMT,
                    STR_ARG(place->location->pattern));
}

/* A format is used if an access_log of the tree names it. */
static bool format_used(const struct conf_node *node, struct str name)
{
    bool used = false;

    for (size_t i = 0; node->kind != CONF_SCALAR && i < node->count && !used; i++) {
        const struct conf_node *value = node->kind == CONF_LIST ? node->items[i] : node->pairs[i].value;
        bool log = node->kind == CONF_MAP && str_equal(node->pairs[i].key->text, STR("access_log"));

        used = log ? config_has_word(value, name) : format_used(value, name);
    }
    return used;
}

static void format_unused(struct lint *lint, const struct lint_place *place)
{
    const struct conf_node *http = conf_map_get(lint->configuration->tree, STR("http"));
    const struct conf_node *formats = conf_map_get(http, STR("log_format"));

    for (size_t i = 0; formats && formats->kind == CONF_MAP && i < formats->count; i++) {
        const struct conf_node *key = formats->pairs[i].key;

        if (!format_used(http, key->text))
            lint_report(lint, key->mark, STR("name it in access_log, or delete it"),
                        "no access_log uses the format \"" STR_FMT "\"", STR_ARG(key->text));
    }
}

#define TIMEOUT_MS (5 * 60 * 1000u)

/* Reports long timeouts: idle connections can use up worker_connections. */
static void timeouts_long(struct lint *lint, const struct lint_place *place)
{
    const struct core_site *site = place->location->site;
    const struct {
        const char *name;
        uint64_t ms;
    } timeouts[] = {{"client_header_timeout", site->client_header_timeout_ms},
                    {"client_body_timeout", site->client_body_timeout_ms},
                    {"send_timeout", site->send_timeout_ms},
                    {"keepalive_timeout", site->keepalive_timeout_ms}};

    for (size_t i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
        const struct conf_node *node = config_find_inherited(place->location->values, timeouts[i].name);

        if (node && timeouts[i].ms > TIMEOUT_MS)
            lint_report(lint, node->mark, STR("one minute is enough"),
                        "%s keeps the connection of an idle client open for %llu minutes",
                        timeouts[i].name, (unsigned long long)(timeouts[i].ms / 60000));
    }
}

static void body_unlimited(struct lint *lint, const struct lint_place *place)
{
    const struct conf_node *size = config_find_inherited(place->location->values, "client_max_body_size");

    if (size && place->location->site->client_max_body_size == 0)
        lint_report(lint, size->mark,
                    STR("set the largest reasonable upload, in the location that receives it"),
                    "the length of request bodies is not limited");
}

const struct lint_rule lint_rules_main[] = {
    {"user-root", LINT_WHOLE, user_root, "Workers keep the rights of root."},
    {"error-log", LINT_WHOLE, log_debug, "Errors are discarded, or lost among debug lines."},
    {"no-default-server", LINT_WHOLE, default_server,
     "The order of the file decides which server handles unknown names."},
    {"unused-upstream", LINT_WHOLE, upstream_unused, "An upstream is not used."},
    {"unused-format", LINT_WHOLE, format_unused, "A log_format is not used by any access_log."},
    {"unused-location", LINT_LOCATION, named_unused, "A named location is not used."},
    {"long-timeout", LINT_LOCATION, timeouts_long,
     "An idle client can keep its connection for a long time."},
    {"unlimited-body", LINT_LOCATION, body_unlimited, "Request bodies have no limit."},
    {0},
};
