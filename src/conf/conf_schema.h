/*
 * Reads scopes by tables of directives into typed structs, with inheritance, and prints the tables: JSON Schema,
 * reference, help.
 */
#ifndef CONF_CONF_SCHEMA_H
#define CONF_CONF_SCHEMA_H

#include "conf/directive.h"

/* All groups of directives in a fixed order: the index of a group is its slot in a scope. */
struct conf_schema {
    const struct conf_group *const *groups;
    size_t count;
};

/*
 * The values of one scope: for each group its struct, with inherited values and defaults. Immutable after
 * conf_scope_check.
 */
struct conf_scope_values {
    /* [schema->count]; a group without a directive in this scope shares the outer scope's struct. */
    void **values;
    uint64_t **set;                 /* [schema->count]: bit i: directive i was set here or in an outer scope */
    const struct conf_scope_values *outer;
    const struct conf_node *node;
};

/*
 * Reads the map `node` as `scope`. The caller reads the keys in `inner`, which open inner scopes (http, server,
 * location, upstream, events...); `inner` is NULL-terminated (NULL: none). Keys with the prefix x- are ignored.
 * Unknown keys, keys of other scopes and wrong types are reported with hints. A node that is not a map is reported
 * and read as an empty one. `outer` has the inherited values (may be NULL). NULL when out of memory; errors are in
 * reader->errors.
 */
struct conf_scope_values *conf_scope_read(struct conf_reader *reader, const struct conf_schema *schema,
                                          enum conf_scope scope, const struct conf_node *node,
                                          const struct conf_scope_values *outer, const char *const *inner);
/*
 * Runs the checks of the groups that have their own struct in this scope; the checks may change it. Called when all
 * values of the scope are read.
 */
void conf_scope_check(struct conf_reader *reader, const struct conf_schema *schema,
                      const struct conf_scope_values *values);

/* The values of one group in a scope. */
static inline void *conf_scope_group(const struct conf_scope_values *values, size_t group)
{
    return values->values[group];
}

/* True if the file sets directive `index` of the group in this scope or an outer one. */
static inline bool conf_scope_is_set(const struct conf_scope_values *values, size_t group, size_t index)
{
    return values->set[group][index / 64] >> (index % 64) & 1;
}

/* All scopes in which this build has a directive. */
unsigned conf_schema_scopes(const struct conf_schema *schema);

/* The name of a scope: "server". */
const char *conf_scope_name(enum conf_scope scope);

/* Printing; each returns 0 or -ENOMEM. */
MUST_CHECK int conf_print_json_schema(const struct conf_schema *schema, struct buffer *out);
MUST_CHECK int conf_print_reference(const struct conf_schema *schema, struct buffer *out); /* Markdown, for docs/ */
/* The directives of nginx that sluice does not have, in Markdown. */
MUST_CHECK int conf_print_unsupported(struct buffer *out);
/* All variables of http and of stream, in Markdown: docs/variables.md. */
MUST_CHECK int conf_print_variables(const struct variable_table *http, const struct variable_table *stream,
                                    struct buffer *out);
/* Help for a variable, `name` without "$"; or -ENOENT with a message, and a suggestion if there is one, in `out`. */
MUST_CHECK int conf_print_variable_help(const struct variable_table *http, const struct variable_table *stream,
                                        struct str name, struct buffer *out);
/* Help for a directive, a block or "include"; or -ENOENT with a message, and suggestions if there are any, in `out`. */
MUST_CHECK int conf_print_help(const struct conf_schema *schema, struct str name, struct buffer *out);
/* The effective configuration (-T): the tree after includes, environment and anchors, as YAML. */
MUST_CHECK int conf_print_tree(const struct conf_node *node, struct buffer *out);

#endif
