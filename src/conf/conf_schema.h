/*
 * Reads scopes by the tables of directives into typed structs, with inheritance;
 * and prints what the tables say: JSON Schema, reference, help.
 */
#ifndef CONF_CONF_SCHEMA_H
#define CONF_CONF_SCHEMA_H

#include "conf/directive.h"

/* All groups of directives of this build, in a fixed order: their index is the slot in a scope. */
struct conf_schema {
    const struct conf_group *const *groups;
    size_t count;
};

/* One scope as read: for each group its struct, resolved (inherited and defaulted), immutable. */
struct conf_scope_values {
    void **values;                  /* [schema->count]; a group without a directive of this scope shares its outer's */
    uint64_t **set;                 /* [schema->count]: bit i: directive i was set here or in an outer scope */
    const struct conf_scope_values *outer;
    const struct conf_node *node;
};

/*
 * Reads the map `node` as `scope`. Keys that open inner scopes (http, server, location, upstream, events...) are left
 * to the caller, named in `inner`, a NULL-terminated list (NULL: none); keys beginning with x- are left alone. Unknown
 * keys, keys of other scopes, wrong types: all reported with hints. A node that is no map is reported and read as an
 * empty one. `outer` gives the inherited values (NULL for none). NULL where out of memory; errors are in reader->errors.
 */
struct conf_scope_values *conf_scope_read(struct conf_reader *reader, const struct conf_schema *schema,
                                          enum conf_scope scope, const struct conf_node *node,
                                          const struct conf_scope_values *outer, const char *const *inner);
/* Runs the groups' checks on a scope once it is complete: of those groups that have a struct of their own here. */
void conf_scope_check(struct conf_reader *reader, const struct conf_schema *schema,
                      const struct conf_scope_values *values);

/* The values of one group in a scope. */
static inline void *conf_scope_group(const struct conf_scope_values *values, size_t group)
{
    return values->values[group];
}

/* True where directive `index` of the group was written in this scope or an outer one: not its fallback. */
static inline bool conf_scope_is_set(const struct conf_scope_values *values, size_t group, size_t index)
{
    return values->set[group][index / 64] >> (index % 64) & 1;
}

/* All scopes in which this build has a directive. */
unsigned conf_schema_scopes(const struct conf_schema *schema);

/* The words for a scope: "server". */
const char *conf_scope_name(enum conf_scope scope);

/* Printing; each 0 or -ENOMEM. */
MUST_CHECK int conf_print_json_schema(const struct conf_schema *schema, struct buffer *out);
MUST_CHECK int conf_print_reference(const struct conf_schema *schema, struct buffer *out); /* Markdown, conf/README.md */
MUST_CHECK int conf_print_unsupported(struct buffer *out); /* what nginx has and sluice has not: conf/NGINX.md */
/* All variables of http and of stream, in Markdown: conf/VARIABLES.md. */
MUST_CHECK int conf_print_variables(const struct variable_table *http, const struct variable_table *stream,
                                    struct buffer *out);
/* A variable's help, `name` without its "$"; or -ENOENT with the nearest name in `out`. */
MUST_CHECK int conf_print_variable_help(const struct variable_table *http, const struct variable_table *stream,
                                        struct str name, struct buffer *out);
/* One directive's help, or -ENOENT with the nearest names in `out`. */
MUST_CHECK int conf_print_help(const struct conf_schema *schema, struct str name, struct buffer *out);
/* The effective configuration (-T): the tree after includes, environment and anchors, as YAML. */
MUST_CHECK int conf_print_tree(const struct conf_node *node, struct buffer *out);

#endif
