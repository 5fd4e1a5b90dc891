/*
 * Rules for blocks that are scopes: http, stream, server, location, upstream.
 */
#include "import/import_scope.h"

void translate_block(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                     const struct rule *rule)
{
    static const struct {
        const char *name;
        enum conf_scope kind;
    } kinds[] = {{"events", SCOPE_EVENTS}, {"http", SCOPE_HTTP}, {"stream", SCOPE_STREAM}};
    struct yaml_builder *map;
    size_t i = 0;

    while (i + 1 < sizeof(kinds) / sizeof(kinds[0]) && !str_equal(directive->name, str_from(kinds[i].name)))
        i++;
    if (yaml_builder_find(scope->map, directive->name)) {
        import_omit(import, scope->map, directive, "it is a duplicate");
        return;
    }
    map = yaml_builder_add(import->arena, scope->map, YAML_BUILDER_MAP, directive->name, directive);
    if (kinds[i].kind == SCOPE_HTTP)
        import->http = map;
    if (kinds[i].kind == SCOPE_HTTP)
        record_addresses(import, directive);
    translate_scope(import, scope, kinds[i].kind, directive, map);
    if (kinds[i].kind == SCOPE_HTTP)
        add_defaults(import, directive);
    if (kinds[i].kind == SCOPE_STREAM)
        add_stream_defaults(import, directive, map);
}

/* Omits a stream server without an address or without a handler, which does not load, as one unit. */
static void omit_incomplete_stream_server(struct import *import, struct yaml_builder *map,
                                          const struct nginx_directive *server)
{
    bool handled = yaml_builder_find(map, STR("proxy_pass")) || yaml_builder_find(map, STR("return"));

    if (!map || (handled && yaml_builder_find(map, STR("listen"))))
        return;
    map->omitted = true;
    import_add_note(import, IMPORT_OMITTED, server,
                    handled ? "it has no address that sluice listens on"
                            : "its proxy_pass was not carried over");
}

void translate_server(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                      const struct rule *rule)
{
    struct yaml_builder *list = yaml_builder_open(import->arena, scope->map, YAML_BUILDER_LIST, STR("server"));
    struct yaml_builder *map =
        yaml_builder_add(import->arena, list, YAML_BUILDER_MAP, (struct str){NULL, 0}, directive);

    if (scope->kind == SCOPE_HTTP && !nginx_tree_find(directive, STR("listen")))
        import_put(import, map, "listen", STR("80"), NULL);
    translate_scope(import, scope, scope->kind == SCOPE_HTTP ? SCOPE_SERVER : SCOPE_STREAM_SERVER, directive,
                    map);
    if (scope->kind == SCOPE_STREAM)
        omit_incomplete_stream_server(import, map, directive);
    else if (nginx_tree_find(directive, STR("listen")))
        add_listen_placeholder(import, map, nginx_tree_find(directive, STR("listen")));
}

/* "= /x", "~* \.css$", "@name" or "/x", with or without a blank after the sign. */
static struct str location_key(struct import *import, const struct nginx_directive *directive)
{
    static const char *const modifiers[] = {"=", "^~", "~*", "~"};
    struct str first = directive->words[0];

    if (directive->count > 1)
        return words_print(import, STR_FMT " " STR_FMT, STR_ARG(first), STR_ARG(directive->words[1]));
    for (size_t i = 0; i < sizeof(modifiers) / sizeof(modifiers[0]); i++) {
        struct str sign = str_from(modifiers[i]);

        if (str_starts(first, sign))
            return words_print(import, STR_FMT " " STR_FMT, STR_ARG(sign),
                               STR_ARG(str_skip(first, sign.length)));
    }
    return first;
}

/* Percent-encodes a path (RFC 3986 3.3) for a template: "$" is doubled. */
static struct str path_encode(struct import *import, struct str path)
{
    struct str encoded = STR("");

    for (size_t i = 0; i < path.length; i++) {
        unsigned char c = (unsigned char)path.data[i];
        bool plain = c < 0x80 && (str_lower((char)c) != (char)c || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                                  strchr("/-._~!&'()*+,;=:@", c));

        encoded = words_print(import, c == '$' ? STR_FMT "$%c" : plain ? STR_FMT "%c" : STR_FMT "%%%02X",
                              STR_ARG(encoded), c);
    }
    return encoded;
}

/* The location of the scope with that key, which location_key has written; NULL: none. */
static const struct nginx_directive *find_location(struct import *import, const struct scope *scope, struct str key)
{
    for (const struct nginx_directive *other = scope->block->first; other; other = other->next) {
        if (str_equal(other->name, STR("location")) && other->count > 0 && other->count < 3 &&
            str_equal(location_key(import, other), key))
            return other;
    }
    return NULL;
}

/* Carries over the settings for the form of a redirect, and `internal`, with which clients get 404 instead of it. */
static void translate_slash_settings(struct import *import, struct yaml_builder *made,
                                     const struct nginx_directive *location)
{
    static const char *const names[] = {"absolute_redirect", "server_name_in_redirect", "port_in_redirect"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct nginx_directive *own = nginx_tree_find(location, str_from(names[i]));

        if (own && own->count == 1 && find_sluice_directive(import, own->name, SCOPE_LOCATION))
            import_put(import, made, names[i], own->words[0], NULL);
    }
    if (nginx_tree_find(location, STR("internal")))
        import_put(import, made, "internal", STR("on"), NULL);
}

/*
 * Adds the redirect of nginx from "/app" to a location "/app/" or "= /app/" that passes requests on, unless there is a
 * location for exactly "/app". It precedes other locations. If there are both, the settings of "= /app/" apply.
 */
static void add_slash_redirect(struct import *import, const struct scope *scope, struct yaml_builder *locations,
                               const struct nginx_directive *directive, struct str key)
{
    bool passes =
        nginx_tree_find(directive, STR("proxy_pass")) || nginx_tree_find(directive, STR("fastcgi_pass")) ||
        nginx_tree_find(directive, STR("grpc_pass"));
    size_t sign = str_starts(key, STR("^~ ")) ? 3 : str_starts(key, STR("= ")) ? 2 : 0;
    struct str path = str_skip(key, sign);
    const struct nginx_directive *first;
    struct yaml_builder *made;
    struct str exact;

    if (!passes || !find_sluice_directive(import, STR("return"), SCOPE_LOCATION) || path.length < 2 ||
        path.data[0] != '/' || !str_ends(path, STR("/")))
        return;
    path.length--;
    exact = words_print(import, "= " STR_FMT, STR_ARG(path));
    if (find_location(import, scope, exact) || find_location(import, scope, path) ||
        find_location(import, scope, words_print(import, "^~ " STR_FMT, STR_ARG(path))) ||
        yaml_builder_find(locations, exact))
        return;
    first = find_location(import, scope, words_print(import, STR_FMT "/", STR_ARG(exact)));
    made = yaml_builder_add(import->arena, locations, YAML_BUILDER_MAP, exact, NULL);
    import_put(import, made, "return",
               words_join(import,
                          (struct str[]){STR("301"), words_print(import, STR_FMT "/$is_args$args",
                                                                 STR_ARG(path_encode(import, path)))},
                          2),
               NULL);
    translate_slash_settings(import, made, first ? first : directive);
    if (made)
        made->comments_above = STR("# nginx adds this redirect to a location that passes requests on.");
}

void translate_location(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                        const struct rule *rule)
{
    struct yaml_builder *locations = yaml_builder_open(import->arena, scope->map, YAML_BUILDER_MAP, STR("location"));
    struct str key;

    if (directive->count < 1 || directive->count > 2) {
        import_omit(import, scope->map, directive, "a location has one path");
        return;
    }
    key = location_key(import, directive);
    if (yaml_builder_find(locations, key)) {
        import_comment_out(import, locations, directive);
        import_add_note(import, IMPORT_UNNEEDED, directive, "it is a duplicate: the first one is used");
    } else {
        translate_scope(import, scope, SCOPE_LOCATION, directive,
                        yaml_builder_add(import->arena, locations, YAML_BUILDER_MAP, key, directive));
    }
    add_slash_redirect(import, scope, locations, directive, key);
}

void translate_upstream(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                        const struct rule *rule)
{
    struct yaml_builder *groups = yaml_builder_open(import->arena, scope->map, YAML_BUILDER_MAP, STR("upstream"));

    if (directive->count != 1 || yaml_builder_find(groups, directive->words[0]))
        import_omit(import, scope->map, directive, "an upstream takes one name");
    else
        translate_scope(import, scope, SCOPE_UPSTREAM, directive,
                        yaml_builder_add(import->arena, groups, YAML_BUILDER_MAP, directive->words[0], directive));
}
