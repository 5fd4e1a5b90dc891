/*
 * Translates an `if` that only sets variables and is not the only one: sluice applies only the first true condition.
 * Each `set` therefore becomes a map (the new value if the condition is true, else the variable's current value) and a
 * `set` to the map's variable, in file order.
 */
#include "import/import_script.h"

static bool only_sets(const struct nginx_directive *directive)
{
    for (const struct nginx_directive *child = directive->first; child; child = child->next) {
        if (!directive_is(child, "set") || child->count != 2)
            return false;
    }
    return directive->first != NULL;
}

/* A regular expression that matches exactly this word, since text keys of a map are case-insensitive. */
static struct str exact_key(struct import *import, struct str word)
{
    struct str key = STR("~^");

    if (str_empty(word))
        return word;
    for (size_t i = 0; i < word.length; i++) {
        unsigned char c = (unsigned char)word.data[i];
        bool plain = (str_lower((char)c) >= 'a' && str_lower((char)c) <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
                     c >= 0x80;

        key = words_print(import, STR_FMT "%s%c", STR_ARG(key), plain ? "" : "\\", c);
    }
    return words_print(import, STR_FMT "\\z", STR_ARG(key));
}

/* The map keys equivalent to the condition; `negated`: equivalent to its opposite. False: there are none. */
static bool condition_keys(struct import *import, const struct str *words, size_t count, struct str keys[2],
                           bool *out_negated)
{
    struct str operator= count == 3 ? words[1] : STR("");

    keys[0] = STR("");
    keys[1] = STR("");
    if (!str_starts(words[0], STR("$")) || count == 2)
        return false;
    *out_negated = count == 1 || str_starts(operator, STR("!"));
    if (count == 1) {
        keys[1] = STR("0");
        return true;
    }
    operator= str_skip(operator, str_starts(operator, STR("!")));
    if (str_equal(operator, STR("=")) && str_find(words[2], '$') < 0)
        keys[0] = exact_key(import, words[2]);
    else if (str_equal(operator, STR("~")) || str_equal(operator, STR("~*")))
        keys[0] = words_print(import, STR_FMT STR_FMT, STR_ARG(operator), STR_ARG(words[2]));
    else
        return false;
    return true;
}

static void add_set_line(struct import *import, struct yaml_builder *map, struct str key, struct str value)
{
    struct yaml_builder *line = yaml_builder_add(import->arena, map, YAML_BUILDER_TEXT, key, NULL);

    if (line)
        line->text = value;
    import->out_of_memory |= !line;
}

/* Adds a map for one `set`. Returns the name of its variable. */
static struct str add_map(struct import *import, struct str source, const struct str keys[2], bool negated,
                          const struct nginx_directive *set)
{
    struct str name = words_print(import, "$import_if_%u", ++import->conditions);
    struct str before = word_variables(import, set->words[0]);
    struct str after = word_variables(import, set->words[1]);
    bool first = !yaml_builder_find(import->http, STR("map"));
    struct yaml_builder *maps = yaml_builder_open(import->arena, import->http, YAML_BUILDER_MAP, STR("map"));
    struct yaml_builder *map;

    if (first)
        yaml_builder_move_first(import->http);
    map = yaml_builder_add(import->arena, maps, YAML_BUILDER_MAP,
                           words_join(import, (struct str[]){source, name}, 2), set);
    if (map) {
        map->comment_beside = (struct str){NULL, 0};
        map->comments_above =
            words_print(import, "# " STR_FMT ":%u: variables that the if sets.", STR_ARG(set->place.file),
                        set->place.line);
    }
    add_set_line(import, map, STR("default"), negated ? after : before);
    add_set_line(import, map, keys[0], negated ? before : after);
    if (str_equal(keys[1], STR("0")))
        add_set_line(import, map, keys[1], before);
    return name;
}

bool becomes_set(struct import *import, const struct nginx_directive *directive)
{
    struct str keys[2];
    struct str *words;
    size_t count;
    bool negated;

    return find_sluice_directive(import, STR("map"), SCOPE_HTTP) && only_sets(directive) &&
           condition_words(import, directive, &words, &count) &&
           condition_keys(import, words, count, keys, &negated);
}

void translate_set_if(struct import *import, const struct scope *scope, const struct nginx_directive *directive)
{
    struct str keys[2];
    struct str *words;
    size_t count;
    bool negated;

    if (!condition_words(import, directive, &words, &count) ||
        !condition_keys(import, words, count, keys, &negated))
        return;
    for (const struct nginx_directive *set = directive->first; set; set = set->next) {
        struct str name = add_map(import, words[0], keys, negated, set);
        struct yaml_builder *made = import_put_item(
            import, scope->map, "set",
            words_join(import, (struct str[]){word_variables(import, set->words[0]), name}, 2), directive);

        if (made && set != directive->first)
            made->comments_above = made->comment_beside = (struct str){NULL, 0};
    }
}
