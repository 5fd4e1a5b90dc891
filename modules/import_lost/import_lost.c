/*
 * `import_lost_handler` and `import_lost_access`: directives that `sluice import` writes where it could not convert a
 * handler or an access rule of a location. Until they are deleted, requests are answered with 503 and connections of
 * `stream` are closed.
 */
#include "http/exchange.h"
#include "server/module.h"

#include <errno.h>
#include <stddef.h>

struct import_lost_conf {
    struct conf_rows handlers, access; /* struct str: names of nginx directives */
};

static int read_placeholder(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    return conf_read_text(reader, node, out);
}

static void warn_of_placeholder(struct conf_reader *reader, const struct conf_node *node)
{
    conf_warning(reader->errors, node->mark,
                 STR("replace this placeholder; until then requests get 503"),
                 "import did not carry '" STR_FMT "' over", STR_ARG(node->text));
}

static int check_placeholders(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    static const char *const names[] = {"import_lost_handler", "import_lost_access"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct conf_node *placeholders = conf_map_get(at, str_from(names[i]));

        if (placeholders && placeholders->kind == CONF_SCALAR)
            warn_of_placeholder(reader, placeholders);
        for (size_t k = 0; placeholders && placeholders->kind == CONF_LIST && k < placeholders->count; k++)
            warn_of_placeholder(reader, placeholders->items[k]);
    }
    return 0;
}

static const struct directive directives[] = {
    {.name = "import_lost_handler",
     .scopes = SCOPE_LOCATION,
     .type = DIRECTIVE_REPEAT,
     .merge = MERGE_NONE,
     .offset = offsetof(struct import_lost_conf, handlers),
     .row_size = sizeof(struct str),
     .row = read_placeholder,
     .syntax = "directive",
     .example = "import_lost_handler: uwsgi_pass",
     .help = "Written by sluice import: it could not convert the nginx directive that handles these requests. "
             "Requests are answered with 503 until this placeholder is replaced. Inner locations do not inherit it."},
    {.name = "import_lost_access",
     .scopes = SCOPE_SITE | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_REPEAT,
     .merge = MERGE_APPEND,
     .offset = offsetof(struct import_lost_conf, access),
     .row_size = sizeof(struct str),
     .row = read_placeholder,
     .syntax = "directive",
     .example = "import_lost_access: [auth_jwt, access_by_lua_file]",
     .help = "Written by sluice import: it could not convert nginx directives that restrict access here. "
             "Requests are answered with 503, and connections of stream are closed, until this placeholder is "
             "replaced. Inner scopes inherit it."},
    {0},
};

static bool import_lost_idle(const void *conf)
{
    const struct import_lost_conf *own = conf;

    return own->handlers.count == 0 && own->access.count == 0;
}

static enum outcome import_lost_handler(struct exchange *x, const void *conf, void *state)
{
    return import_lost_idle(conf) ? OUTCOME_DECLINED : exchange_error_response(x, 503);
}

static int import_lost_connected(struct stream *stream, const void *conf, void *state)
{
    return import_lost_idle(conf) ? 0 : 503;
}

static const struct stream_part stream_part = {.connected = import_lost_connected};

const struct module module_import_lost = {
    .name = "import_lost",
    .directives = directives,
    .conf_size = sizeof(struct import_lost_conf),
    .conf_check = check_placeholders,
    .idle = import_lost_idle,
    .server_rule = SERVER_RULE_PREPARES,
    .handler = import_lost_handler,
    .stream = &stream_part,
};
