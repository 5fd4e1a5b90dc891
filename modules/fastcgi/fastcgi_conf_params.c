/*
 * `fastcgi_param`, and the parameters that are set without it.
 */
#include "fastcgi.h"

#include <errno.h>

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

int fastcgi_read_params(struct conf_reader *reader, const struct conf_node *node, void *out)
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

int fastcgi_set_default_params(struct fastcgi_params *params, struct conf_reader *reader, const struct conf_node *at)
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
