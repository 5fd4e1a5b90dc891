/*
 * The directives of an `upstream` block: its servers, how one of them is chosen, and how
 * many idle connections are kept.
 */
#include "upstream/upstream.h"

#include "base/limits.h"

#include <errno.h>
#include <stddef.h>

struct hash_value {
    const struct template *key; /* NULL: not asked for */
};

struct upstream_settings {
    struct conf_rows servers; /* struct upstream_server */
    bool least_conn;
    bool ip_hash;
    bool random;
    struct hash_value hash;
    uint64_t keepalive;
    uint64_t keepalive_timeout_ms;
    uint64_t keepalive_requests;
};

#define AT(field)   offsetof(struct upstream_settings, field)
#define SERVER_HINT STR("write: server: [127.0.0.1:9001, {address: 127.0.0.1:9002, weight: 2, backup: on}]")

struct server_words {
    struct str address;
    uint64_t weight, max_conns, max_fails, fail_timeout_ms;
    bool backup, down;
};

#define IN(field) offsetof(struct server_words, field)

static const struct directive server_keys[] = {
    {.name = "address", .type = DIRECTIVE_TEXT, .offset = IN(address), .help = "Where it listens."},
    {.name = "weight",
     .type = DIRECTIVE_NUMBER,
     .offset = IN(weight),
     .fallback = "1",
     .low = 1,
     .high = 65535,
     .help = "Its share of the requests."},
    {.name = "max_conns",
     .type = DIRECTIVE_NUMBER,
     .offset = IN(max_conns),
     .fallback = "0",
     .help = "Connections of one worker at once; 0: no limit."},
    {.name = "max_fails",
     .type = DIRECTIVE_NUMBER,
     .offset = IN(max_fails),
     .fallback = "1",
     .help = "Failures in a row after which it is left alone for fail_timeout; 0: never."},
    {.name = "fail_timeout",
     .type = DIRECTIVE_DURATION,
     .offset = IN(fail_timeout_ms),
     .fallback = "10s",
     .help = "How long it is left alone."},
    {.name = "backup",
     .type = DIRECTIVE_SWITCH,
     .offset = IN(backup),
     .fallback = "off",
     .help = "Asked only where no other can be."},
    {.name = "down", .type = DIRECTIVE_SWITCH, .offset = IN(down), .fallback = "off", .help = "Never asked."},
    {0},
};

/* "127.0.0.1:9001 weight=2 backup" as the map that it stands for. */
static int words_to_map(struct conf_reader *reader, const struct conf_node *node, struct conf_node *out_map)
{
    struct conf_words words;
    struct conf_pair *pairs;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    pairs = arena_zalloc(reader->arena, words.count + 1, sizeof(*pairs));
    *out_map = *node;
    out_map->kind = CONF_MAP;
    out_map->pairs = pairs;
    out_map->count = words.count;
    for (size_t i = 0; i < words.count && pairs; i++) {
        struct conf_node *made = arena_zalloc(reader->arena, 2, sizeof(*made));
        struct str value = words.items[i];
        struct str name = i == 0 ? STR("address") : str_cut(&value, '=');

        if (!made)
            return -ENOMEM;
        if (i > 0 && str_equal(name, STR("address"))) {
            conf_error(reader->errors, node->mark, SERVER_HINT, "a server has one address");
            return -EINVAL;
        }
        made[0] = made[1] = *node;
        made[0].kind = made[1].kind = CONF_SCALAR;
        made[0].text = name;
        made[1].text = value.data ? value : STR("on");
        pairs[i] = (struct conf_pair){&made[0], &made[1]};
    }
    return pairs ? 0 : -ENOMEM;
}

static int read_server(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct server_words words = {0};
    struct upstream_server *server = out;
    struct conf_node map = *node;
    int error = 0;

    if (node->kind != CONF_MAP)
        error = words_to_map(reader, node, &map);
    if (error == 0)
        error = conf_read_block(reader, &map, server_keys, &words);
    if (error < 0)
        return error;
    if (upstream_server_parse(words.address, 80, server) < 0) {
        conf_error(reader->errors, node->mark, SERVER_HINT, "\"" STR_FMT "\" is no address of a server",
                   STR_ARG(words.address));
        return -EINVAL;
    }
    server->weight = words.weight;
    server->max_conns = words.max_conns;
    server->max_fails = words.max_fails;
    server->fail_timeout_ms = words.fail_timeout_ms;
    server->backup = words.backup;
    server->down = words.down;
    return 0;
}

/* "$request_uri consistent": every hash here is consistent. */
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
                   "hash takes a key, and perhaps consistent");
        return -EINVAL;
    }
    return conf_read_template_word(reader, node, words.items[0], &hash->key);
}

/* "on", "two", "two least_conn": two are drawn, and the one with less to do is asked. */
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

static const struct directive directives[] = {
    {.name = "server",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(servers),
     .row_size = sizeof(struct upstream_server),
     .row = read_server,
     .example = "server: [127.0.0.1:9001, {address: 127.0.0.1:9002, weight: 2, backup: on}]",
     .help =
         "A server of the group: an address, unix: and a path, or a name; with weight, max_conns, max_fails, "
         "fail_timeout, backup and down as in nginx.",
     .schema = "{\"type\": [\"string\", \"object\"]}"},
    {.name = "least_conn",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(least_conn),
     .fallback = "off",
     .help = "Ask the server with the fewest connections for its weight."},
    {.name = "ip_hash",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(ip_hash),
     .fallback = "off",
     .help =
         "Ask the same server for all clients of a network (the first three numbers of an IPv4 address)."},
    {.name = "hash",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(hash),
     .row_size = sizeof(struct hash_value),
     .row = read_hash,
     .example = "hash: $request_uri consistent",
     .help = "Ask the same server for the same key. Always consistent: where a server comes or goes, only "
             "its own "
             "keys move."},
    {.name = "random",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(random),
     .row_size = sizeof(bool),
     .row = read_random,
     .example = "random: two least_conn",
     .help = "Draw two servers, and ask the one with fewer connections."},
    {.name = "keepalive",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_NUMBER,
     .offset = AT(keepalive),
     .fallback = "32",
     .high = 65535,
     .help = "Idle connections to the group that each worker keeps for the next request; 0 keeps none."},
    {.name = "keepalive_timeout",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_DURATION,
     .offset = AT(keepalive_timeout_ms),
     .fallback = "60s",
     .help = "How long such a connection is kept."},
    {.name = "keepalive_requests",
     .scopes = SCOPE_UPSTREAM,
     .type = DIRECTIVE_NUMBER,
     .offset = AT(keepalive_requests),
     .fallback = "1000",
     .low = 1,
     .help = "Requests after which such a connection is closed."},
    {0},
};

const struct conf_group upstream_group = {
    .name = "upstream", .directives = directives, .size = sizeof(struct upstream_settings)};

/* Only one way to choose, and servers that are not all backups. */
static int check(struct conf_reader *reader, const struct conf_node *at, struct str name,
                 const struct upstream_settings *settings)
{
    const struct upstream_server *servers = settings->servers.items;
    unsigned ways =
        settings->least_conn + settings->ip_hash + settings->random + (settings->hash.key != NULL);
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
        conf_error(reader->errors, at->mark, STR("keep one of least_conn, ip_hash, hash and random"),
                   "upstream \"" STR_FMT "\" chooses its servers in more than one way", STR_ARG(name));
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

int upstreams_add(struct upstreams *upstreams, struct conf_reader *reader, const struct conf_node *at,
                  struct str name, const struct upstream_settings *settings)
{
    struct upstream *upstream = arena_zalloc(upstreams->arena, 1, sizeof(*upstream));
    int error;

    if (!upstream)
        return -ENOMEM;
    error = check(reader, at, name, settings);
    if (error < 0)
        return error;
    *upstream = (struct upstream){
        .name = name,
        .named = true,
        .servers = settings->servers.items,
        .count = settings->servers.count,
        .balance = settings->least_conn ? BALANCE_LEAST_CONN
                   : settings->ip_hash  ? BALANCE_IP_HASH
                   : settings->hash.key ? BALANCE_HASH
                   : settings->random   ? BALANCE_RANDOM
                                        : BALANCE_ROUND_ROBIN,
        .keepalive = settings->keepalive,
        .keepalive_timeout_ms = settings->keepalive_timeout_ms,
        .keepalive_requests = settings->keepalive_requests,
    };
    error = read_key(reader, at, settings, upstream);
    if (error == 0)
        upstreams_take(upstreams, upstream);
    return error;
}
