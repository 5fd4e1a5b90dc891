/*
 * Writes nginx's defaults where sluice has others, so that a site keeps its behaviour. The administrator may delete
 * them.
 */
#include "import/import_scope.h"

struct preset {
    const char *key, *value;
    bool wanted;
};

static void add_presets(struct import *import, struct yaml_builder *map, const struct preset *presets, size_t count)
{
    struct yaml_builder *made = NULL;

    for (size_t i = count; i > 0; i--) {
        const struct preset *preset = &presets[i - 1];

        if (!preset->wanted || yaml_builder_find(map, str_from(preset->key)) ||
            !find_sluice_directive(import, str_from(preset->key), SCOPE_HTTP | SCOPE_STREAM))
            continue;
        made = import_put(import, map, preset->key, str_from(preset->value), NULL);
        yaml_builder_move_first(map);
    }
    if (made)
        made->comments_above = STR("# Defaults of nginx that differ from sluice's: delete those that you do not need.");
}

static bool sets_http2(const struct nginx_directive *block)
{
    const struct nginx_directive *http2 = nginx_tree_find(block, STR("http2"));

    return http2 && http2->count == 1 && str_equal(http2->words[0], STR("on"));
}

/* nginx's default root is "html". */
static bool needs_root(const struct nginx_directive *http)
{
    if (nginx_tree_find(http, STR("root")))
        return false;
    for (const struct nginx_directive *server = http->first; server; server = server->next) {
        bool serves = str_equal(server->name, STR("server")) && !nginx_tree_find(server, STR("root")) &&
                      !nginx_tree_find(server, STR("return"));
        bool any = false, whole = false;

        for (const struct nginx_directive *child = server->first; serves && child; child = child->next) {
            bool other = nginx_tree_find(child, STR("root")) || nginx_tree_find(child, STR("alias")) ||
                         nginx_tree_find(child, STR("return")) || nginx_tree_find(child, STR("proxy_pass")) ||
                         nginx_tree_find(child, STR("fastcgi_pass")) || nginx_tree_find(child, STR("grpc_pass"));

            if (!str_equal(child->name, STR("location")))
                continue;
            any |= !other;
            whole |= child->count == 1 && str_equal(child->words[0], STR("/"));
        }
        if (serves && (any || !whole))
            return true;
    }
    return false;
}

/*
 * Writes proxy_set_header for fields that sluice sets itself: nginx passes on those of the client. They are the first
 * items of the list, so that explicit settings take precedence.
 */
static void add_proxy_fields(struct import *import)
{
    static const char *const fields[] = {"Via $http_via",
                                         "Forwarded $http_forwarded",
                                         "X-Forwarded-For $http_x_forwarded_for",
                                         "X-Forwarded-Host $http_x_forwarded_host",
                                         "X-Forwarded-Port $http_x_forwarded_port",
                                         "X-Forwarded-Proto $http_x_forwarded_proto",
                                         "X-Forwarded-Server $http_x_forwarded_server",
                                         "X-Real-IP $http_x_real_ip"};
    bool first = !yaml_builder_find(import->http, STR("proxy_set_header"));

    for (size_t i = sizeof(fields) / sizeof(fields[0]); i > 0; i--) {
        import_put_item(import, import->http, "proxy_set_header", str_from(fields[i - 1]), NULL);
        yaml_builder_move_first(yaml_builder_find(import->http, STR("proxy_set_header")));
    }
    if (first)
        yaml_builder_move_first(import->http);
}

void add_defaults(struct import *import, const struct nginx_directive *http)
{
    struct str root = words_print(import, STR_FMT "/html", STR_ARG(import->prefix));
    const struct preset presets[] = {
        {"root", root.data, needs_root(http)},
        {"absolute_redirect", "on", true},
        {"charset", "off", true},
        {"default_type", "text/plain", true},
        {"disable_symlinks", "off", true},
        {"http2", "off", !sets_http2(http)},
        {"autoindex_format", "html", import->lists},
        {"autoindex_exact_size", "on", import->lists},
        {"limit_req_status", "503", import->limits},
        {"limit_conn_status", "503", import->limits},
        {"proxy_buffering", "on", import->proxies},
        {"proxy_request_buffering", "on", import->proxies},
        {"fastcgi_buffering", "on", import->fastcgi},
        {"fastcgi_request_buffering", "on", import->fastcgi},
    };

    if (import->proxies && find_sluice_directive(import, STR("proxy_set_header"), SCOPE_HTTP))
        add_proxy_fields(import);
    add_presets(import, import->http, presets, sizeof(presets) / sizeof(presets[0]));
}

void add_stream_defaults(struct import *import, const struct nginx_directive *stream, struct yaml_builder *map)
{
    bool verifies = nginx_tree_find(stream, STR("proxy_ssl"));

    for (const struct nginx_directive *child = stream->first; child; child = child->next)
        verifies |= nginx_tree_find(child, STR("proxy_ssl")) != NULL;
    const struct preset presets[] = {{"proxy_half_close", "off", true}, {"proxy_ssl_verify", "off", verifies}};

    add_presets(import, map, presets, sizeof(presets) / sizeof(presets[0]));
}
