/*
 * The directives of fastcgi, and the default parameters.
 */
#include "fastcgi.h"

#include "base/limits.h"

#include <errno.h>
#include <stddef.h>

#define AT(field)  offsetof(struct fastcgi_conf, field)
#define PASS_HINT  STR("write: fastcgi_pass: unix:/run/php/php-fpm.sock, 127.0.0.1:9000, or the name of an upstream")
#define PARAM_HINT STR("write: fastcgi_param: [SCRIPT_FILENAME /srv/app/index.php, {APP_ENV: production}]")

static const struct {
    const char *name, *value;
    bool if_not_empty;
} usual[] = {
    {"SCRIPT_FILENAME", "$document_root$fastcgi_script_name", false},
    {"SCRIPT_NAME", "$fastcgi_script_name", false},
    {"PATH_INFO", "$fastcgi_path_info", true},
    {"QUERY_STRING", "$query_string", false},
    {"REQUEST_METHOD", "$request_method", false},
    {"CONTENT_TYPE", "$content_type", false},
    {"CONTENT_LENGTH", "", false}, /* set with the body */
    {"REQUEST_URI", "$request_uri", false},
    {"DOCUMENT_URI", "$document_uri", false},
    {"DOCUMENT_ROOT", "$document_root", false},
    {"SERVER_PROTOCOL", "$server_protocol", false},
    {"REQUEST_SCHEME", "$scheme", false},
    {"HTTPS", "$https", true},
    {"GATEWAY_INTERFACE", "CGI/1.1", false},
    {"SERVER_SOFTWARE", "sluice", false},
    {"REMOTE_ADDR", "$remote_addr", false},
    {"REMOTE_PORT", "$remote_port", false},
    {"SERVER_ADDR", "$server_addr", false},
    {"SERVER_PORT", "$server_port", false},
    {"SERVER_NAME", "$server_name", false},
    {"REDIRECT_STATUS", "200", false}, /* as in nginx's fastcgi.conf, for PHP with cgi.force_redirect */
};

static int read_pass(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct gateway_pass pass = {.set_in_location = reader->scope == SCOPE_LOCATION};
    struct gateway_pass *into = out;
    int error = conf_read_template(reader, node, &pass.text);

    if (error < 0)
        return error;
    if (template_constant(pass.text)) {
        error = fastcgi_gateway.parse(template_text(pass.text), &pass.target);
        if (error == 0)
            pass.upstream =
                upstreams_target(reader->upstreams, pass.target.authority, fastcgi_gateway.port, &error);
        if (!pass.upstream && error == -EINVAL)
            conf_error(reader->errors, node->mark, PASS_HINT, "\"" STR_FMT "\" is not an address of a server",
                       STR_ARG(template_text(pass.text)));
        if (!pass.upstream)
            return error;
    } else {
        reader->upstreams->any_address = true;
    }
    *into = pass;
    return 0;
}

static int reject_param(struct conf_reader *reader, struct conf_mark mark)
{
    conf_error(reader->errors, mark, PARAM_HINT,
               "fastcgi_param takes a name, a value, and optionally if_not_empty");
    return -EINVAL;
}

static int read_params_map(struct conf_reader *reader, const struct conf_node *node, struct fastcgi_params *params)
{
    int error = 0;

    params->items = arena_zalloc(reader->arena, node->count + 1, sizeof(*params->items));
    if (!params->items)
        return -ENOMEM;
    for (size_t i = 0; i < node->count && error == 0; i++) {
        struct fastcgi_param *param = &params->items[params->count++];

        param->name = node->pairs[i].key->text;
        error = str_empty(param->name) ? reject_param(reader, node->pairs[i].key->mark)
                                       : conf_read_template(reader, node->pairs[i].value, &param->value);
    }
    return error;
}

/* "NAME value", optionally followed by "if_not_empty"; or a map from names to values. */
static int read_params(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct fastcgi_params *params = out;
    struct conf_words words;
    int error;

    if (node->kind == CONF_MAP)
        return read_params_map(reader, node, params);
    error = conf_read_words(reader, node, &words);
    if (error < 0)
        return error;
    if (words.count < 2 || words.count > 3 || str_empty(words.items[0]) ||
        (words.count == 3 && !str_equal(words.items[2], STR("if_not_empty"))))
        return reject_param(reader, node->mark);
    params->items = arena_zalloc(reader->arena, 1, sizeof(*params->items));
    if (!params->items)
        return -ENOMEM;
    params->count = 1;
    *params->items = (struct fastcgi_param){.name = words.items[0], .if_not_empty = words.count == 3};
    return conf_read_template_word(reader, node, words.items[1], &params->items->value);
}

static int find_default_params(struct fastcgi_params *params, struct conf_reader *reader, const struct conf_node *at)
{
    size_t count = sizeof(usual) / sizeof(usual[0]);
    int error = 0;

    params->items = arena_zalloc(reader->arena, count, sizeof(*params->items));
    if (!params->items)
        return -ENOMEM;
    for (size_t i = 0; i < count && error == 0; i++) {
        params->items[i].name = str_from(usual[i].name);
        params->items[i].if_not_empty = usual[i].if_not_empty;
        error = conf_read_template_word(reader, at, str_from(usual[i].value), &params->items[i].value);
    }
    params->count = count;
    return error;
}

int fastcgi_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct fastcgi_conf *own = conf;
    int error;

    own->gateway.gateway = &fastcgi_gateway;
    if (own->gateway.pass.set_in_location && !reader->is_overlay && !conf_map_get(at, STR("fastcgi_pass")))
        own->gateway.pass = (struct gateway_pass){0};
    error = gateway_conf_complete(&own->gateway, reader, at);
    return error == 0 && own->default_params.count == 0 ? find_default_params(&own->default_params, reader, at) : error;
}

static int read_split(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    const struct capture **split = out;
    struct str text;
    int error = conf_read_text(reader, node, &text);

    if (error == 0)
        error = capture_read(reader, node, text, false, split);
    if (error < 0 || regex_group_count(capture_regex(*split)) >= 2)
        return error;
    conf_error(reader->errors, node->mark, STR("write: fastcgi_split_path_info: ^(.+\\.php)(/.*)$"),
               "two groups are required: the script, and the rest of the path");
    return -EINVAL;
}

static const struct fastcgi_conf *conf_of(const struct exchange *x)
{
    const struct gateway_request *p = gateway_request_of(x);

    return p && p->x && p->conf->gateway == &fastcgi_gateway ? fastcgi_conf_of(p) : NULL;
}

/* Returns group 1 or 2 of fastcgi_split_path_info; data NULL if it is not configured or does not match. */
static struct str part_of_path(const struct exchange *x, const struct fastcgi_conf *conf, unsigned group)
{
    const struct regex *regex = conf && conf->split_path_info ? capture_regex(conf->split_path_info) : NULL;

    if (!regex || regex_match(regex, x->request.path) != 1)
        return (struct str){NULL, 0};
    return regex_group(regex, x->request.path, group);
}

/* Returns the path of the script: the part before the path info, with fastcgi_index added after a slash. */
static struct str get_script_name(const void *subject, struct str parameter, struct arena *arena)
{
    struct exchange *x = (struct exchange *)(uintptr_t)subject;
    const struct fastcgi_conf *conf = conf_of(x);
    struct str path = part_of_path(x, conf, 1);
    struct str name;

    if (!path.data)
        path = x->request.path;
    if (!conf || !conf->index || !str_ends(path, STR("/")))
        return path;
    name = template_eval(conf->index, x, arena);
    return name.data ? arena_join(arena, (const struct str[]){path, name}, 2) : name;
}

static struct str get_path_rest(const void *subject, struct str parameter, struct arena *arena)
{
    struct str rest = part_of_path(subject, conf_of(subject), 2);

    return rest.data ? rest : STR("");
}

static const struct variable variables[] = {
    {"fastcgi_path_info", false, get_path_rest, .type = "text",
     .help = "The part of the path after the script, by fastcgi_split_path_info."},
    {"fastcgi_script_name", false, get_script_name, .type = "text",
     .help = "Path of the script, with fastcgi_index added after a slash."},
};

const struct variable_table fastcgi_variables = {variables, sizeof(variables) / sizeof(variables[0]), NULL};

#define DURATION(key, field, text)                                                                           \
    {.name = (key),                                                                                          \
     .scopes = SCOPE_SITE,                                                                                   \
     .type = DIRECTIVE_DURATION,                                                                             \
     .offset = AT(gateway.field),                                                                              \
     .default_value = "60s",                                                                                 \
     .example = key ": 20s",                                                                                 \
     .help = (text)}
#define SWITCH(key, field, text)                                                                             \
    {.name = (key),                                                                                          \
     .scopes = SCOPE_SITE,                                                                                   \
     .type = DIRECTIVE_SWITCH,                                                                               \
     .offset = AT(gateway.field),                                                                              \
     .default_value = "off",                                                                                 \
     .example = key ": on",                                                                                  \
     .help = (text)}

const struct directive fastcgi_directives[] = {
    {.name = "fastcgi_pass",
     .scopes = SCOPE_LOCATION,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(gateway.pass),
     .row_size = sizeof(struct gateway_pass),
     .row = read_pass,
     .syntax = "address:port | unix:path | upstream",
     .example = "fastcgi_pass: unix:/run/php/php-fpm.sock",
     .help = "Pass requests to a FastCGI application: an address, unix: and a path, or an upstream."},
    {.name = "fastcgi_param",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_REPEAT,
     .merge = MERGE_APPEND,
     .offset = AT(params),
     .row_size = sizeof(struct fastcgi_params),
     .row = read_params,
     .syntax = "name value [if_not_empty] | {name: value, ...}",
     .example = "fastcgi_param: [SCRIPT_FILENAME /srv/app/index.php, {APP_ENV: production}]",
     .help = "Parameters of the application. SCRIPT_FILENAME and all other standard parameters are set without it; "
             "the last value for a name counts. With if_not_empty, only if the value is not empty.",
     .schema = "{\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"object\"}]}"},
    {.name = "fastcgi_keep_conn",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(keep_conn),
     .default_value = "off",
     .example = "fastcgi_keep_conn: on",
     .help = "Whether applications keep connections open for further requests; keepalive of the upstream limits "
             "their number. Each kept connection occupies a PHP-FPM process."},
    {.name = "fastcgi_index",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_TEMPLATE,
     .offset = AT(index),
     .example = "fastcgi_index: index.php",
     .help = "The script for a path that ends with a slash, in $fastcgi_script_name."},
    {.name = "fastcgi_split_path_info",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(split_path_info),
     .row_size = sizeof(const struct capture *),
     .row = read_split,
     .syntax = "regex",
     .example = "fastcgi_split_path_info: ^(.+\\.php)(/.*)$",
     .help = "A regular expression with two groups: the script in the path ($fastcgi_script_name), and the rest of "
             "the path ($fastcgi_path_info, sent as PATH_INFO)."},
    DURATION("fastcgi_connect_timeout", connect_timeout_ms, "The timeout for connecting to the application."),
    DURATION("fastcgi_send_timeout", send_timeout_ms,
             "The timeout between two successful writes of a request to the application."),
    DURATION("fastcgi_read_timeout", read_timeout_ms, "The timeout between two reads from the application."),
    SWITCH("fastcgi_buffering", buffering.responses, "As proxy_buffering, for responses of applications."),
    SWITCH("fastcgi_request_buffering", buffering.requests,
           "As proxy_request_buffering. A chunked body is always read completely, because FastCGI needs its length."),
    SWITCH("fastcgi_intercept_errors", intercept_errors,
           "Responses with a status from 300 on that error_page lists are replaced by the error page."),
    SWITCH("fastcgi_ignore_client_abort", ignore_client_abort,
           "Continue a request whose client has closed its side of the connection."),
    {.name = "fastcgi_buffers",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(gateway.buffering.count),
     .row_size = 2 * sizeof(uint64_t),
     .row = gateway_read_buffers,
     .default_value = "8 8k",
     .syntax = "number size",
     .example = "fastcgi_buffers: 16 16k",
     .help = "Number and size of the buffers in memory for a response, with fastcgi_buffering."},
    {.name = "fastcgi_buffer_size",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SIZE,
     .offset = AT(gateway.buffer_size),
     .default_value = "16k",
     .low = 1024,
     .high = LIMIT_REQUEST_HEAD,
     .example = "fastcgi_buffer_size: 32k",
     .help = "The maximum length of a response head."},
    {.name = "fastcgi_max_temp_file_size",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SIZE,
     .offset = AT(gateway.buffering.file_max),
     .default_value = "1g",
     .high = LIMIT_SPOOL_FILE,
     .example = "fastcgi_max_temp_file_size: 256m",
     .help = "The maximum size of the temporary file for a response; 0: no file."},
    {.name = "fastcgi_temp_path",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_PATH,
     .written = true,
     .offset = AT(gateway.buffering.directory),
     .default_value = "/var/tmp",
     .example = "fastcgi_temp_path: /var/cache/sluice",
     .help = "The directory of temporary files with response bodies; those with request bodies are in "
             "client_body_temp_path. They are unnamed. It is created as that of proxy_temp_path."},
    {.name = "fastcgi_hide_header",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_WORDS,
     .merge = MERGE_APPEND,
     .offset = AT(gateway.hide_headers),
     .example = "fastcgi_hide_header: X-Powered-By",
     .help = "Header fields of a response that are not passed on, in addition to Date, Server, X-Pad and X-Accel-*."},
    {.name = "fastcgi_pass_header",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_WORDS,
     .merge = MERGE_APPEND,
     .offset = AT(gateway.pass_headers),
     .example = "fastcgi_pass_header: Date",
     .help = "Header fields of a response that are passed on although they are dropped by default."},
    {.name = "fastcgi_ignore_headers",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_FLAGS,
     .offset = AT(gateway.cache.ignore),
     .choices = gateway_ignored_headers,
     .example = "fastcgi_ignore_headers: X-Accel-Redirect",
     .help = "Header fields of a response that are ignored, as with proxy_ignore_headers."},
    {.name = "fastcgi_next_upstream",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_FLAGS,
     .offset = AT(gateway.next),
     .choices = gateway_next_words,
     .default_value = "error timeout",
     .example = "fastcgi_next_upstream: [error, timeout, http_503]",
     .help = "Cases in which another server of the group is tried, as with proxy_next_upstream."},
    {.name = "fastcgi_next_upstream_tries",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_NUMBER,
     .offset = AT(gateway.next_tries),
     .default_value = "0",
     .example = "fastcgi_next_upstream_tries: 2",
     .help = "The maximum number of servers that are tried for one request; 0: all."},
    {.name = "fastcgi_next_upstream_timeout",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_DURATION,
     .offset = AT(gateway.next_timeout_ms),
     .default_value = "0",
     .example = "fastcgi_next_upstream_timeout: 10s",
     .help = "How long further servers are tried, counted from the first attempt; 0: no limit."},
    {0},
};
