/*
 * The directives of fastcgi.
 */
#include "fastcgi.h"

#include "modules/gateway/gateway_rows.h"

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
    GATEWAY_DURATION_ROW("fastcgi_connect_timeout", AT(gateway), connect_timeout_ms, "60s", "20s",
                         "The timeout for connecting to the application."),
    GATEWAY_DURATION_ROW("fastcgi_send_timeout", AT(gateway), send_timeout_ms, "60s", "20s",
                         "The timeout between two successful writes of a request to the application."),
    GATEWAY_DURATION_ROW("fastcgi_read_timeout", AT(gateway), read_timeout_ms, "60s", "20s",
                         "The timeout between two reads from the application."),
    GATEWAY_SWITCH_ROW("fastcgi_buffering", AT(gateway), buffering.responses,
                       "As proxy_buffering, for responses of applications."),
    GATEWAY_SWITCH_ROW("fastcgi_request_buffering", AT(gateway), buffering.requests,
                       "As proxy_request_buffering. A chunked body is always read completely, because FastCGI needs "
                       "its length."),
    GATEWAY_INTERCEPT_ROW("fastcgi", AT(gateway)),
    GATEWAY_IGNORE_ABORT_ROW("fastcgi", AT(gateway)),
    GATEWAY_BUFFERS_ROW("fastcgi", AT(gateway)),
    GATEWAY_BUFFER_SIZE_ROW("fastcgi", AT(gateway)),
    GATEWAY_FILE_SIZE_ROW("fastcgi", AT(gateway),
                          "The maximum size of the temporary file for a response; 0: no file."),
    GATEWAY_FILE_FOLDER_ROW("fastcgi", AT(gateway),
                            "The directory of temporary files with response bodies; those with request bodies are in "
                            "client_body_temp_path. They are unnamed. It is created as that of proxy_temp_path."),
    GATEWAY_FIELDS_ROW("fastcgi_hide_header", AT(gateway), hide_headers, "X-Powered-By",
                       "Header fields of a response that are not passed on, in addition to Date, Server, X-Pad and "
                       "X-Accel-*."),
    GATEWAY_FIELDS_ROW("fastcgi_pass_header", AT(gateway), pass_headers, "Date",
                       "Header fields of a response that are passed on although they are dropped by default."),
    GATEWAY_IGNORE_HEADERS_ROW("fastcgi", AT(gateway),
                               "Header fields of a response that are ignored, as with proxy_ignore_headers."),
    GATEWAY_NEXT_ROW("fastcgi", AT(gateway),
                     "Cases in which another server of the group is tried, as with proxy_next_upstream."),
    GATEWAY_NEXT_TRIES_ROW("fastcgi", AT(gateway)),
    GATEWAY_NEXT_TIMEOUT_ROW("fastcgi", AT(gateway)),
    {0},
};
