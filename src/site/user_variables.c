/*
 * Collects the names of variables wherever they can be defined: after `set` and similar directives, in the keys of
 * `map` and `geo`, and in any text that resembles a named group of a regular expression. A name collected in error
 * only adds a slot per request.
 */
#include "site/user_variables.h"

#include "base/regex.h"

#include <errno.h>

#define ABSENT ((struct str){NULL, 0})

struct found_name {
    struct found_name *next;
    struct str name;
};

struct name_collector {
    struct arena *arena;
    const struct variable_table *known;
    struct found_name *first;
    size_t count;
    bool numbers; /* the file has a regular expression: $1 to $9 are defined */
    bool failed;  /* out of memory */
};

/* Returns the name at the start of a text; it does not begin with a digit. */
static struct str leading_name(struct str text)
{
    size_t length = 0;

    for (; length < text.length; length++) {
        char c = text.data[length];
        bool letter = (str_lower(c) >= 'a' && str_lower(c) <= 'z') || c == '_';

        if (!letter && (length == 0 || c < '0' || c > '9'))
            break;
    }
    return str_slice(text, 0, length);
}

static void add_name(struct name_collector *name_collector, struct str name)
{
    struct found_name *found;
    struct str parameter;
    const struct variable *known;

    if (str_empty(name))
        return;
    for (found = name_collector->first; found; found = found->next) {
        if (str_equal(found->name, name))
            return;
    }
    known = variable_find(name_collector->known, name, &parameter);
    if (known && !known->prefix)
        return;
    found = arena_zalloc(name_collector->arena, 1, sizeof(*found));
    name_collector->failed |= !found;
    if (!found)
        return;
    *found = (struct found_name){.next = name_collector->first, .name = name};
    name_collector->first = found;
    name_collector->count++;
}

/* (?<name>, (?P<name> and (?'name' */
static void collect_group_names(struct name_collector *name_collector, struct str text)
{
    ssize_t at;

    name_collector->numbers |= str_starts(text, STR("~")) || str_search(text, STR(" ~")) >= 0;
    while ((at = str_search(text, STR("(?"))) >= 0) {
        text = str_skip(text, (size_t)at + 2);
        if (str_starts(text, STR("P")))
            text = str_skip(text, 1);
        if (str_starts(text, STR("<")) || str_starts(text, STR("'")))
            add_name(name_collector, leading_name(str_skip(text, 1)));
    }
}

/* "$name ..." */
static void collect_target(struct name_collector *name_collector, struct str text)
{
    text = str_trim(text);
    if (str_starts(text, STR("$")))
        add_name(name_collector, leading_name(str_skip(text, 1)));
}

/* `set: $a 1`, `set: [$a 1, [$b, '2']]`, `set: {$a: 1}` */
static void collect_set(struct name_collector *name_collector, const struct conf_node *node)
{
    switch (node->kind) {
    case CONF_SCALAR:
        collect_target(name_collector, node->text);
        break;
    case CONF_LIST:
        for (size_t i = 0; i < node->count; i++)
            collect_set(name_collector, node->items[i]);
        break;
    case CONF_MAP:
        for (size_t i = 0; i < node->count; i++)
            collect_target(name_collector, node->pairs[i].key->text);
        break;
    }
}

/* `map: {$from $to: {...}}`, `geo: {$to: {...}}`: the last word is the variable that is set. */
static void collect_map_keys(struct name_collector *name_collector, const struct conf_node *node)
{
    for (size_t i = 0; node->kind == CONF_LIST && i < node->count; i++)
        collect_map_keys(name_collector, node->items[i]);
    for (size_t i = 0; node->kind == CONF_MAP && i < node->count; i++) {
        struct str key = str_trim(node->pairs[i].key->text);

        collect_target(name_collector, str_skip(key, (size_t)(str_rfind(key, ' ') + 1)));
    }
}

static const struct {
    const char *key;
    void (*collect_names)(struct name_collector *name_collector, const struct conf_node *node);
} naming_directives[] = {
    {"set", collect_set},
    {"auth_request_set", collect_set},
    {"map", collect_map_keys},
    {"geo", collect_map_keys},
};

static void collect_names(struct name_collector *name_collector, const struct conf_node *node)
{
    if (node->kind == CONF_SCALAR)
        collect_group_names(name_collector, node->text);
    for (size_t i = 0; node->kind == CONF_LIST && i < node->count; i++)
        collect_names(name_collector, node->items[i]);
    for (size_t i = 0; node->kind == CONF_MAP && i < node->count; i++) {
        const struct conf_pair *pair = &node->pairs[i];

        for (size_t k = 0; k < sizeof(naming_directives) / sizeof(naming_directives[0]); k++) {
            if (str_equal(pair->key->text, str_from(naming_directives[k].key)))
                naming_directives[k].collect_names(name_collector, pair->value);
        }
        name_collector->numbers |= str_equal(pair->key->text, STR("rewrite"));
        collect_group_names(name_collector, pair->key->text);
        collect_names(name_collector, pair->value);
    }
}

/* Returns the slot of a variable's value; NULL when out of memory. */
static struct str *value_of(const void *subject, const struct user_variable *variable)
{
    struct user_variable_values *own = variable->among->subject->values(subject);

    if (!own->values)
        own->values = arena_zalloc(own->arena, variable->among->count, sizeof(*own->values));
    return own->values ? &own->values[variable->index] : NULL;
}

int user_variable_set(const void *subject, const struct user_variable *variable, struct str value)
{
    struct str *place = value_of(subject, variable);

    if (!place)
        return -ENOMEM;
    *place = value.data ? value : STR("");
    return 0;
}

/* `parameter` points to the variable. The value is set empty before the evaluation, which ends a recursion. */
static struct str get_own(const void *subject, struct str parameter, struct arena *arena)
{
    const struct user_variable *variable = (const void *)parameter.data;
    struct str *place = value_of(subject, variable);
    struct str value;

    if (!place || place->data || !variable->eval)
        return place ? *place : ABSENT;
    *place = STR("");
    value = variable->eval(subject, variable->source);
    *place = variable->uncached ? ABSENT : value.data ? value : STR("");
    return value;
}

/* "$1" to "$9" of the last match. `parameter` points to the user_variables; its length is the group's number. */
static struct str get_group(const void *subject, struct str parameter, struct arena *arena)
{
    const struct user_variables *all = (const void *)parameter.data;
    const struct user_variable_values *own = all->subject->values(subject);

    return own->groups ? own->groups[parameter.length] : ABSENT;
}

static int make_table(struct arena *arena, struct user_variables *own, const struct name_collector *name_collector)
{
    static const char *const numbers[REGEX_GROUPS] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    size_t extra = name_collector->numbers ? REGEX_GROUPS - 1 : 0;
    struct variable *variables = arena_zalloc(arena, own->count + extra + 1, sizeof(*variables));

    if (!variables)
        return -ENOMEM;
    for (size_t i = 0; i < own->count; i++) {
        struct str name = arena_copy(arena, own->items[i].name);

        if (!name.data)
            return -ENOMEM;
        variables[i] = (struct variable){.name = name.data,
                                         .get = get_own,
                                         .parameter = {(const char *)&own->items[i], sizeof(own->items[i])}};
    }
    for (size_t i = 1; i <= extra; i++)
        variables[own->count + i - 1] =
            (struct variable){.name = numbers[i], .get = get_group, .parameter = {(const char *)own, i}};
    own->table = (struct variable_table){variables, own->count + extra, name_collector->known};
    return 0;
}

int user_variables_collect(struct arena *arena, const struct conf_node *tree,
                           const struct variable_table *known, const struct user_variable_subject *subject,
                           struct user_variables *out)
{
    struct name_collector name_collector = {.arena = arena, .known = known};
    size_t index = 0;

    if (tree)
        collect_names(&name_collector, tree);
    *out = (struct user_variables){.subject = subject,
                                   .count = name_collector.count,
                                   .items = arena_zalloc(arena, name_collector.count + 1, sizeof(*out->items))};
    if (name_collector.failed || !out->items)
        return -ENOMEM;
    for (const struct found_name *found = name_collector.first; found; found = found->next, index++)
        out->items[index] = (struct user_variable){.among = out, .name = found->name, .index = index};
    return make_table(arena, out, &name_collector);
}

struct user_variable *user_variable_find(const struct user_variables *own, struct str name)
{
    for (size_t i = 0; i < own->count; i++) {
        if (str_equal(own->items[i].name, name))
            return &own->items[i];
    }
    return NULL;
}

int user_variable_read(struct conf_reader *reader, const struct conf_node *node, struct str word,
                       struct user_variable **out)
{
    struct str name = str_starts(word, STR("$")) ? leading_name(str_skip(word, 1)) : STR("");
    struct user_variable *variable = user_variable_find(reader->user_variables, name);

    if (str_empty(name) || name.length + 1 != word.length) {
        conf_error(reader->errors, conf_mark_within(node, word, 0), STR("a variable is written $name"),
                   "\"" STR_FMT "\" is not a variable name", STR_ARG(word));
        return -EINVAL;
    }
    if (!variable) {
        conf_error(reader->errors, conf_mark_within(node, word, 0), STR("use another name"),
                   "$" STR_FMT " is built in and cannot be set", STR_ARG(name));
        return -EINVAL;
    }
    *out = variable;
    return 0;
}

int user_variable_set_source(struct conf_reader *reader, const struct conf_node *node, struct user_variable *variable,
                             struct str (*eval)(const void *subject, const void *source), const void *source,
                             bool uncached)
{
    if (variable->eval) {
        conf_error(reader->errors, node->mark, STR("use another name"),
                   "$" STR_FMT " is already defined by another map or geo", STR_ARG(variable->name));
        return -EINVAL;
    }
    variable->eval = eval;
    variable->source = source;
    variable->uncached = uncached;
    return 0;
}
