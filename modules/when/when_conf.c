/*
 * The directives `set`, `when` and `limit_except`, as read.
 */
#include "when_conf.h"

#include <errno.h>
#include <stddef.h>

#define HINT STR("write: set: [$name value, {$other: 'two words'}]")

static int read_setting(struct conf_reader *reader, const struct conf_node *node, struct str name,
                        struct setting *out)
{
    if (str_equal(name, STR("$args")) || str_equal(name, STR("$query_string")))
        return 0;
    return user_variable_read(reader, node, name, &out->variable);
}

static int read_set_map(struct conf_reader *reader, const struct conf_node *node, struct set_row *row)
{
    int error = 0;

    row->items = arena_zalloc(reader->arena, node->count + 1, sizeof(*row->items));
    if (!row->items)
        return -ENOMEM;
    for (; row->count < node->count && error == 0; row->count++) {
        const struct conf_pair *pair = &node->pairs[row->count];
        struct setting *setting = &row->items[row->count];

        error = read_setting(reader, pair->key, pair->key->text, setting);
        if (error == 0)
            error = conf_read_template(reader, pair->value, &setting->value);
    }
    return error;
}

/* "$name value", or a map from names to values. */
static int read_set(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct set_row *row = out;
    struct conf_words words;
    int error;

    if (node->kind == CONF_MAP)
        return read_set_map(reader, node, row);
    error = conf_read_words(reader, node, &words);
    if (error < 0)
        return error;
    if (words.count != 2) {
        conf_error(reader->errors, node->mark, HINT, "set takes a variable and its value");
        return -EINVAL;
    }
    row->items = arena_zalloc(reader->arena, 1, sizeof(*row->items));
    if (!row->items)
        return -ENOMEM;
    row->count = 1;
    error = read_setting(reader, node, words.items[0], row->items);
    return error < 0 ? error : conf_read_template_word(reader, node, words.items[1], &row->items->value);
}

static int check_map(struct conf_reader *reader, const struct conf_node *node, struct str hint,
                       const char *sentence)
{
    if (node->kind == CONF_MAP)
        return 0;
    conf_error(reader->errors, node->mark, hint, "%s", sentence);
    return -EINVAL;
}

/* The server parses it once the location is known (site/when.h). */
static int read_when(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    *(bool *)out = true;
    return check_map(reader, node, STR("when: {$request_method = POST: {return: 405}}"),
                       "when takes a mapping of conditions to directives");
}

/* The server parses it, too. */
static int read_limit_except(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    *(bool *)out = true;
    return check_map(reader, node, STR("limit_except: {GET: {deny: all}}"),
                       "limit_except takes a mapping of methods to directives");
}

int when_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct when_conf *own = conf;

    if (reader->scope == SCOPE_SERVER)
        own->outer_sets = own->sets.count;
    return 0;
}

const struct directive when_directives[] = {
    {.name = "set",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_REPEAT,
     .merge = MERGE_APPEND,
     .offset = offsetof(struct when_conf, sets),
     .row_size = sizeof(struct set_row),
     .row = read_set,
     .syntax = "$variable value | {$variable: value, ...}",
     .example = "set: [$backend blue, {$greeting: 'hello, $remote_addr'}]",
     .help = "Sets variables, before everything else in the location; those of the server before a location is "
             "selected. $args sets the query.",
     .schema = "{\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"object\"}]}"},
    {.name = "when",
     .scopes = SCOPE_SERVER | SCOPE_LOCATION,
     .type = DIRECTIVE_CUSTOM,
     .merge = MERGE_APPEND,
     .offset = offsetof(struct when_conf, seen),
     .row_size = sizeof(bool),
     .row = read_when,
     .schema = "{\"type\": \"object\", \"additionalProperties\": {\"$ref\": \"#/definitions/location\"}}",
     .syntax = "{condition [and condition ...]: {directives}, ...}",
     .example = "when: {$request_method = POST: {return: 405}, -f $document_root/closed.html: {return: 503}}",
     .help = "Directives that are merged into the location if a condition is true: the first one in the order of "
             "the file, those of the server before those of the location. A condition is $name (not empty, not 0), "
             "$name = text, != text, ~ regex, ~* regex, !~ regex, -f file, -d directory, -e either, !-f; and combines "
             "several."},
    {.name = "limit_except",
     .scopes = SCOPE_LOCATION,
     .type = DIRECTIVE_CUSTOM,
     .merge = MERGE_APPEND,
     .offset = offsetof(struct when_conf, limited),
     .row_size = sizeof(bool),
     .row = read_limit_except,
     .schema = "{\"type\": \"object\", \"additionalProperties\": {\"$ref\": \"#/definitions/location\"}}",
     .syntax = "{method ...: {directives}}",
     .example = "limit_except: {GET POST: {allow: 192.0.2.0/24, deny: all}}",
     .help = "Directives that are merged into the location for requests with methods other than these; HEAD is "
             "included in GET. It is evaluated before all `when` of the location, which are then not evaluated. "
             "Inner locations inherit it, or replace it."},
    {0},
};
