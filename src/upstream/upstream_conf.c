/*
 * The directives of an `upstream` block: servers, load balancing, idle connections.
 */
#include "upstream/upstream_conf.h"

#include "base/limits.h"

#include <errno.h>
#include <stddef.h>

struct hash_value {
    const struct template *key; /* NULL: not set */
};

struct upstream_settings {
    struct conf_rows servers; /* struct upstream_server */
    bool least_conn;
    bool ip_hash;
    bool random;
    int least_time;                 /* 0: off */
    struct upstream_sticky sticky;
    struct upstream_check *check;   /* NULL: none */
    struct upstream_zone_words zone;
    struct hash_value hash;
    struct resolver_settings resolver;
    uint64_t resolver_timeout_ms;
    uint64_t keepalive;
    uint64_t keepalive_timeout_ms;
    uint64_t keepalive_requests;
};

#define AT(field)   offsetof(struct upstream_settings, field)
#define SERVER_HINT STR("write: server: [127.0.0.1:9001, {address: 127.0.0.1:9002, weight: 2, backup: on}]")

/* Reads "$request_uri consistent". The word `consistent` has no effect: every hash is consistent. */
static int read_hash(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct hash_value *hash = out;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    if (words.count < 1 || words.count > 2 ||
        (words.count == 2 && !str_equal(words.items[1], STR("consistent")))) {
        conf_error(reader->errors, node->mark, STR("write: hash: $request_uri consistent"),
                   "hash takes a key and optionally consistent");
        return -EINVAL;
    }
    return conf_read_template_word(reader, node, words.items[0], &hash->key);
}

/* Reads "on", "two" or "two least_conn", which have the same meaning: the less loaded one of two random peers. */
static int read_random(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    bool *random = out;

    if (node->kind == CONF_SCALAR &&
        (str_equal(node->text, STR("two")) || str_equal(node->text, STR("two least_conn")))) {
        *random = true;
        return 0;
    }
    return conf_read_switch(reader, node, random);
}

static const char *const least_times[] = {"off", "header", "last_byte", NULL};

static const struct directive directives[] = {
    {.name = "server",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(servers),
     .row_size = sizeof(struct upstream_server),
     .row = upstream_read_server,
     .syntax = "address [weight=number] [max_conns=number] [max_fails=number] [fail_timeout=time] "
               "[slow_start=time] [backup] [down]",
     .example = "server: [127.0.0.1:9001, {address: 127.0.0.1:9002, weight: 2, backup: on}]",
     .help =
         "A server of the group: an address, unix: and a path, or a name; with weight, max_conns, max_fails, "
         "fail_timeout, backup and down as in nginx.",
     .schema = "{\"type\": [\"string\", \"object\"]}"},
    {.name = "least_conn",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(least_conn),
     .default_value = "off",
     .example = "least_conn: on",
     .help = "Select the server with the fewest connections relative to its weight."},
    {.name = "least_time",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_CHOICE,
     .offset = AT(least_time),
     .choices = least_times,
     .default_value = "off",
     .example = "least_time: header",
     .help = "Select the server with the lowest recent response time, to the head or the last byte, taking active "
             "requests and weight into account."},
    {.name = "sticky",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(sticky),
     .row_size = sizeof(struct upstream_sticky),
     .row = upstream_read_sticky,
     .syntax = "cookie name [expires=time] [domain=name] [path=path] [httponly] [secure] [samesite=strict "
               "| lax | none]",
     .example = "sticky: cookie srv_id expires=1h path=/ httponly",
     .help = "A cookie assigns a client to the server of its first request, as long as that server is available; "
             "with expires, domain, path, httponly, secure and samesite as in nginx.",
     .schema = "{\"type\": [\"string\", \"object\"]}"},
    {.name = "health_check",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(check),
     .row_size = sizeof(struct upstream_check *),
     .row = upstream_read_check,
     .syntax = "on | {uri: path, interval: time, timeout: time, fails: number, passes: number, match: "
               "[statuses], host: name, https: on, http2: on}",
     .example = "health_check: {uri: /healthz, interval: 5s, fails: 1, passes: 1, match: [200-299, 304]}",
     .help = "Check each server periodically, and send no requests to a server that fails: with uri, interval, "
             "timeout, fails, passes, match (successful statuses), host, https and http2 (the request is sent over "
             "HTTP/2, as with `proxy_http_version: 2`). Without a uri a connection is sufficient.",
     .schema = "{\"type\": [\"string\", \"boolean\", \"object\"]}"},
    {.name = "zone",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(zone),
     .row_size = sizeof(struct upstream_zone_words),
     .row = upstream_read_zone,
     .syntax = "name [size] [ports=any | ports=port[-port][,...]]",
     .example = "zone: backend 64k ports=8080,9000-9019",
     .help = "Permits `sluice ctl upstreams add` and `remove`, which add and remove servers while the server runs. "
             "ports: the TCP ports of such servers, besides those of servers in the configuration, for the sandbox of "
             "the workers. Name and size have no effect: workers always share the state of servers.",
     .schema = "{\"type\": [\"string\", \"array\"]}"},
    {.name = "ip_hash",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(ip_hash),
     .default_value = "off",
     .example = "ip_hash: on",
     .help =
         "Select the server by the client's network (the first three numbers of an IPv4 address)."},
    {.name = "hash",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(hash),
     .row_size = sizeof(struct hash_value),
     .row = read_hash,
     .syntax = "key [consistent]",
     .example = "hash: $request_uri consistent",
     .help = "Select the server by a key. Always consistent: if a server is added or removed, only its keys move. "
             "Requests with an empty key are distributed by round robin."},
    {.name = "random",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(random),
     .row_size = sizeof(bool),
     .row = read_random,
     .syntax = "on | two [least_conn]",
     .example = "random: two least_conn",
     .help = "Choose two servers at random, and select the one with fewer connections."},
    {.name = "resolver",
     .scopes = SCOPE_HTTP | SCOPE_STREAM | SCOPE_UPSTREAM,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(resolver),
     .row_size = sizeof(struct resolver_settings),
     .row = upstream_read_resolver,
     .syntax = "address ... [valid=time] [ipv4=on | off] [ipv6=on | off]",
     .example = "resolver: 127.0.0.1:53 [::1]:5353 valid=30s ipv6=off",
     .help = "Name servers, by address, for names of servers, with valid (replaces the time to live of records), "
             "ipv4 and ipv6. Default: those of resolv.conf. Names are resolved while the server runs; a name that "
             "does not resolve does not prevent the start.",
     .schema = "{\"type\": [\"string\", \"array\", \"object\"]}"},
    {.name = "resolver_timeout",
     .scopes = SCOPE_HTTP | SCOPE_STREAM | SCOPE_UPSTREAM,
     .type = DIRECTIVE_DURATION,
     .offset = AT(resolver_timeout_ms),
     .default_value = "30s",
     .low = 1,
     .high = 3600000,
     .example = "resolver_timeout: 5s",
     .help = "The timeout for resolving a name, including retries."},
    {.name = "keepalive",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_NUMBER,
     .offset = AT(keepalive),
     .default_value = "32",
     .high = 65535,
     .example = "keepalive: 64",
     .help = "The maximum number of idle connections to the group that each worker keeps; 0: none."},
    {.name = "keepalive_timeout",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_DURATION,
     .offset = AT(keepalive_timeout_ms),
     .default_value = "60s",
     .example = "keepalive_timeout: 20s",
     .help = "The time after which an idle connection to a server is closed."},
    {.name = "keepalive_requests",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_NUMBER,
     .offset = AT(keepalive_requests),
     .default_value = "1000",
     .low = 1,
     .example = "keepalive_requests: 10000",
     .help = "The number of requests after which a connection to a server is closed."},
    {0},
};

const struct conf_group upstream_group = {
    .name = "upstream", .directives = directives, .size = sizeof(struct upstream_settings)};

/* Checks that there is at most one balancing method, and at least one server that is not a backup. */
static int check_settings(struct conf_reader *reader, const struct conf_node *at, struct str name,
                          const struct upstream_settings *settings)
{
    const struct upstream_server *servers = settings->servers.items;
    unsigned ways =
        settings->least_conn + settings->ip_hash + settings->random + (settings->hash.key != NULL) +
        (settings->least_time != 0);
    bool primary = false;

    for (size_t i = 0; i < settings->servers.count; i++)
        primary |= !servers[i].backup;
    if (primary && ways <= 1)
        return 0;
    if (!primary)
        conf_error(reader->errors, at->mark, SERVER_HINT,
                   settings->servers.count ? "upstream \"" STR_FMT "\" has only backup servers"
                                           : "upstream \"" STR_FMT "\" has no server",
                   STR_ARG(name));
    else
        conf_error(reader->errors, at->mark, STR("keep one of least_conn, least_time, ip_hash, hash and random"),
                   "upstream \"" STR_FMT "\" has more than one load balancing method", STR_ARG(name));
    return -EINVAL;
}

static int read_key(struct conf_reader *reader, const struct conf_node *at,
                    const struct upstream_settings *settings, struct upstream *upstream)
{
    upstream->key = settings->hash.key;
    if (!settings->ip_hash)
        return 0;
    return conf_read_template_word(reader, at, STR("$remote_addr"), &upstream->key);
}

static bool same_resolver(const struct resolver_settings *a, const struct resolver_settings *b)
{
    return str_equal(a->servers, b->servers) && a->valid_ms == b->valid_ms && a->timeout_ms == b->timeout_ms &&
           a->no_ipv4 == b->no_ipv4 && a->no_ipv6 == b->no_ipv6;
}

/*
 * The settings of the http or stream scope if those of the block are equal, so that a worker has one resolver for each
 * set of settings; else a copy. NULL when out of memory.
 */
static const struct resolver_settings *find_resolver(const struct upstreams *upstreams,
                                                     const struct upstream_settings *settings)
{
    struct resolver_settings resolver = settings->resolver;
    struct resolver_settings *own;

    resolver.timeout_ms = settings->resolver_timeout_ms;
    if (upstreams->resolver[upstreams->user] && same_resolver(&resolver, upstreams->resolver[upstreams->user]))
        return upstreams->resolver[upstreams->user];
    own = arena_zalloc(upstreams->arena, 1, sizeof(*own));
    if (own)
        *own = resolver;
    return own;
}

int upstreams_begin(struct upstreams *upstreams, const struct upstream_settings *settings)
{
    upstreams->resolver[upstreams->user] = find_resolver(upstreams, settings);
    return upstreams->resolver[upstreams->user] ? 0 : -ENOMEM;
}

static enum upstream_balance balance_of(const struct upstream_settings *settings)
{
    static const enum upstream_balance by_time[] = {BALANCE_ROUND_ROBIN, BALANCE_LEAST_TIME_HEADER,
                                                    BALANCE_LEAST_TIME_LAST_BYTE};

    if (settings->least_conn)
        return BALANCE_LEAST_CONN;
    if (settings->ip_hash)
        return BALANCE_IP_HASH;
    if (settings->hash.key)
        return BALANCE_HASH;
    return settings->random ? BALANCE_RANDOM : by_time[settings->least_time];
}

int upstreams_add(struct upstreams *upstreams, struct conf_reader *reader, const struct conf_node *at,
                  struct str name, const struct upstream_settings *settings)
{
    struct upstream *upstream = arena_zalloc(upstreams->arena, 1, sizeof(*upstream));
    int error;

    if (!upstream)
        return -ENOMEM;
    error = check_settings(reader, at, name, settings);
    if (error < 0)
        return error;
    *upstream = (struct upstream){
        .name = name,
        .named = true,
        .servers = settings->servers.items,
        .count = settings->servers.count,
        .balance = balance_of(settings),
        .sticky = settings->sticky,
        .check = settings->check,
        .resolver = find_resolver(upstreams, settings),
        .zone = settings->zone.given,
        .ports = settings->zone.ports,
        .keepalive = settings->keepalive,
        .keepalive_timeout_ms = settings->keepalive_timeout_ms,
        .keepalive_requests = settings->keepalive_requests,
    };
    if (settings->check && upstream_check_complete(upstreams, settings->check, name) < 0)
        return -ENOMEM;
    error = upstream->resolver ? read_key(reader, at, settings, upstream) : -ENOMEM;
    if (error == 0)
        upstreams_append(upstreams, upstream);
    return error;
}
