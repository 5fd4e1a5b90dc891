/*
 * Reads a node into a field by the directive's type: one function per type, in a table.
 */
#include "conf/conf_value.h"

#include <errno.h>

typedef int field_reader(struct conf_reader *reader, const struct directive *directive,
                         const struct conf_node *node, void *field);

static int read_text(struct conf_reader *reader, const struct directive *directive,
                     const struct conf_node *node, void *field)
{
    return conf_read_text(reader, node, field);
}

static int register_directory(struct conf_reader *reader, struct str path)
{
    struct conf_words *directories = reader->directories;
    struct str *grown;

    for (size_t i = 0; i < directories->count; i++) {
        if (str_equal(directories->items[i], path))
            return 0;
    }
    grown = arena_zalloc(reader->arena, directories->count + 1, sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    for (size_t i = 0; i < directories->count; i++)
        grown[i] = directories->items[i];
    grown[directories->count] = arena_copy(reader->arena, path);
    directories->items = grown;
    return grown[directories->count++].data ? 0 : -ENOMEM;
}

/* Reads a path, and records a directory that workers write to, unless the path is the default (line 0). */
static int read_path(struct conf_reader *reader, const struct directive *directive,
                     const struct conf_node *node, void *field)
{
    int error = conf_read_path(reader, node, field);

    if (error == 0 && directive->written && reader->directories && node->mark.line > 0)
        error = register_directory(reader, *(struct str *)field);
    return error;
}

static int read_number(struct conf_reader *reader, const struct directive *directive,
                       const struct conf_node *node, void *field)
{
    return conf_read_number(reader, node, directive->low, directive->high, field);
}

/* Checks the bounds of a size or a duration, and reports them in the notation of its units. */
static int bounds_check(struct conf_reader *reader, const struct directive *directive,
                        const struct conf_node *node, uint64_t value, const char *unit)
{
    bool small = value < directive->low;

    if (!small && (!directive->high || value <= directive->high))
        return 0;
    conf_error(reader->errors, node->mark,
               conf_hint(reader->errors, "at %s %llu%s", small ? "least" : "most",
                         (unsigned long long)(small ? directive->low : directive->high), unit),
               "'%s' is too %s", directive->name, small ? "small" : "large");
    return -EINVAL;
}

static int read_size(struct conf_reader *reader, const struct directive *directive,
                     const struct conf_node *node, void *field)
{
    uint64_t bytes;
    int error = conf_read_size(reader, node, &bytes);

    if (error == 0)
        error = bounds_check(reader, directive, node, bytes, " bytes");
    if (error == 0)
        *(uint64_t *)field = bytes;
    return error;
}

static int read_duration(struct conf_reader *reader, const struct directive *directive,
                         const struct conf_node *node, void *field)
{
    uint64_t ms;
    int error = conf_read_duration(reader, node, &ms);

    if (error == 0)
        error = bounds_check(reader, directive, node, ms, "ms");
    if (error == 0)
        *(uint64_t *)field = ms;
    return error;
}

static int read_switch(struct conf_reader *reader, const struct directive *directive,
                       const struct conf_node *node, void *field)
{
    return conf_read_switch(reader, node, field);
}

static int read_choice(struct conf_reader *reader, const struct directive *directive,
                       const struct conf_node *node, void *field)
{
    return conf_read_choice(reader, node, directive->choices, field);
}

static int read_flags(struct conf_reader *reader, const struct directive *directive,
                      const struct conf_node *node, void *field)
{
    struct conf_words words;
    unsigned flags = 0;
    int error = conf_read_words(reader, node, &words);

    for (size_t i = 0; error == 0 && i < words.count; i++) {
        int found = choice_find(directive->choices, words.items[i]);

        if (found < 0)
            error = choice_reject(reader, node->kind == CONF_LIST ? node->items[i] : node, directive->choices,
                                  words.items[i]);
        else
            flags |= 1u << found;
    }
    if (error == 0)
        *(unsigned *)field = flags;
    return error;
}

static int read_template(struct conf_reader *reader, const struct directive *directive,
                         const struct conf_node *node, void *field)
{
    return conf_read_template(reader, node, field);
}

/* Reports "a, b" without brackets: words are separated by blanks, and the comma would be a part of the first one. */
static int check_commas(struct conf_reader *reader, const struct conf_node *node, const struct conf_words *words)
{
    for (size_t i = 0; node->kind == CONF_SCALAR && !node->quoted && i + 1 < words->count; i++) {
        if (!str_ends(words->items[i], STR(",")))
            continue;
        conf_error(reader->errors, node->mark,
                   conf_hint(reader->errors, "write [" STR_FMT "], or separate words by blanks", STR_ARG(node->text)),
                   "the comma would be part of '" STR_FMT "'", STR_ARG(words->items[i]));
        return -EINVAL;
    }
    return 0;
}

static int read_words_field(struct conf_reader *reader, const struct directive *directive,
                            const struct conf_node *node, void *field)
{
    int error = conf_read_words(reader, node, field);

    return error < 0 ? error : check_commas(reader, node, field);
}

static int read_templates(struct conf_reader *reader, const struct directive *directive,
                          const struct conf_node *node, void *field)
{
    struct conf_words words;
    const struct template **items;
    int error = conf_read_words(reader, node, &words);

    if (error == 0)
        error = check_commas(reader, node, &words);
    if (error < 0)
        return error;
    items = arena_zalloc(reader->arena, words.count, sizeof(*items));
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < words.count; i++) {
        const struct conf_node *place = node->kind == CONF_LIST ? node->items[i] : node;

        error = conf_read_template_word(reader, place, words.items[i], &items[i]);
        if (error < 0)
            return error;
    }
    *(struct conf_templates *)field = (struct conf_templates){items, words.count};
    return 0;
}

static int read_repeat(struct conf_reader *reader, const struct directive *directive,
                       const struct conf_node *node, void *field)
{
    size_t count = node->kind == CONF_LIST ? node->count : 1;
    char *rows = arena_zalloc(reader->arena, count, directive->row_size);

    if (node->absent)
        return value_reject_kind(reader, node, "a value");
    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct conf_node *item = node->kind == CONF_LIST ? node->items[i] : node;
        int error = directive->row(reader, item, rows + i * directive->row_size);

        if (error == -ENOMEM)
            return error;
    }
    *(struct conf_rows *)field = (struct conf_rows){rows, count};
    return 0;
}

static int read_block(struct conf_reader *reader, const struct directive *directive,
                      const struct conf_node *node, void *field)
{
    return conf_read_block(reader, node, directive->children, field);
}

static int read_custom(struct conf_reader *reader, const struct directive *directive,
                       const struct conf_node *node, void *field)
{
    return node->absent ? value_reject_kind(reader, node, "a value") : directive->row(reader, node, field);
}

static const struct {
    field_reader *read;
    size_t size; /* 0: given by the directive */
} types[] = {
    [DIRECTIVE_TEXT] = {read_text, sizeof(struct str)},
    [DIRECTIVE_PATH] = {read_path, sizeof(struct str)},
    [DIRECTIVE_NUMBER] = {read_number, sizeof(uint64_t)},
    [DIRECTIVE_SIZE] = {read_size, sizeof(uint64_t)},
    [DIRECTIVE_DURATION] = {read_duration, sizeof(uint64_t)},
    [DIRECTIVE_SWITCH] = {read_switch, sizeof(bool)},
    [DIRECTIVE_CHOICE] = {read_choice, sizeof(int)},
    [DIRECTIVE_FLAGS] = {read_flags, sizeof(unsigned)},
    [DIRECTIVE_TEMPLATE] = {read_template, sizeof(const struct template *)},
    [DIRECTIVE_WORDS] = {read_words_field, sizeof(struct conf_words)},
    [DIRECTIVE_TEMPLATES] = {read_templates, sizeof(struct conf_templates)},
    [DIRECTIVE_REPEAT] = {read_repeat, sizeof(struct conf_rows)},
    [DIRECTIVE_BLOCK] = {read_block, 0},
    [DIRECTIVE_CUSTOM] = {read_custom, 0},
};

size_t field_size(const struct directive *directive)
{
    return types[directive->type].size ? types[directive->type].size : directive->row_size;
}

int field_read(struct conf_reader *reader, const struct directive *directive, const struct conf_node *node,
               void *field)
{
    const struct directive *outer = reader->directive;
    int error;

    reader->directive = directive;
    error = types[directive->type].read(reader, directive, node, field);
    reader->directive = outer;
    return error;
}

void field_warn_deprecated(struct conf_reader *reader, const struct directive *directive, const struct conf_node *key)
{
    if (directive->deprecated)
        conf_warning(reader->errors, key->mark, str_from(directive->deprecated), "'%s' is deprecated", directive->name);
}

/* Defaults are written as in the file: "[...]" and "{...}" are parsed as YAML, anything else is one scalar. */
static const struct conf_node *default_node(struct conf_reader *reader, const struct directive *directive)
{
    struct str text = str_from(directive->default_value);
    struct conf_node *node;

    if (text.length && (text.data[0] == '[' || text.data[0] == '{')) {
        struct str source = arena_printf(reader->arena, "default_value: %s", directive->default_value);

        node = source.data ? conf_tree_parse(reader->arena, str_from(directive->name), source, reader->errors)
                           : NULL;
        return node ? conf_map_get(node, STR("default_value")) : NULL;
    }
    node = arena_zalloc(reader->arena, 1, sizeof(*node));
    if (node)
        *node = (struct conf_node){.kind = CONF_SCALAR, .quoted = true, .text = text, .size = 1};
    return node;
}

int field_set_default(struct conf_reader *reader, const struct directive *directive, void *field)
{
    const struct conf_node *node;

    if (directive->type == DIRECTIVE_BLOCK) {
        for (const struct directive *child = directive->children; child->name; child++) {
            int error = field_set_default(reader, child, (char *)field + child->offset);

            if (error < 0)
                return error;
        }
        return 0;
    }
    if (!directive->default_value)
        return 0;
    node = default_node(reader, directive);
    return node ? field_read(reader, directive, node, field) : -ENOMEM;
}

static const struct directive *child_find(const struct directive *children, struct str name)
{
    for (; children->name; children++) {
        if (str_equal(str_from(children->name), name))
            return children;
    }
    return NULL;
}

static void child_unknown(struct conf_reader *reader, const struct directive *children,
                          const struct conf_node *key)
{
    const char *suggestion = NULL;
    size_t best = key->text.length / 3 + 1;
    struct str all = STR("");

    for (const struct directive *child = children; child->name; child++) {
        size_t distance = str_distance(key->text, str_from(child->name));

        if (distance <= best && (!suggestion || distance < best)) {
            suggestion = child->name;
            best = distance;
        }
        all = conf_hint(reader->errors, STR_FMT "%s%s", STR_ARG(all), child == children ? "" : ", ",
                        child->name);
    }
    conf_error(reader->errors, key->mark,
               suggestion ? conf_hint(reader->errors, "did you mean %s?", suggestion)
                       : conf_hint(reader->errors, "it has " STR_FMT, STR_ARG(all)),
               "'%s' has no key '" STR_FMT "'", reader->directive ? reader->directive->name : "this mapping",
               STR_ARG(key->text));
}

int conf_read_block(struct conf_reader *reader, const struct conf_node *node,
                    const struct directive *children, void *out)
{
    int result = 0;

    if (node->kind != CONF_MAP)
        return value_reject_kind(reader, node, "a mapping");
    for (const struct directive *child = children; child->name; child++) {
        int error = field_set_default(reader, child, (char *)out + child->offset);

        if (error < 0)
            return error;
    }
    for (size_t i = 0; i < node->count; i++) {
        const struct conf_pair *pair = &node->pairs[i];
        const struct directive *child = child_find(children, pair->key->text);
        int error = -EINVAL;

        if (child) {
            field_warn_deprecated(reader, child, pair->key);
            error = field_read(reader, child, pair->value, (char *)out + child->offset);
        } else {
            child_unknown(reader, children, pair->key);
        }
        if (error == -ENOMEM)
            return error;
        result = error < 0 ? error : result;
    }
    return result;
}
