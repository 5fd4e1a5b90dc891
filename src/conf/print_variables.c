/*
 * Texts about variables: `sluice help '$name'`, and docs/variables.md.
 */
#include "conf/conf_schema.h"
#include "conf/template.h"

#include <errno.h>
#include <stdlib.h>

static int compare_variables(const void *a, const void *b)
{
    const struct variable *const *left = a, *const *right = b;

    return strcmp((*left)->name, (*right)->name);
}

/* "$args", or "$arg_NAME" for a family. */
static int name_print(const struct variable *variable, struct buffer *out)
{
    return buffer_printf(out, "$%s%s", variable->name, variable->prefix ? "NAME" : "");
}

static int row_print(const struct variable *variable, struct buffer *out)
{
    int error = buffer_append(out, STR("| `"));

    if (error == 0)
        error = name_print(variable, out);
    return error == 0 ? buffer_printf(out, "` | %s | %s |\n", variable->type, variable->help) : error;
}

/* All variables of the tables, by name. */
static int rows_print(const struct variable_table *tables, const char *title, struct buffer *out)
{
    const struct variable **rows;
    size_t count = 0;
    int error;

    for (const struct variable_table *table = tables; table; table = table->next)
        count += table->count;
    rows = calloc(count + 1, sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    count = 0;
    for (const struct variable_table *table = tables; table; table = table->next) {
        for (size_t i = 0; i < table->count; i++)
            rows[count++] = &table->variables[i];
    }
    qsort(rows, count, sizeof(struct variable *), compare_variables);
    error = buffer_printf(out, "\n## %s\n\n| variable | type | meaning |\n|-|-|-|\n", title);
    for (size_t i = 0; i < count && error == 0; i++)
        error = row_print(rows[i], out);
    free(rows);
    return error;
}

int conf_print_variables(const struct variable_table *http, const struct variable_table *stream, struct buffer *out)
{
    static const char introduction[] =
        "# The variables of sluice\n"
        "\n"
        "This page is generated from the tables in the sources (`sluice help '$NAME'` prints the same); a test "
        "compares it.\n"
        "`$NAME` and `${NAME}` stand for a value in texts with variables; `$$` is a dollar sign. A variable without a "
        "value is empty.\n"
        "`$arg_NAME` and similar names are families: the part after the underscore is a name in the request. `set`, "
        "`map`, `geo`,\n"
        "`auth_request_set` and the groups of regular expressions (`$1` to `$9`, `(?<name>...)`) define further "
        "ones.\n";
    int error = buffer_append(out, str_of(introduction, sizeof(introduction) - 1));

    if (error == 0)
        error = rows_print(http, "Variables of http", out);
    return error == 0 ? rows_print(stream, "Variables of stream", out) : error;
}

static int help_print(const struct variable *variable, const char *where, struct buffer *out)
{
    int error = name_print(variable, out);

    return error == 0 ? buffer_printf(out, "\n  %s\n\n  where     %s\n  type      %s\n", variable->help, where,
                                      variable->type)
                      : error;
}

int conf_print_variable_help(const struct variable_table *http, const struct variable_table *stream, struct str name,
                             struct buffer *out)
{
    struct str parameter;
    const struct variable *of_http = variable_find(http, name, &parameter);
    const struct variable *of_stream = variable_find(stream, name, &parameter);
    const char *suggestion = variable_suggestion(http, name);
    int error = 0;

    suggestion = suggestion ? suggestion : variable_suggestion(stream, name);
    if (of_http)
        error = help_print(of_http, of_stream && strcmp(of_http->help, of_stream->help) == 0 ? "http, stream" : "http",
                           out);
    if (error == 0 && of_stream && (!of_http || strcmp(of_http->help, of_stream->help) != 0)) {
        error = of_http ? buffer_append(out, STR("\n")) : 0;
        if (error == 0)
            error = help_print(of_stream, "stream", out);
    }
    if (error < 0 || of_http || of_stream)
        return error;
    error = buffer_printf(out, "no variable is named '$" STR_FMT "'", STR_ARG(name));
    if (error == 0)
        error = suggestion ? buffer_printf(out, "; did you mean $%s?\n", suggestion) : buffer_append(out, STR("\n"));
    return error == 0 ? -ENOENT : error;
}
