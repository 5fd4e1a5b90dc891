/*
 * Directives of `server`: listening addresses and names.
 */
#include "base/limits.h"
#include "site/capture.h"
#include "site/core.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#define AT(field)   offsetof(struct core_server, field)
#define LISTEN_HINT STR("write an address and its words: 8443 ssl default_server backlog=511")

/* Words of nginx's listen that have no effect, because sluice always applies them. */
static bool is_implied_option(struct str word)
{
    static const char *const words[] = {"reuseport", "bind", "ipv6only=on", "deferred"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (str_equal(word, str_from(words[i])))
            return true;
    }
    return false;
}

/* Words of nginx's listen that sluice does not have, and alternatives. */
static struct str replacement_of(struct str word)
{
    static const struct {
        const char *word, *hint;
    } rows[] = {
        {"http2", "write http2: on in the server, or in http"},
        {"spdy", "write http2: on in the server, or in http"},
        {"quic", "delete it: sluice does not support HTTP/3"},
        {"default", "write default_server"},
        {"ipv6only=off", "listen on both addresses: listen: [8080, '[::]:8080']"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (str_equal(word, str_from(rows[i].word)))
            return str_from(rows[i].hint);
    }
    return LISTEN_HINT;
}

/* Returns the switch that a word without a value sets; NULL: the word sets none. */
static bool *switch_of(struct listen_row *row, struct str word)
{
    if (str_equal(word, STR("ssl")))
        return &row->ssl;
    if (str_equal(word, STR("proxy_protocol")))
        return &row->proxy_protocol;
    return str_equal(word, STR("default_server")) ? &row->is_default : NULL;
}

static int read_option(struct conf_reader *reader, const struct conf_node *node, struct str word,
                       struct listen_row *row)
{
    struct str value = word;
    struct str name = str_cut(&value, '=');
    struct conf_node number = conf_word_node(node, value);

    if (switch_of(row, word)) {
        *switch_of(row, word) = true;
        return 0;
    }
    if (str_equal(name, STR("backlog")) && value.data)
        return conf_read_number(reader, &number, 1, 65535, &row->backlog);
    if (is_implied_option(word))
        return 0;
    conf_error(reader->errors, node->mark, replacement_of(word), "listen has no parameter \"" STR_FMT "\"",
               STR_ARG(word));
    return -EINVAL;
}

static int read_address(struct conf_reader *reader, const struct conf_node *node, struct str text,
                        struct listen_row *row)
{
    char shown[128];

    row->mark = node->mark;
    row->backlog = 511;
    if (listen_address_parse(text, &row->address) < 0) {
        conf_error(reader->errors, node->mark,
                   STR("a port up to 65535, with or without an IP address: 8080, 127.0.0.1:8080, \"[::]:8080\"; or "
                       "unix:/run/sluice.sock"),
                   "\"" STR_FMT "\" is not an address to listen on", STR_ARG(text));
        return -EINVAL;
    }
    row->text = arena_copy(reader->arena, listen_address_format(&row->address, shown, sizeof(shown)));
    return row->text.data ? 0 : -ENOMEM;
}

/* {address: 8443, ssl: on, default_server: on, backlog: 511} */
static int read_listen_map(struct conf_reader *reader, const struct conf_node *node, struct listen_row *row)
{
    const struct conf_node *address = conf_map_get(node, STR("address"));
    struct str text;
    int error;

    if (!address) {
        conf_error(reader->errors, node->mark, STR("{address: 8443, ssl: on}"), "listen needs an address");
        return -EINVAL;
    }
    error = conf_read_text(reader, address, &text);
    if (error == 0)
        error = read_address(reader, address, text, row);
    for (size_t i = 0; i < node->count && error == 0; i++) {
        const struct conf_pair *pair = &node->pairs[i];
        struct str name = pair->key->text;

        if (str_equal(name, STR("address")))
            continue;
        if (switch_of(row, name))
            error = conf_read_switch(reader, pair->value, switch_of(row, name));
        else if (str_equal(name, STR("backlog")))
            error = conf_read_number(reader, pair->value, 1, 65535, &row->backlog);
        else
            error = read_option(reader, pair->key, name, row);
    }
    return error;
}

static int read_listen(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct listen_row *row = out;
    struct conf_words words;
    int error;

    if (node->kind == CONF_MAP)
        return read_listen_map(reader, node, row);
    error = conf_read_words(reader, node, &words);
    if (error < 0)
        return error;
    if (words.count == 0) {
        conf_error(reader->errors, node->mark, LISTEN_HINT, "listen needs an address");
        return -EINVAL;
    }
    error = read_address(reader, node, words.items[0], row);
    for (size_t i = 1; i < words.count && error == 0; i++)
        error = read_option(reader, node, words.items[i], row);
    return error;
}

/* A wildcard may stand for the first label or for the last one only. */
static bool is_server_name(struct str name)
{
    struct str rest = name;

    if (str_starts(rest, STR("*.")))
        rest = str_skip(rest, 2);
    else if (str_starts(rest, STR(".")))
        rest = str_skip(rest, 1);
    else if (str_ends(rest, STR(".*")))
        rest.length -= 2;
    else
        return str_find(name, '*') < 0 && str_find(name, '/') < 0;
    return rest.length > 0 && str_find(rest, '*') < 0 && str_find(rest, '/') < 0;
}

/* "~^www": matches without case, because hosts are compared in lower case. */
static int read_name_pattern(struct conf_reader *reader, const struct conf_node *node, struct str name,
                             struct core_server *server)
{
    int error;

    if (reader->scope == SCOPE_STREAM_SERVER) {
        conf_error(reader->errors, node->mark, STR("write the names, or wildcards: '*.example.com'"),
                   "stream does not support regular expressions in server_name");
        return -EINVAL;
    }
    error = capture_read(reader, node, str_skip(name, 1), true, &server->patterns[server->pattern_count]);
    if (error == 0)
        server->pattern_count++;
    return error;
}

static int check_names(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct core_server *server = conf;
    const struct conf_node *node = conf_map_get(at, STR("server_name"));
    int result = 0;

    server->patterns = arena_zalloc(reader->arena, server->names.count + 1, sizeof(*server->patterns));
    if (!server->patterns)
        return -ENOMEM;
    for (size_t i = 0; i < server->names.count && result != -ENOMEM; i++) {
        struct str name = server->names.items[i];
        const struct conf_node *place = !node ? at : node->kind == CONF_LIST ? node->items[i] : node;

        if (str_starts(name, STR("~"))) {
            int error = read_name_pattern(reader, place, name, server);

            result = error < 0 ? error : result;
        } else if (!is_server_name(name)) {
            conf_error(reader->errors, place->mark,
                       STR("example.com, '*.example.com', 'www.example.*', .example.com or '~^www\\d+\\.'"),
                       "\"" STR_FMT "\" is not a server name", STR_ARG(name));
            result = -EINVAL;
        }
    }
    return result;
}

struct str core_default_address(void)
{
    return geteuid() == 0 ? STR("0.0.0.0:80") : STR("0.0.0.0:8000");
}

static const struct directive directives[] = {
    {.name = "listen",
     .scopes = SCOPE_SERVER | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_REPEAT,
     .merge = MERGE_NONE,
     .offset = AT(listens),
     .row_size = sizeof(struct listen_row),
     .row = read_listen,
     .syntax = "[address:]port | unix:path [ssl] [proxy_protocol] [default_server] [backlog=number]",
     .example = "listen: [8443 ssl default_server, \"[::]:8443 ssl\"]",
     .help =
         "An address, and optionally: ssl, proxy_protocol, default_server, backlog=N. reuseport is always on.",
     .schema = "{\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"integer\"}, {\"type\": \"object\"}]}"},
    {.name = "server_name",
     .scopes = SCOPE_SERVER | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_WORDS,
     .merge = MERGE_NONE,
     .offset = AT(names),
     .example = "server_name: [example.com, '*.example.com', '~^(?<user>[a-z]+)\\.example\\.net$']",
     .help =
         "Names of this server. A star at the beginning or end stands for one or more labels. A name that begins with "
         "~ is a regular expression; these are tried after all other names, in the order of the file."},
    {0},
};

const struct conf_group core_server_group = {
    .name = "server",
    .directives = directives,
    .size = sizeof(struct core_server),
    .check = check_names,
};
