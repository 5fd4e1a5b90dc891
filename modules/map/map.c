/*
 * `map`: a variable whose value depends on other variables. Evaluated at its first use, and then constant for the
 * request, unless the map is volatile.
 */
#include "server/module.h"
#include "site/capture.h"
#include "site/user_variables.h"

#include <errno.h>
#include <stdlib.h>

/* One line: pattern and value. */
struct line {
    struct str key; /* lower case; for wildcards ".example.com" or "www." */
    const struct capture *pattern;
    const struct template *value;
    const struct conf_node *node;
};

struct lines {
    struct line *items;
    size_t count;
};

struct map {
    const struct user_variables *among;
    const struct template *source;
    struct lines exact, leading, trailing; /* sorted by key */
    struct lines patterns;                 /* in the order of the file */
    const struct template *default_value;
    bool hostnames, uncached;
};

struct map_conf {
    struct conf_rows rows; /* always empty: the variables refer to their maps */
};

#define HINT STR("write: map: {$http_host $site: {default: main, a.example.com: a, '~^b\\d+\\.': b}}")

static struct str lower_copy(struct arena *arena, struct str text)
{
    char *made = arena_alloc(arena, text.length + 1);

    if (!made)
        return (struct str){NULL, 0};
    for (size_t i = 0; i < text.length; i++)
        made[i] = str_lower(text.data[i]);
    return str_of(made, text.length);
}

static int compare_lines(const void *a, const void *b)
{
    const struct line *left = a, *right = b;

    return str_compare(left->key, right->key);
}

static const struct line *find_line(const struct lines *lines, struct str key)
{
    struct line line = {.key = key};

    return lines->count ? bsearch(&line, lines->items, lines->count, sizeof(line), compare_lines) : NULL;
}

/* Wildcards "*.example.com" and "www.*", longest match first; ".example.com" is both exact and leading. */
static const struct line *find_host(const struct map *map, struct str host)
{
    const struct line *line = NULL;

    for (size_t i = 1; i < host.length && !line; i++) {
        if (host.data[i] == '.')
            line = find_line(&map->leading, str_skip(host, i));
    }
    for (size_t i = host.length; i > 1 && !line; i--) {
        if (host.data[i - 1] == '.')
            line = find_line(&map->trailing, str_slice(host, 0, i));
    }
    return line;
}

static const struct template *find_value(const void *subject, const struct map *map, struct arena *arena,
                                         struct str text)
{
    struct str key = lower_copy(arena, text);
    const struct line *line;

    if (map->hostnames && key.length > 1 && str_ends(key, STR(".")))
        key.length--;
    line = find_line(&map->exact, key);
    if (!line && map->hostnames)
        line = find_host(map, key);
    for (size_t i = 0; !line && i < map->patterns.count; i++) {
        if (capture_match(map->patterns.items[i].pattern, subject, text) == 1)
            line = &map->patterns.items[i];
    }
    return line ? line->value : map->default_value;
}

/* Evaluates the map. Captures of its patterns are visible in its values only. */
static struct str map_eval(const void *subject, const void *source)
{
    const struct map *map = source;
    struct user_variable_values *own = map->among->subject->values(subject);
    struct str *groups = own->groups;
    struct str text = template_eval(map->source, subject, own->arena);
    const struct template *value = find_value(subject, map, own->arena, text.data ? text : STR(""));
    struct str made = value ? template_eval(value, subject, own->arena) : STR("");

    own->groups = groups;
    return made;
}

static void add_line(struct lines *lines, const struct line *line, struct str key)
{
    lines->items[lines->count] = *line;
    lines->items[lines->count++].key = key;
}

/* Adds "a.example.com", "*.example.com", ".example.com" or "www.*". A leading backslash makes the rest literal. */
static int add_text(struct conf_reader *reader, struct map *map, struct str text, struct line *line)
{
    struct str key = lower_copy(reader->arena, str_skip(text, str_starts(text, STR("\\"))));

    if (!key.data)
        return -ENOMEM;
    if (map->hostnames && str_starts(key, STR("*.")))
        add_line(&map->leading, line, str_skip(key, 1));
    else if (map->hostnames && str_ends(key, STR(".*")))
        add_line(&map->trailing, line, str_slice(key, 0, key.length - 1));
    else if (map->hostnames && str_starts(key, STR(".")) && key.length > 1) {
        add_line(&map->leading, line, key);
        add_line(&map->exact, line, str_skip(key, 1));
    } else
        add_line(&map->exact, line, key);
    return 0;
}

static int add_pattern(struct conf_reader *reader, struct map *map, const struct conf_node *key,
                       struct line *line)
{
    bool nocase = str_starts(key->text, STR("~*"));
    int error = capture_read(reader, key, str_skip(key->text, nocase ? 2 : 1), nocase, &line->pattern);

    if (error == 0)
        add_line(&map->patterns, line, key->text);
    return error;
}

static int read_line(struct conf_reader *reader, struct map *map, const struct conf_pair *pair)
{
    struct line line = {.node = pair->key};
    struct str key = pair->key->text;
    int error;

    if (str_equal(key, STR("hostnames")))
        return 0; /* was read before the other lines */
    if (str_equal(key, STR("volatile")))
        return conf_read_switch(reader, pair->value, &map->uncached);
    error = conf_read_template(reader, pair->value, &line.value);
    if (error < 0)
        return error;
    if (str_equal(key, STR("default")))
        map->default_value = line.value;
    else if (str_starts(key, STR("~")))
        error = add_pattern(reader, map, pair->key, &line);
    else
        error = add_text(reader, map, key, &line);
    return error;
}

static int sort_lines(struct conf_reader *reader, struct lines *lines)
{
    if (lines->count)
        qsort(lines->items, lines->count, sizeof(*lines->items), compare_lines);
    for (size_t i = 1; i < lines->count; i++) {
        if (!str_equal(lines->items[i - 1].key, lines->items[i].key))
            continue;
        conf_error(reader->errors, lines->items[i].node->mark,
                   STR("keys are compared ignoring case"), "\"" STR_FMT "\" is duplicate",
                   STR_ARG(lines->items[i].key));
        return -EINVAL;
    }
    return 0;
}

static int read_lines(struct conf_reader *reader, const struct conf_node *node, struct map *map)
{
    struct lines *all[] = {&map->exact, &map->leading, &map->trailing, &map->patterns};
    const struct conf_node *hostnames = conf_map_get(node, STR("hostnames"));
    int error = hostnames ? conf_read_switch(reader, hostnames, &map->hostnames) : 0;

    for (size_t i = 0; i < 4; i++) {
        all[i]->items = arena_zalloc(reader->arena, node->count + 1, sizeof(struct line));
        if (!all[i]->items)
            return -ENOMEM;
    }
    for (size_t i = 0; i < node->count && error == 0; i++)
        error = read_line(reader, map, &node->pairs[i]);
    for (size_t i = 0; i < 3 && error == 0; i++)
        error = sort_lines(reader, all[i]);
    return error;
}

/* Reads a block. Its key is "$from $to"; its value contains the lines. */
static int read_map_block(struct conf_reader *reader, const struct conf_pair *pair)
{
    struct map *map = arena_zalloc(reader->arena, 1, sizeof(*map));
    struct user_variable *variable;
    struct conf_words words;
    int error = conf_read_words(reader, pair->key, &words);

    if (!map)
        return -ENOMEM;
    if (error < 0)
        return error;
    map->among = reader->user_variables;
    if (words.count != 2 || pair->value->kind != CONF_MAP) {
        conf_error(reader->errors, pair->key->mark, HINT, "map takes two variables, and a map of values");
        return -EINVAL;
    }
    error = conf_read_template_word(reader, pair->key, words.items[0], &map->source);
    if (error == 0)
        error = user_variable_read(reader, pair->key, words.items[1], &variable);
    if (error == 0)
        error = read_lines(reader, pair->value, map);
    if (error < 0)
        return error;
    return user_variable_set_source(reader, pair->key, variable, map_eval, map, map->uncached);
}

static int read_maps(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    int error = 0;

    if (node->kind != CONF_MAP) {
        conf_error(reader->errors, node->mark, HINT, "map takes two variables, and a map of values");
        return -EINVAL;
    }
    for (size_t i = 0; i < node->count && error == 0; i++)
        error = read_map_block(reader, &node->pairs[i]);
    return error;
}

static const struct directive directives[] = {
    {.name = "map",
     .scopes = SCOPE_HTTP | SCOPE_STREAM,
     .type = DIRECTIVE_REPEAT,
     .merge = MERGE_NONE,
     .row_size = sizeof(char),
     .row = read_maps,
     .syntax = "{source $variable: {[default: value,] [hostnames: on,] [volatile: on,] value | ~regex | "
               "~*regex: value, ...}}",
     .example = "map: {$remote_addr $origin_kind: {default: visitor, 127.0.0.1: own, '~^10[.]': office}}",
     .help = "Defines a variable by another one: the value of the line whose key is equal (ignoring case), with "
             "hostnames: on also *.example.com and www.*, then of the first regular expression (~, ~*) that "
             "matches, else default, else empty. It is computed once per request, or per connection of stream, at "
             "its first use; volatile: on computes it each time.",
     .schema = "{\"type\": \"object\", \"additionalProperties\": {\"type\": \"object\"}}"},
    {0},
};

const struct module module_map = {
    .name = "map",
    .directives = directives,
    .conf_size = sizeof(struct map_conf),
};
