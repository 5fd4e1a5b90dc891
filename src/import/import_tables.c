/*
 * Rules for tables: map, geo and types, and directives that become tables here (log_format, proxy_cache_path).
 */
#include "import/import_scope.h"

/*
 * Omits a whole table because of a lost line, without which the variable would have wrong values. Every directive that
 * needs the variable is then omitted, too.
 */
static void omit_table(struct import *import, struct yaml_builder *map, const struct nginx_directive *line,
                       const char *why)
{
    import_add_note(import, IMPORT_OMITTED, line,
                    "%s: without this line the variable would be wrong, so the whole table is omitted", why);
    if (map)
        map->omitted = true;
}

/* Carries over the lines of a map or geo: keys with one value. */
static void translate_table_lines(struct import *import, const struct nginx_directive *block, struct yaml_builder *map,
                                  bool ranges)
{
    for (const struct nginx_directive *line = block->first; line; line = line->next) {
        struct str key = ranges ? word_range(import, line->name) : line->name;
        struct yaml_builder *made;

        if (line->count > 1 || str_equal(key, STR("include"))) {
            omit_table(import, map, line,
                       line->count > 1 ? "a line has one value" : "the file does not exist or cannot be read");
            return;
        }
        if (yaml_builder_find(map, key)) {
            import_omit(import, map, line, "this key is a duplicate");
            continue;
        }
        made = yaml_builder_add(import->arena, map, YAML_BUILDER_TEXT, key, line);
        if (made)
            made->text = line->count ? word_variables(import, line->words[0]) : STR("on");
        import->out_of_memory |= !made;
    }
}

/* The map below `name` with the directive's words as key; NULL: cannot be carried over. */
static struct yaml_builder *open_table(struct import *import, const struct scope *scope,
                                       const struct nginx_directive *directive, const char *name)
{
    struct yaml_builder *tables;
    struct str key = STR("");

    if (!find_sluice_directive(import, str_from(name), scope->kind)) {
        import_omit(import, scope->map, directive, "there is no %s in %s", name, conf_scope_name(scope->kind));
        return NULL;
    }
    for (size_t i = 0; i < directive->count; i++)
        key = words_print(import, STR_FMT "%s" STR_FMT, STR_ARG(key), i ? " " : "",
                          STR_ARG(word_quote(import, word_variables(import, directive->words[i]))));
    tables = yaml_builder_open(import->arena, scope->map, YAML_BUILDER_MAP, str_from(name));
    if (str_empty(key) || yaml_builder_find(tables, key)) {
        import_omit(import, scope->map, directive, "it defines no variable");
        return NULL;
    }
    return yaml_builder_add(import->arena, tables, YAML_BUILDER_MAP, key, directive);
}

void translate_map(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                   const struct rule *rule)
{
    struct yaml_builder *map = open_table(import, scope, directive, "map");

    if (map)
        translate_table_lines(import, directive, map, false);
}

void translate_geo(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                   const struct rule *rule)
{
    static const char *const others[] = {"ranges", "proxy", "proxy_recursive", "delete"};
    struct yaml_builder *map;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (!nginx_tree_find(directive, str_from(others[i])))
            continue;
        import_omit(import, scope->map, directive,
                    "it has \"%s\": write its ranges as 192.0.2.0/24, each once; trusted proxies are listed in "
                    "set_real_ip_from",
                    others[i]);
        return;
    }
    map = open_table(import, scope, directive, "geo");
    if (map)
        translate_table_lines(import, directive, map, true);
}

/* True for a line of `types` that equals the built-in type and is not needed. */
static bool built_in(const struct import *import, const struct scope *scope, struct str type,
                     struct str extension)
{
    return scope->kind == SCOPE_HTTP && str_equal(import->source->media_type(extension), type);
}

void translate_types(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                     const struct rule *rule)
{
    struct yaml_builder *types = yaml_builder_open(import->arena, scope->map, YAML_BUILDER_MAP, STR("types"));

    if (types && !directive->first)
        types->origin = directive; /* {}: no types at all */
    for (const struct nginx_directive *line = directive->first; line; line = line->next) {
        struct yaml_builder *known = yaml_builder_find(types, line->name);

        if (str_equal(line->name, STR("include"))) {
            import_comment_out(import, types, line);
            import_add_note(import, IMPORT_OMITTED, line, "the file does not exist or cannot be read");
            continue;
        }
        for (size_t i = 0; i < line->count; i++) {
            if (built_in(import, scope, line->name, line->words[i]))
                continue;
            if (!known)
                known = import_put(import, types, words_print(import, STR_FMT, STR_ARG(line->name)).data,
                                   line->words[i], line);
            else
                known->text =
                    words_print(import, STR_FMT " " STR_FMT, STR_ARG(known->text), STR_ARG(line->words[i]));
        }
    }
}

/* Joins the parts of a format. A format with escape= becomes a map. */
void translate_log_format(struct import *import, const struct scope *scope,
                          const struct nginx_directive *directive, const struct rule *rule)
{
    struct yaml_builder *formats = yaml_builder_open(import->arena, scope->map, YAML_BUILDER_MAP, STR("log_format"));
    struct str escape = STR("");
    struct str text = STR("");
    struct yaml_builder *made;

    if (directive->count < 2 || yaml_builder_find(formats, directive->words[0])) {
        import_omit(import, scope->map, directive, "a format takes a name and a text");
        return;
    }
    for (size_t i = 1; i < directive->count; i++) {
        if (i == 1 && str_starts(directive->words[i], STR("escape=")))
            escape = str_skip(directive->words[i], 7);
        else
            text = words_print(import, STR_FMT STR_FMT, STR_ARG(text),
                               STR_ARG(word_variables(import, directive->words[i])));
    }
    made = yaml_builder_add(import->arena, formats, str_empty(escape) ? YAML_BUILDER_TEXT : YAML_BUILDER_MAP,
                            directive->words[0], directive);
    if (made && str_empty(escape)) {
        made->text = text;
    } else if (made) {
        import_put(import, made, "escape", escape, NULL);
        import_put(import, made, "format", text, NULL);
    }
    import->out_of_memory |= !made;
}

void translate_cache_path(struct import *import, const struct scope *scope,
                          const struct nginx_directive *directive, const struct rule *rule)
{
    struct yaml_builder *list =
        yaml_builder_open(import->arena, scope->map, YAML_BUILDER_LIST, STR("proxy_cache_path"));
    struct yaml_builder *map;

    if (directive->count < 1) {
        import_omit(import, scope->map, directive, "its path is missing");
        return;
    }
    map = yaml_builder_add(import->arena, list, YAML_BUILDER_MAP, (struct str){NULL, 0}, directive);
    import_put(import, map, "path", word_path(import, import->prefix, directive->words[0]), NULL);
    for (size_t i = 1; i < directive->count; i++) {
        struct str value = word_option(import, directive->words[i]);
        struct str name = str_cut(&value, '=');

        if (str_equal(name, STR("use_temp_path")) || str_starts(name, STR("loader_")) || !value.data)
            continue; /* responses are written directly to their place */
        import_put(import, map, words_print(import, STR_FMT, STR_ARG(name)).data, value, NULL);
    }
}
