/* The tables of the sample directives, and the reader of their scopes. */
#include "sample.h"

#include <errno.h>
#include <stddef.h>

static struct str get_text(const void *subject, struct str parameter, struct arena *arena)
{
    return STR("text");
}

static const struct variable variables[] = {
    {"host", false, get_text},
    {"uri", false, get_text},
    {"request_uri", false, get_text},
    {"arg_", true, get_text},
};
const struct variable_table sample_variables = {variables, sizeof(variables) / sizeof(variables[0]), NULL};

static const char *const backends[] = {"auto", "io_uring", "epoll", NULL};
static const char *const levels[] = {"error", "warn", "notice", NULL};
static const char *const symlinks[] = {"off", "on", "if_not_owner", NULL};
static const char *const protocols[] = {"TLSv1.2", "TLSv1.3", NULL};

#define MAIN(field)   offsetof(struct sample_main, field)
#define SITE(field)   offsetof(struct sample_site, field)
#define SERVER(field) offsetof(struct sample_server, field)

static const struct directive error_log_keys[] = {
    {.name = "path", .type = DIRECTIVE_TEXT, .offset = 0, .default_value = "stderr", .help = "Where to."},
    {.name = "level",
     .type = DIRECTIVE_CHOICE,
     .offset = MAIN(error_log.level) - MAIN(error_log),
     .choices = levels,
     .default_value = "error",
     .help = "From which level on."},
    {0},
};

static const struct directive main_directives[] = {
    {.name = "worker_processes",
     .scopes = SCOPE_MAIN,
     .type = DIRECTIVE_NUMBER,
     .offset = MAIN(workers),
     .low = 1,
     .high = 1024,
     .default_value = "1",
     .help = "How many workers."},
    {.name = "daemon",
     .scopes = SCOPE_MAIN,
     .type = DIRECTIVE_SWITCH,
     .offset = MAIN(daemon),
     .default_value = "off",
     .help = "Go into the background."},
    {.name = "error_log",
     .scopes = SCOPE_MAIN,
     .type = DIRECTIVE_BLOCK,
     .offset = MAIN(error_log),
     .children = error_log_keys,
     .help = "The error log.",
     .example = "error_log: {path: stderr, level: notice}"},
    {.name = "use",
     .scopes = SCOPE_EVENTS,
     .type = DIRECTIVE_CHOICE,
     .offset = MAIN(use),
     .choices = backends,
     .default_value = "auto",
     .help = "The backend."},
    {.name = "worker_connections",
     .scopes = SCOPE_EVENTS,
     .type = DIRECTIVE_NUMBER,
     .offset = MAIN(connections),
     .low = 1,
     .default_value = "512",
     .help = "Connections of one worker."},
    {0},
};

/* Appends a copy of the row. An outer scope may share the array, so it is copied and not extended. */
static int rows_append(struct conf_reader *reader, struct conf_rows *rows, const void *row, size_t row_size)
{
    char *items = arena_zalloc(reader->arena, rows->count + 1, row_size);

    if (!items)
        return -ENOMEM;
    if (rows->count)
        memcpy(items, rows->items, rows->count * row_size);
    memcpy(items + rows->count * row_size, row, row_size);
    *rows = (struct conf_rows){items, rows->count + 1};
    return 0;
}

static int read_header(struct conf_reader *reader, const struct conf_pair *pair, struct conf_rows *rows)
{
    struct sample_header header = {.name = pair->key->text};
    int error = conf_read_template(reader, pair->value, &header.value);

    return error < 0 ? error : rows_append(reader, rows, &header, sizeof(header));
}

static int read_headers(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    int result = 0;

    if (node->kind != CONF_MAP) {
        conf_error(reader->errors, node->mark, STR("write add_header: {Name: value}"),
                   "add_header takes a mapping");
        return -EINVAL;
    }
    for (size_t i = 0; i < node->count; i++) {
        int error = read_header(reader, &node->pairs[i], out);

        result = error < 0 ? error : result;
    }
    return result;
}

static int check_site(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct sample_site *site = conf;

    site->checks++;
    if (!str_equal(site->default_type, STR("refuse me")))
        return 0;
    conf_error(reader->errors, at->mark, STR(""), "the check refuses this scope");
    return -EINVAL;
}

static int read_one_text(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    return conf_read_text(reader, node, out);
}

static const struct directive own_keys[] = {
    {.name = "rate",
     .type = DIRECTIVE_NUMBER,
     .offset = SITE(own.rate) - SITE(own),
     .default_value = "7",
     .help = "A number."},
    {.name = "strict", .type = DIRECTIVE_SWITCH, .offset = SITE(own.strict) - SITE(own), .help = "A switch."},
    {.name = "burst",
     .type = DIRECTIVE_NUMBER,
     .offset = SITE(own.burst) - SITE(own),
     .deprecated = "use rate; version 3.0 rejects burst",
     .help = "A number."},
    {0},
};

static const struct directive site_directives[] = {
    {.name = "root",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_PATH,
     .offset = SITE(root),
     .help = "The folder that is served.",
     .example = "root: /srv/www"},
    {.name = "index",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_WORDS,
     .offset = SITE(index),
     .default_value = "index.html",
     .help = "Files tried for a folder."},
    {.name = "charset",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_TEMPLATE,
     .offset = SITE(charset),
     .default_value = "off",
     .help = "A template."},
    {.name = "try_words",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_TEMPLATES,
     .merge = MERGE_APPEND,
     .offset = SITE(try),
     .help = "Templates."},
    {.name = "keepalive_timeout",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_DURATION,
     .offset = SITE(keepalive_ms),
     .high = 3600000,
     .default_value = "75s",
     .help = "How long an idle connection is kept."},
    {.name = "idle_time",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_DURATION,
     .offset = SITE(idle_ms),
     .deprecated = "use keepalive_timeout; version 2.0 rejects idle_time",
     .help = "A deprecated duration."},
    {.name = "idle_close",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .ignored = &(const struct directive_ignored){0},
     .deprecated = "delete it; version 2.0 rejects it",
     .help = "Deprecated and without effect."},
    {.name = "client_max_body_size",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SIZE,
     .offset = SITE(body_size),
     .default_value = "1m",
     .help = "The largest request body."},
    {.name = "client_header_buffer_size",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SIZE,
     .offset = SITE(max_headers),
     .low = 512,
     .high = 1 << 20,
     .default_value = "1k",
     .help = "A size with bounds."},
    {.name = "sendfile",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = SITE(sendfile),
     .default_value = "on",
     .help = "Send files by sendfile."},
    {.name = "internal",
     .scopes = SCOPE_LOCATION,
     .type = DIRECTIVE_SWITCH,
     .merge = MERGE_NONE,
     .offset = SITE(internal),
     .default_value = "off",
     .help = "Only for internal requests."},
    {.name = "disable_symlinks",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CHOICE,
     .offset = SITE(symlinks),
     .choices = symlinks,
     .default_value = "off",
     .help = "Symbolic links."},
    {.name = "default_type",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_TEXT,
     .offset = SITE(default_type),
     .default_value = "text/plain",
     .help = "A text."},
    {.name = "add_header",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CUSTOM, .syntax = "value",
     .merge = MERGE_APPEND,
     .offset = SITE(headers),
     .row_size = sizeof(struct conf_rows),
     .row = read_headers,
     .help = "Header fields to add.",
     .example = "add_header: {X-Frame-Options: DENY}",
     .schema = "{\"type\": \"object\"}"},
    {.name = "allow",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_REPEAT, .syntax = "value",
     .merge = MERGE_APPEND,
     .offset = SITE(allowed),
     .row_size = sizeof(struct str),
     .row = read_one_text,
     .help = "Rows that outer scopes begin."},
    {.name = "more_words",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_WORDS,
     .merge = MERGE_APPEND,
     .offset = SITE(more),
     .default_value = "[x y, z]",
     .help = "Words that outer scopes begin."},
    {.name = "own_limits",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_BLOCK,
     .merge = MERGE_NONE,
     .offset = SITE(own),
     .children = own_keys,
     .help = "A block of each scope's own.",
     .example = "own_limits: {rate: 1}"},
    {0},
};

static const struct directive server_directives[] = {
    {.name = "listen",
     .scopes = SCOPE_SERVER,
     .type = DIRECTIVE_REPEAT, .syntax = "port [ssl]",
     .merge = MERGE_NONE,
     .offset = SERVER(listen),
     .row_size = sizeof(struct str),
     .row = read_one_text,
     .help = "Where to listen.",
     .example = "listen: [80, 443 ssl]"},
    {.name = "server_name",
     .scopes = SCOPE_SERVER,
     .type = DIRECTIVE_WORDS,
     .offset = SERVER(names),
     .help = "Names.",
     .example = "server_name: [example.org, \"*.example.org\"]"},
    {.name = "ssl_protocols",
     .scopes = SCOPE_HTTP | SCOPE_SERVER,
     .type = DIRECTIVE_FLAGS,
     .offset = SERVER(protocols),
     .choices = protocols,
     .default_value = "TLSv1.2 TLSv1.3",
     .help = "Versions."},
    {.name = "ssl_certificate",
     .scopes = SCOPE_HTTP | SCOPE_SERVER,
     .type = DIRECTIVE_PATH,
     .offset = SERVER(certificate),
     .help = "A PEM file.",
     .example = "ssl_certificate: /etc/ssl/site.pem"},
    {0},
};

static int read_return(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    return conf_read_words(reader, node, out);
}

static const struct directive return_directives[] = {
    {.name = "return",
     .scopes = SCOPE_SERVER | SCOPE_LOCATION,
     .type = DIRECTIVE_CUSTOM, .syntax = "value",
     .merge = MERGE_NONE,
     .offset = 0,
     .row_size = sizeof(struct conf_words),
     .row = read_return,
     .help = "Answer at once.",
     .example = "return: 301 https://$host$request_uri"},
    {0},
};

static const struct conf_group main_group = {"core", main_directives, sizeof(struct sample_main), NULL};
static const struct conf_group site_group = {"site", site_directives, sizeof(struct sample_site), check_site};
static const struct conf_group server_group = {"server", server_directives, sizeof(struct sample_server),
                                               NULL};
static const struct conf_group return_group = {"return", return_directives, sizeof(struct sample_return),
                                               NULL};
static const struct conf_group *const groups[] = {&main_group, &site_group, &server_group, &return_group};
const struct conf_schema sample_schema = {groups, SAMPLE_GROUPS};

static void walk_locations(struct conf_reader *reader, const struct conf_node *outer_node,
                           const struct conf_scope_values *outer, struct sample_values *out)
{
    static const char *const inner[] = {"location", NULL};
    const struct conf_node *locations = conf_map_get(outer_node, STR("location"));

    for (size_t i = 0; locations && locations->kind == CONF_MAP && i < locations->count; i++) {
        const struct conf_node *node = locations->pairs[i].value;
        const struct conf_scope_values *values =
            conf_scope_read(reader, &sample_schema, SCOPE_LOCATION, node, outer, inner);

        if (!values)
            return;
        out->location = out->location ? out->location : values;
        walk_locations(reader, node, values, out);
        conf_scope_check(reader, &sample_schema, values);
    }
}

static void walk_server(struct conf_reader *reader, const struct conf_node *node,
                        const struct conf_scope_values *http, struct sample_values *out)
{
    static const char *const inner[] = {"location", NULL};
    const struct conf_scope_values *values =
        conf_scope_read(reader, &sample_schema, SCOPE_SERVER, node, http, inner);

    if (!values)
        return;
    out->server = out->server ? out->server : values;
    walk_locations(reader, node, values, out);
    conf_scope_check(reader, &sample_schema, values);
}

void sample_walk(struct conf_reader *reader, const struct conf_node *root, struct sample_values *out)
{
    static const char *const main_inner[] = {"events", "http", NULL};
    static const char *const http_inner[] = {"server", NULL};
    const struct conf_node *events = conf_map_get(root, STR("events"));
    const struct conf_node *http = conf_map_get(root, STR("http"));
    const struct conf_node *servers = conf_map_get(http, STR("server"));

    *out = (struct sample_values){
        .main = conf_scope_read(reader, &sample_schema, SCOPE_MAIN, root, NULL, main_inner)};
    if (out->main && events)
        out->main = conf_scope_read(reader, &sample_schema, SCOPE_EVENTS, events, out->main, NULL);
    if (!out->main || !http)
        return;
    out->http = conf_scope_read(reader, &sample_schema, SCOPE_HTTP, http, out->main, http_inner);
    if (!out->http)
        return;
    if (servers && servers->kind == CONF_LIST) {
        for (size_t i = 0; i < servers->count; i++)
            walk_server(reader, servers->items[i], out->http, out);
    } else if (servers) {
        walk_server(reader, servers, out->http, out);
    }
    conf_scope_check(reader, &sample_schema, out->http);
}
