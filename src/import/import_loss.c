/*
 * Placeholders of lost directives: if a directive that handles requests or restricts access is not carried over, a
 * placeholder (modules/import_lost) makes its scope respond with 503 until an administrator replaces it.
 */
#include "import/import_scope.h"

#include "conf/conf_vocabulary.h"

enum loss {
    LOSS_NONE,
    LOSS_HANDLER, /* handles requests in its location; not inherited by inner locations */
    LOSS_ACCESS,  /* restricts access; inherited */
};

/* The first matching row applies. */
static const struct {
    const char *name; /* a leading or trailing '*' stands for a family */
    enum loss loss;
} losses[] = {
    {"auth_delay", LOSS_NONE},
    {"init_by_lua*", LOSS_NONE},
    {"init_worker_by_lua*", LOSS_NONE},
    {"exit_worker_by_lua*", LOSS_NONE},
    {"log_by_lua*", LOSS_NONE},
    {"header_filter_by_lua*", LOSS_NONE},
    {"body_filter_by_lua*", LOSS_NONE},
    {"more_*", LOSS_NONE},
    {"brotli*", LOSS_NONE},
    {"zstd*", LOSS_NONE},
    {"pagespeed*", LOSS_NONE},
    {"vhost_traffic_status*", LOSS_NONE},

    {"*_pass", LOSS_HANDLER},
    {"content_by_lua*", LOSS_HANDLER},
    {"js_content", LOSS_HANDLER},
    {"perl", LOSS_HANDLER},
    {"empty_gif", LOSS_HANDLER},
    {"passenger_enabled", LOSS_HANDLER},
    {"stub_status", LOSS_HANDLER},
    {"api", LOSS_HANDLER},
    {"return", LOSS_HANDLER},
    {"try_files", LOSS_HANDLER},
    {"internal_redirect", LOSS_HANDLER},
    {"pass", LOSS_HANDLER},

    {"allow", LOSS_ACCESS},
    {"deny", LOSS_ACCESS},
    {"satisfy", LOSS_ACCESS},
    {"internal", LOSS_ACCESS},
    {"limit_except", LOSS_ACCESS},
    {"auth_*", LOSS_ACCESS},
    {"access_by_*", LOSS_ACCESS},
    {"*_by_lua*", LOSS_ACCESS},
    {"js_access", LOSS_ACCESS},
    {"js_preread", LOSS_ACCESS},
    {"modsecurity*", LOSS_ACCESS},
    {"secure_link*", LOSS_ACCESS},
    {"valid_referers", LOSS_ACCESS},
    {"*_allow_upstream", LOSS_ACCESS},
    {"disable_symlinks", LOSS_ACCESS},
    {"ssl_verify_client", LOSS_ACCESS},
    {"ssl_verify_depth", LOSS_ACCESS},
    {"ssl_client_certificate", LOSS_ACCESS},
    {"ssl_trusted_certificate", LOSS_ACCESS},
    {"ssl_crl", LOSS_ACCESS},
    {"ssl_ocsp", LOSS_ACCESS},
    {"ssl_reject_handshake", LOSS_ACCESS},
    {"set_real_ip_from", LOSS_ACCESS},
    {"real_ip_header", LOSS_ACCESS},
    {"real_ip_recursive", LOSS_ACCESS},

    {"location", LOSS_ACCESS},
    {"root", LOSS_ACCESS},
    {"alias", LOSS_ACCESS},
    {"set", LOSS_ACCESS},
    {"rewrite", LOSS_ACCESS},
    {"break", LOSS_ACCESS},
    {"proxy_set_header", LOSS_ACCESS},
    {"fastcgi_param", LOSS_ACCESS},
    {"proxy_no_cache", LOSS_ACCESS},
    {"proxy_cache_bypass", LOSS_ACCESS},
    {"proxy_cache_key", LOSS_ACCESS},
};

/* True for an include of the parameter files of nginx's packages, which have neither handlers nor access rules. */
static bool includes_parameters(const struct nginx_directive *directive)
{
    static const char *const names[] = {"mime.types", "fastcgi.conf", "fastcgi_params", "uwsgi_params",
                                        "scgi_params"};
    struct str path = directive->count == 1 ? directive->words[0] : STR("");
    struct str name = str_skip(path, (size_t)(str_rfind(path, '/') + 1));

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (str_equal(name, str_from(names[i])))
            return true;
    }
    return false;
}

static bool is_off(const struct nginx_directive *directive)
{
    return directive->count == 1 && str_equal(directive->words[0], STR("off"));
}

/* True for a directive of a third-party module, which may handle requests or restrict access. */
static bool is_third_party(const struct import *import, struct str name)
{
    struct str hint;

    return !find_sluice_directive(import, name, ~0u) && !rule_find(import, name, SCOPE_LOCATION) &&
           vocabulary_find(import->source->schema, name, &hint) == VOCABULARY_UNKNOWN;
}

static enum loss loss_of(const struct import *import, const struct nginx_directive *directive)
{
    if (str_equal(directive->name, STR("include")))
        return includes_parameters(directive) ? LOSS_NONE : LOSS_ACCESS;
    if (str_equal(directive->name, STR("if"))) {
        for (const struct nginx_directive *child = directive->first; child; child = child->next) {
            if (loss_of(import, child) != LOSS_NONE)
                return LOSS_ACCESS;
        }
        return LOSS_NONE;
    }
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
        if (name_matches(losses[i].name, directive->name))
            return is_off(directive) && !str_starts(directive->name, STR("auth_"))
                       ? LOSS_NONE
                       : losses[i].loss;
    }
    return is_third_party(import, directive->name) ? LOSS_ACCESS : LOSS_NONE;
}

/* The key of the placeholder in that scope; NULL: the scope cannot have one. */
static const char *placeholder_key(enum loss loss, enum conf_scope scope)
{
    if (loss == LOSS_NONE)
        return NULL;
    if (loss == LOSS_HANDLER && scope == SCOPE_LOCATION)
        return "import_lost_handler";
    return scope & (SCOPE_SITE | SCOPE_STREAM | SCOPE_STREAM_SERVER) ? "import_lost_access" : NULL;
}

static void add_placeholder(struct import *import, struct yaml_builder *map, const char *key,
                            const struct nginx_directive *directive)
{
    bool first = !yaml_builder_find(map, str_from(key));
    struct yaml_builder *placeholders = yaml_builder_open(import->arena, map, YAML_BUILDER_LIST, str_from(key));
    struct yaml_builder *placeholder =
        yaml_builder_add(import->arena, placeholders, YAML_BUILDER_TEXT, (struct str){NULL, 0}, NULL);

    if (first)
        yaml_builder_move_first(map);
    import->out_of_memory |= !placeholder;
    if (!placeholder)
        return;
    placeholder->text = directive->name;
    placeholder->comments_above = words_print(
        import,
        "# " STR_FMT ":%u: " STR_FMT "\n"
        "# It was not carried over, so requests get 503 here. Replace this placeholder.",
        STR_ARG(directive->place.file), directive->place.line, STR_ARG(nginx_tree_line(import->arena, directive)));
}

static struct yaml_builder *scope_of(struct yaml_builder *map)
{
    while (map && !map->scope)
        map = map->parent;
    return map;
}

bool add_loss_placeholder(struct import *import, struct yaml_builder *map, const struct nginx_directive *directive)
{
    struct yaml_builder *scope = scope_of(map);
    const char *key = scope ? placeholder_key(loss_of(import, directive), scope->scope) : NULL;

    if (key)
        add_placeholder(import, scope, key, directive);
    return key != NULL;
}

bool add_listen_placeholder(struct import *import, struct yaml_builder *map, const struct nginx_directive *directive)
{
    struct yaml_builder *scope = scope_of(map);
    const struct yaml_builder *listens = yaml_builder_find(scope, STR("listen"));

    if (!scope || scope->scope != SCOPE_SERVER)
        return false;
    if (listens && listens->kind == YAML_BUILDER_TEXT)
        return false;
    for (const struct yaml_builder *item = listens ? listens->first : NULL; item; item = item->next) {
        if (!item->omitted)
            return false;
    }
    add_placeholder(import, scope, "import_lost_access", directive);
    return true;
}
