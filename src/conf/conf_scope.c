/*
 * Reads a scope: each group's struct begins as a copy of the outer scope's, or with the defaults; then the keys of the
 * map replace fields of it.
 */
#include "conf/conf_schema.h"
#include "conf/conf_value.h"
#include "conf/unknown_key.h"

#include <assert.h>
#include <errno.h>

struct scope_reader {
    struct conf_reader *reader;
    const struct conf_schema *schema;
    enum conf_scope scope;
    struct conf_scope_values *values;
    const char *const *inner;
};

static size_t directives_count(const struct conf_group *group)
{
    size_t count = 0;

    while (group->directives && group->directives[count].name)
        count++;
    return count;
}

static bool is_group_allowed(const struct conf_group *group, enum conf_scope scope)
{
    for (size_t i = 0; group->directives && group->directives[i].name; i++) {
        if (group->directives[i].scopes & scope)
            return true;
    }
    return false;
}

static int set_defaults(struct scope_reader *scope, const struct conf_group *group, void *conf)
{
    for (size_t i = 0; group->directives && group->directives[i].name; i++) {
        const struct directive *directive = &group->directives[i];

        if (!directive->ignored &&
            field_set_default(scope->reader, directive, (char *)conf + directive->offset) == -ENOMEM)
            return -ENOMEM;
    }
    return 0;
}

/* Resets fields that are not inherited to their defaults. */
static int own_fields_reset(struct scope_reader *scope, const struct conf_group *group, size_t slot)
{
    char *conf = scope->values->values[slot];

    for (size_t i = 0; group->directives && group->directives[i].name; i++) {
        const struct directive *directive = &group->directives[i];

        if (directive->merge != MERGE_NONE || directive->ignored || scope->reader->is_overlay)
            continue;
        if (directive->type == DIRECTIVE_BLOCK) {
            for (const struct directive *child = directive->children; child->name; child++)
                memset(conf + directive->offset + child->offset, 0, field_size(child));
        } else {
            memset(conf + directive->offset, 0, field_size(directive));
        }
        scope->values->set[slot][i / 64] &= ~(1ull << (i % 64));
        if (field_set_default(scope->reader, directive, conf + directive->offset) == -ENOMEM)
            return -ENOMEM;
    }
    return 0;
}

static int group_start(struct scope_reader *scope, size_t slot)
{
    const struct conf_group *group = scope->schema->groups[slot];
    const struct conf_scope_values *outer = scope->values->outer;
    struct conf_scope_values *values = scope->values;
    size_t words = directives_count(group) / 64 + 1;

    if (outer && !is_group_allowed(group, scope->scope)) {
        values->values[slot] = outer->values[slot];
        values->set[slot] = outer->set[slot];
        return 0;
    }
    values->values[slot] = arena_zalloc(scope->reader->arena, 1, group->size ? group->size : 1);
    values->set[slot] = arena_zalloc(scope->reader->arena, words, sizeof(uint64_t));
    if (!values->values[slot] || !values->set[slot])
        return -ENOMEM;
    if (!outer)
        return set_defaults(scope, group, values->values[slot]);
    memcpy(values->values[slot], outer->values[slot], group->size);
    memcpy(values->set[slot], outer->set[slot], words * sizeof(uint64_t));
    return own_fields_reset(scope, group, slot);
}

static struct conf_scope_values *values_create(struct scope_reader *scope, const struct conf_node *node,
                                               const struct conf_scope_values *outer)
{
    struct conf_scope_values *values = arena_zalloc(scope->reader->arena, 1, sizeof(*values));
    size_t count = scope->schema->count;

    if (!values)
        return NULL;
    *values = (struct conf_scope_values){
        .values = arena_zalloc(scope->reader->arena, count, sizeof(void *)),
        .set = arena_zalloc(scope->reader->arena, count, sizeof(uint64_t *)),
        .outer = outer,
        .node = node,
    };
    scope->values = values;
    if (!values->values || !values->set)
        return NULL;
    for (size_t slot = 0; slot < count; slot++) {
        if (group_start(scope, slot) < 0)
            return NULL;
    }
    return values;
}

static const struct directive *directive_find(const struct conf_schema *schema, struct str name,
                                              unsigned scopes, size_t *out_group, size_t *out_index)
{
    for (size_t slot = 0; slot < schema->count; slot++) {
        const struct directive *directives = schema->groups[slot]->directives;

        for (size_t i = 0; directives && directives[i].name; i++) {
            if ((directives[i].scopes & scopes) && str_equal(name, str_from(directives[i].name))) {
                *out_group = slot;
                *out_index = i;
                return &directives[i];
            }
        }
    }
    return NULL;
}

static bool left_to_caller(const struct scope_reader *scope, struct str name)
{
    if (str_starts(name, STR("x-")))
        return true;
    for (size_t i = 0; scope->inner && scope->inner[i]; i++) {
        if (str_equal(name, str_from(scope->inner[i])))
            return true;
    }
    return false;
}

/* Puts the outer scope's rows before the inner one's. */
static int rows_join(struct conf_reader *reader, const void *outer, void *inner, size_t row_size)
{
    const struct conf_rows *before = outer;
    struct conf_rows *rows = inner;
    size_t count = before->count + rows->count;
    char *items;

    if (!before->count)
        return 0;
    items = arena_zalloc(reader->arena, count, row_size);
    if (!items)
        return -ENOMEM;
    memcpy(items, before->items, before->count * row_size);
    if (rows->count)
        memcpy(items + before->count * row_size, rows->items, rows->count * row_size);
    *rows = (struct conf_rows){items, count};
    return 0;
}

/* conf_words, conf_templates and conf_rows share one layout: an array and a count. */
static size_t item_size(const struct directive *directive)
{
    switch (directive->type) {
    case DIRECTIVE_REPEAT:
        return directive->row_size;
    case DIRECTIVE_WORDS:
        return sizeof(struct str);
    case DIRECTIVE_TEMPLATES:
        return sizeof(const struct template *);
    default:
        return 0;
    }
}

static int ignored_read(struct scope_reader *scope, const struct directive *directive, const struct conf_node *node)
{
    const struct directive_ignored *ignored = directive->ignored;
    union {
        bool on;
        uint64_t words[4];
    } value = {.words = {0}};
    int error;

    assert(field_size(directive) <= sizeof(value));
    error = field_read(scope->reader, directive, node, &value);
    if (error == 0 && directive->type == DIRECTIVE_SWITCH && ignored->off_reason && !value.on)
        conf_warning(scope->reader->errors, node->mark, str_from(ignored->off_hint),
                     "\"%s: off\" has no effect: %s", directive->name, ignored->off_reason);
    return error;
}

static int pair_read(struct scope_reader *scope, const struct conf_pair *pair)
{
    struct conf_scope_values *values = scope->values;
    const struct conf_scope_values *outer = values->outer;
    size_t slot;
    size_t index;
    const struct directive *directive =
        directive_find(scope->schema, pair->key->text, scope->scope, &slot, &index);
    char *field;
    size_t items;
    int error;

    if (!directive) {
        key_reject(scope->reader, scope->schema, scope->scope, pair->key);
        return -EINVAL;
    }
    field_warn_deprecated(scope->reader, directive, pair->key);
    if (directive->ignored)
        return ignored_read(scope, directive, pair->value);
    field = (char *)values->values[slot] + directive->offset;
    items = directive->merge == MERGE_APPEND ? item_size(directive) : 0;
    if (directive->type != DIRECTIVE_BLOCK && !(directive->merge == MERGE_APPEND && outer && !items))
        memset(field, 0, field_size(directive));
    error = field_read(scope->reader, directive, pair->value, field);
    if (error == 0 && items && outer && values->values[slot] != outer->values[slot])
        error = rows_join(scope->reader, (const char *)outer->values[slot] + directive->offset, field, items);
    values->set[slot][index / 64] |= 1ull << (index % 64);
    return error;
}

static void map_reject(struct conf_reader *reader, const struct conf_node *node)
{
    const char *name = conf_scope_name(reader->scope);
    struct str hint = value_space_hint(reader, node);

    if (node->absent)
        conf_error(reader->errors, node->mark, STR("indent its keys below it, or write {} if there are none"),
                   "'" STR_FMT "' has no value", STR_ARG(node->key.length ? node->key : str_from(name)));
    else
        conf_error(reader->errors, node->mark,
                   hint.length                ? hint
                   : node->kind == CONF_LIST ? STR("write its keys below it, without '- '")
                                             : STR("write its keys below it, each on a line of its own"),
                   "%s takes a mapping of directives", name);
}

struct conf_scope_values *conf_scope_read(struct conf_reader *reader, const struct conf_schema *schema,
                                          enum conf_scope scope, const struct conf_node *node,
                                          const struct conf_scope_values *outer, const char *const *inner)
{
    struct scope_reader own = {reader, schema, scope, NULL, inner};
    struct conf_scope_values *values;

    reader->scope = scope;
    reader->directive = NULL;
    values = values_create(&own, node, outer);
    if (!values)
        return NULL;
    if (node->kind != CONF_MAP) {
        map_reject(reader, node);
        return values;
    }
    for (size_t i = 0; i < node->count; i++) {
        if (!left_to_caller(&own, node->pairs[i].key->text) && pair_read(&own, &node->pairs[i]) == -ENOMEM)
            return NULL;
    }
    return values;
}

void conf_scope_check(struct conf_reader *reader, const struct conf_schema *schema,
                      const struct conf_scope_values *values)
{
    for (size_t slot = 0; slot < schema->count; slot++) {
        const struct conf_group *group = schema->groups[slot];
        bool own = !values->outer || values->values[slot] != values->outer->values[slot];

        if (own && group->check && group->check(values->values[slot], reader, values->node) == -ENOMEM)
            conf_error(reader->errors, values->node->mark, STR(""), "out of memory");
    }
}
