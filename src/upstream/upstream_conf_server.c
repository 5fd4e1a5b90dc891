/*
 * A `server` of an `upstream` block: "127.0.0.1:9001 weight=2 backup", or a map of the same words.
 */
#include "upstream/upstream_conf.h"

#include "base/limits.h"

#include <errno.h>
#include <stddef.h>

#define SERVER_HINT STR("write: server: [127.0.0.1:9001, {address: 127.0.0.1:9002, weight: 2, backup: on}]")

struct server_words {
    struct str address;
    uint64_t weight, max_conns, max_fails, fail_timeout_ms, slow_start_ms;
    struct str service;
    bool backup, down, resolve;
};

#define IN(field) offsetof(struct server_words, field)

static const struct directive server_keys[] = {
    {.name = "address", .type = DIRECTIVE_TEXT, .offset = IN(address), .help = "The address of the server."},
    {.name = "weight",
     .type = DIRECTIVE_NUMBER,
     .offset = IN(weight),
     .default_value = "1",
     .low = 1,
     .high = LIMIT_UPSTREAM_WEIGHT,
     .help = "Its share of the requests; sluice ctl upstreams weight changes it while the server runs."},
    {.name = "max_conns",
     .type = DIRECTIVE_NUMBER,
     .offset = IN(max_conns),
     .default_value = "0",
     .help = "The maximum number of active requests to it, of all workers; 0: no limit."},
    {.name = "max_fails",
     .type = DIRECTIVE_NUMBER,
     .offset = IN(max_fails),
     .default_value = "1",
     .help = "The number of failures in a row after which it is not used for fail_timeout; 0: never."},
    {.name = "fail_timeout",
     .type = DIRECTIVE_DURATION,
     .offset = IN(fail_timeout_ms),
     .default_value = "10s",
     .help = "The time for which it is not used; doubled after each failed retry, up to 5m."},
    {.name = "slow_start",
     .type = DIRECTIVE_DURATION,
     .offset = IN(slow_start_ms),
     .default_value = "0",
     .help = "The time in which its weight grows to the full value after recovery; not with hash, ip_hash and "
             "random."},
    {.name = "backup",
     .type = DIRECTIVE_SWITCH,
     .offset = IN(backup),
     .default_value = "off",
     .help = "Used only if no other server is available."},
    {.name = "service",
     .type = DIRECTIVE_TEXT,
     .offset = IN(service),
     .help = "The service whose SRV records name the servers: \"http\" is _http._tcp."},
    {.name = "resolve",
     .type = DIRECTIVE_SWITCH,
     .offset = IN(resolve),
     .default_value = "on",
     .help = "No effect: names are always resolved again."},
    {.name = "down",
     .type = DIRECTIVE_SWITCH,
     .offset = IN(down),
     .default_value = "off",
     .help = "The server is not used until sluice ctl upstreams up; a name is not resolved, and stays unused."},
    {0},
};

int upstream_words_to_map(struct conf_reader *reader, const struct conf_node *node, const struct conf_words *words,
                          const char *first, struct conf_node *out_map)
{
    struct conf_pair *pairs = arena_zalloc(reader->arena, words->count + 1, sizeof(*pairs));

    *out_map = *node;
    out_map->kind = CONF_MAP;
    out_map->pairs = pairs;
    out_map->count = words->count;
    for (size_t i = 0; i < words->count && pairs; i++) {
        struct conf_node *made = arena_zalloc(reader->arena, 2, sizeof(*made));
        struct str value = words->items[i];
        struct str name = i == 0 && first ? str_from(first) : str_cut(&value, '=');

        if (!made)
            return -ENOMEM;
        if (i > 0 && first && str_equal(name, str_from(first))) {
            conf_error(reader->errors, node->mark, STR("write it once, as the first word"), "%s is set twice",
                       first);
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

static int words_to_map(struct conf_reader *reader, const struct conf_node *node, struct conf_node *out_map)
{
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    return error < 0 ? error : upstream_words_to_map(reader, node, &words, "address", out_map);
}

/* True for a name without a port: the ports are in SRV records, which an address does not have. */
static bool may_have_service(struct str address)
{
    return str_find(address, ':') < 0 && address.length > 0;
}

int upstream_read_server(struct conf_reader *reader, const struct conf_node *node, void *out)
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
        conf_error(reader->errors, node->mark, SERVER_HINT, "\"" STR_FMT "\" is not an address of a server",
                   STR_ARG(words.address));
        return -EINVAL;
    }
    server->service = words.service;
    if (!str_empty(server->service) && (str_empty(server->host) || !may_have_service(words.address))) {
        conf_error(reader->errors, node->mark, STR("write: server: {address: app.internal, service: http}"),
                   "service requires a name without a port");
        return -EINVAL;
    }
    server->weight = words.weight;
    server->max_conns = words.max_conns;
    server->max_fails = words.max_fails;
    server->fail_timeout_ms = words.fail_timeout_ms;
    server->slow_start_ms = words.slow_start_ms;
    server->backup = words.backup;
    server->down = words.down;
    return 0;
}
