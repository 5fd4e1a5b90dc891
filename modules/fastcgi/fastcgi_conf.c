/*
 * The directives of fastcgi.
 */
#include "fastcgi.h"

#include "base/limits.h"

#include <errno.h>
#include <stddef.h>

#define AT(field) offsetof(struct fastcgi_conf, field)
#define PASS_HINT STR("write: fastcgi_pass: unix:/run/php/php-fpm.sock, 127.0.0.1:9000, or the name of an upstream")

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

int fastcgi_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct fastcgi_conf *own = conf;
    int error;

    own->gateway.gateway = &fastcgi_gateway;
    if (own->gateway.pass.set_in_location && !reader->is_overlay && !conf_map_get(at, STR("fastcgi_pass")))
        own->gateway.pass = (struct gateway_pass){0};
    error = gateway_conf_complete(&own->gateway, reader, at);
    if (error < 0 || own->default_params.count > 0)
        return error;
    return fastcgi_set_default_params(&own->default_params, reader, at);
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
     .row = fastcgi_read_params,
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
