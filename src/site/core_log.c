/*
 * Formats of the access log: those of `log_format`, and the built-in ones.
 */
#include "log/access_log.h"
#include "site/core.h"

#include <errno.h>

/* nginx's format `combined`. */
#define COMBINED                                                                                             \
    "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" "     \
    "\"$http_user_agent\""

/* The format `basic` of nginx's documentation. */
#define BASIC "$remote_addr [$time_local] $protocol $status $bytes_sent $bytes_received $session_time"

static const struct {
    const char *name;
    const char *text;
    enum log_escape escape;
    bool stream; /* of `stream`, else of `http` */
} built_in[] = {
    {"main", COMBINED " $tls_path $tls_path_reason $request_id", LOG_ESCAPE_DEFAULT},
    {"combined", COMBINED, LOG_ESCAPE_DEFAULT},
    {"json",
     "{\"time\":\"$time_iso8601\",\"remote_addr\":\"$remote_addr\",\"remote_user\":\"$remote_user\","
     "\"method\":\"$request_method\",\"uri\":\"$request_uri\",\"protocol\":\"$server_protocol\","
     "\"host\":\"$host\",\"status\":$status,\"body_bytes_sent\":$body_bytes_sent,\"bytes_sent\":$bytes_sent,"
     "\"request_length\":$request_length,\"request_time\":$request_time,\"referer\":\"$http_referer\","
     "\"user_agent\":\"$http_user_agent\",\"connection\":$connection,"
     "\"connection_requests\":$connection_requests,\"ssl_protocol\":\"$ssl_protocol\","
     "\"ssl_cipher\":\"$ssl_cipher\",\"ssl_session_reused\":\"$ssl_session_reused\","
     "\"tls_path\":\"$tls_path\",\"tls_path_reason\":\"$tls_path_reason\","
     "\"bytes_zero_copy\":$bytes_zero_copy,\"request_id\":\"$request_id\"}",
     LOG_ESCAPE_JSON},
    {"main", BASIC " $upstream_addr $tls_path $tls_path_reason", LOG_ESCAPE_DEFAULT, true},
    {"basic", BASIC, LOG_ESCAPE_DEFAULT, true},
    {"json",
     "{\"time\":\"$time_iso8601\",\"remote_addr\":\"$remote_addr\",\"protocol\":\"$protocol\",\"status\":$status,"
     "\"bytes_sent\":$bytes_sent,\"bytes_received\":$bytes_received,\"session_time\":$session_time,"
     "\"connection\":$connection,\"server_name\":\"$server_name\",\"upstream_addr\":\"$upstream_addr\","
     "\"upstream_connect_time\":\"$upstream_connect_time\",\"ssl_protocol\":\"$ssl_protocol\","
     "\"ssl_preread_server_name\":\"$ssl_preread_server_name\",\"tls_path\":\"$tls_path\","
     "\"tls_path_reason\":\"$tls_path_reason\",\"bytes_zero_copy\":$bytes_zero_copy}",
     LOG_ESCAPE_JSON, true},
};

#define BUILT_IN (sizeof(built_in) / sizeof(built_in[0]))

int core_log_format_print(struct str name, struct buffer *out)
{
    int error = -ENOENT;

    for (size_t i = 0; i < BUILT_IN && (error == 0 || error == -ENOENT); i++) {
        if (!str_equal(name, str_from(built_in[i].name)))
            continue;
        error = buffer_printf(out,
                              "%s%s\n  A format of access_log that is built in.\n\n  where     %s\n"
                              "  text      %s\n",
                              error == 0 ? "\n" : "", built_in[i].name, built_in[i].stream ? "stream" : "http",
                              built_in[i].text);
    }
    return error;
}

static int parse_escape(struct conf_reader *reader, const struct conf_node *node, struct str name,
                        enum log_escape *out_escape)
{
    if (str_equal(name, STR("default")))
        *out_escape = LOG_ESCAPE_DEFAULT;
    else if (str_equal(name, STR("json")))
        *out_escape = LOG_ESCAPE_JSON;
    else if (str_equal(name, STR("none")))
        *out_escape = LOG_ESCAPE_NONE;
    else {
        conf_error(reader->errors, node->mark, STR("default, json or none"),
                   "\"" STR_FMT "\" is not an escape mode of log_format", STR_ARG(name));
        return -EINVAL;
    }
    return 0;
}

/* Reads one text, or a list of pieces concatenated as in nginx. */
static int read_format_text(struct conf_reader *reader, const struct conf_node *node,
                            const struct template **out)
{
    struct str whole = STR("");

    if (node->kind != CONF_LIST)
        return conf_read_template(reader, node, out);
    for (size_t i = 0; i < node->count; i++) {
        struct str piece;
        int error = conf_read_text(reader, node->items[i], &piece);

        if (error < 0)
            return error;
        whole = arena_printf(reader->arena, STR_FMT STR_FMT, STR_ARG(whole), STR_ARG(piece));
        if (!whole.data)
            return -ENOMEM;
    }
    return conf_read_template_word(reader, node, whole, out);
}

/* {escape: json, format: '...'} */
static int read_format_map(struct conf_reader *reader, const struct conf_node *node,
                           struct log_format *format)
{
    int error = 0;

    for (size_t i = 0; i < node->count && error == 0; i++) {
        const struct conf_pair *pair = &node->pairs[i];
        struct str text;

        if (str_equal(pair->key->text, STR("escape"))) {
            error = conf_read_text(reader, pair->value, &text);
            if (error == 0)
                error = parse_escape(reader, pair->value, text, &format->escape);
        } else if (str_equal(pair->key->text, STR("format"))) {
            error = read_format_text(reader, pair->value, &format->template);
        } else {
            conf_error(reader->errors, pair->key->mark,
                       STR("log_format: {name: {escape: json, format: '...'}}"),
                       "a log format has no key \"" STR_FMT "\"", STR_ARG(pair->key->text));
            error = -EINVAL;
        }
    }
    if (error == 0 && !format->template) {
        conf_error(reader->errors, node->mark, STR("log_format: {name: {escape: json, format: '...'}}"),
                   "a log format needs its text");
        error = -EINVAL;
    }
    return error;
}

int core_log_formats_read(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct log_format *formats;
    struct conf_rows *rows = out;

    if (node->kind != CONF_MAP) {
        conf_error(reader->errors, node->mark, STR("log_format: {short: '$remote_addr $status'}"),
                   "log_format takes a mapping of names to texts");
        return -EINVAL;
    }
    formats = arena_zalloc(reader->arena, node->count + 1, sizeof(*formats));
    if (!formats)
        return -ENOMEM;
    for (size_t i = 0; i < node->count; i++) {
        const struct conf_pair *pair = &node->pairs[i];
        int error;

        formats[i].name = pair->key->text;
        if (pair->value->kind == CONF_MAP)
            error = read_format_map(reader, pair->value, &formats[i]);
        else
            error = read_format_text(reader, pair->value, &formats[i].template);
        if (error < 0)
            return error;
    }
    *rows = (struct conf_rows){formats, node->count};
    return 0;
}

static const struct log_format *compile_built_in(struct conf_reader *reader, size_t index)
{
    struct log_format *format = arena_zalloc(reader->arena, 1, sizeof(*format));
    struct str why;
    size_t at;

    if (!format)
        return NULL;
    format->name = str_from(built_in[index].name);
    format->escape = built_in[index].escape;
    if (template_compile(reader->arena, str_from(built_in[index].text), reader->variables, &format->template,
                         &at, &why) < 0)
        return NULL;
    return format;
}

const struct log_format *core_log_format_find(struct conf_reader *reader, const struct conf_rows *rows,
                                              struct str name)
{
    const struct log_format *formats = rows->items;
    bool stream = reader->scope & (SCOPE_STREAM | SCOPE_STREAM_SERVER);

    for (size_t i = 0; i < rows->count; i++) {
        if (str_equal(formats[i].name, name))
            return &formats[i];
    }
    for (size_t i = 0; i < BUILT_IN; i++) {
        if (built_in[i].stream == stream && str_equal(str_from(built_in[i].name), name))
            return compile_built_in(reader, i);
    }
    return NULL;
}
