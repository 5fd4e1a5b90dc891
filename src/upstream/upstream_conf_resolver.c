/*
 * `resolver`: "127.0.0.1:53 [::1]:5353 valid=30s ipv6=off", or a map of the same words.
 */
#include "upstream/upstream_conf.h"

#include <errno.h>
#include <stddef.h>

#define HINT STR("write: resolver: 127.0.0.1:53 valid=30s, or {address: [127.0.0.1, \"[::1]\"], ipv6: off}")

struct resolver_words {
    struct conf_words addresses;
    uint64_t valid_ms;
    bool ipv4, ipv6;
};

#define IN(field) offsetof(struct resolver_words, field)

static const struct directive keys[] = {
    {.name = "address", .type = DIRECTIVE_WORDS, .offset = IN(addresses), .help = "Name servers, by address."},
    {.name = "valid",
     .type = DIRECTIVE_DURATION,
     .offset = IN(valid_ms),
     .help = "The time for which answers are used, instead of the time to live of records."},
    {.name = "ipv4", .type = DIRECTIVE_SWITCH, .offset = IN(ipv4), .default_value = "on", .help = "Query A records."},
    {.name = "ipv6",
     .type = DIRECTIVE_SWITCH,
     .offset = IN(ipv6),
     .default_value = "on",
     .help = "Query AAAA records."},
    {0},
};

/* Reads the words of `resolver`: words with a value are settings, others are addresses. */
static int read_resolver_words(struct conf_reader *reader, const struct conf_node *node, struct resolver_words *out)
{
    struct conf_words words, settings = {0}, addresses = {0};
    struct conf_node map;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    settings.items = arena_zalloc(reader->arena, words.count + 1, sizeof(*settings.items));
    addresses.items = arena_zalloc(reader->arena, words.count + 1, sizeof(*addresses.items));
    if (!settings.items || !addresses.items)
        return -ENOMEM;
    for (size_t i = 0; i < words.count; i++) {
        struct conf_words *into = str_find(words.items[i], '=') >= 0 ? &settings : &addresses;

        into->items[into->count++] = words.items[i];
    }
    error = upstream_words_to_map(reader, node, &settings, NULL, &map);
    if (error == 0)
        error = conf_read_block(reader, &map, keys, out);
    out->addresses = addresses;
    return error;
}

/* Joins the addresses with ports in the syntax of c-ares. */
static int join_addresses(struct conf_reader *reader, const struct conf_node *node, const struct conf_words *addresses,
                          struct str *out)
{
    struct str all = {0};

    for (size_t i = 0; i < addresses->count; i++) {
        struct upstream_server server;
        char text[128];

        if (upstream_server_parse(addresses->items[i], 53, &server) < 0 || server.address.length == 0 ||
            server.address.socket.ss_family == AF_UNIX) {
            conf_error(reader->errors, node->mark, HINT, "\"" STR_FMT "\" is not an address of a name server",
                       STR_ARG(addresses->items[i]));
            return -EINVAL;
        }
        listen_address_format(&server.address, text, sizeof(text));
        all = arena_printf(reader->arena, STR_FMT "%s%s", STR_ARG(all), all.data ? "," : "", text);
        if (!all.data)
            return -ENOMEM;
    }
    *out = all;
    return 0;
}

int upstream_read_resolver(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct resolver_settings *settings = out;
    struct resolver_words words = {0};
    int error;

    if (node->kind == CONF_MAP)
        error = conf_read_block(reader, node, keys, &words);
    else
        error = read_resolver_words(reader, node, &words);
    if (error < 0)
        return error;
    if (words.addresses.count == 0 || words.addresses.count > LIMIT_RESOLVE_SERVERS || (!words.ipv4 && !words.ipv6)) {
        conf_error(reader->errors, node->mark, HINT,
                   words.ipv4 || words.ipv6 ? "resolver takes one to %d addresses of name servers"
                                            : "ipv4 and ipv6 cannot both be off",
                   LIMIT_RESOLVE_SERVERS);
        return -EINVAL;
    }
    settings->valid_ms = words.valid_ms;
    settings->no_ipv4 = !words.ipv4;
    settings->no_ipv6 = !words.ipv6;
    return join_addresses(reader, node, &words.addresses, &settings->servers);
}
