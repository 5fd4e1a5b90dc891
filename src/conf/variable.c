/*
 * Finds a variable by name in the tables of the server and the modules. The search is linear, since it runs at load
 * time only.
 */
#include "conf/template.h"

const struct variable *variable_find(const struct variable_table *table, struct str name,
                                     struct str *out_parameter)
{
    const struct variable *family = NULL;
    size_t longest = 0;

    *out_parameter = STR("");
    for (; table; table = table->next) {
        for (size_t i = 0; i < table->count; i++) {
            const struct variable *variable = &table->variables[i];
            struct str own = str_from(variable->name);

            if (!variable->prefix && str_equal(own, name)) {
                *out_parameter = variable->parameter;
                return variable;
            }
            if (variable->prefix && name.length > own.length && own.length > longest &&
                str_starts(name, own)) {
                family = variable;
                longest = own.length;
            }
        }
    }
    if (family)
        *out_parameter = str_skip(name, longest);
    return family;
}

const struct variable_table *variable_table_of(const struct variable_table *table, const struct variable *variable)
{
    for (;; table = table->next) {
        for (size_t i = 0; i < table->count; i++) {
            if (variable == &table->variables[i])
                return table;
        }
    }
}

const char *variable_suggestion(const struct variable_table *table, struct str name)
{
    const char *suggestion = NULL;
    size_t best = name.length / 3 + 1;

    for (; table; table = table->next) {
        for (size_t i = 0; i < table->count; i++) {
            const struct variable *variable = &table->variables[i];
            struct str own = str_from(variable->name);
            size_t distance = str_equal_nocase(own, name) ? 0 : str_distance(own, name);

            if (!variable->prefix && distance <= best && (!suggestion || distance < best)) {
                suggestion = variable->name;
                best = distance;
            }
        }
    }
    return suggestion;
}
