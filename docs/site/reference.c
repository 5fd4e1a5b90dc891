/*
 * Prints what the tables of this build say: the reference, the variables and what nginx has and sluice does not in
 * Markdown, or the JSON Schema. For the build alone; users have `sluice help` and `sluice schema`.
 */
#include "site/configuration.h"
#include "site/subjects.h"

#include <stdio.h>

static int print_reference(struct buffer *out)
{
    return conf_print_reference(configuration_schema(), out);
}

static int print_schema(struct buffer *out)
{
    return conf_print_json_schema(configuration_schema(), out);
}

static int print_variables(struct buffer *out)
{
    return conf_print_variables(variables_all(), &variables_stream, out);
}

static const struct {
    const char *name;
    int (*print)(struct buffer *out);
} kinds[] = {
    {"reference", print_reference},
    {"schema", print_schema},
    {"variables", print_variables},
    {"nginx", conf_print_unsupported},
};

int main(int count, char **arguments)
{
    struct buffer text = {0};
    int error = -1;

    for (size_t i = 0; count == 2 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(arguments[1], kinds[i].name) == 0)
            error = kinds[i].print(&text);
    }
    if (error < 0)
        fprintf(stderr, "usage: %s reference|schema|variables|nginx\n", arguments[0]);
    if (error == 0 && fwrite(text.data, 1, text.length, stdout) != text.length)
        error = -1;
    buffer_finish(&text);
    return error < 0 || fflush(stdout) != 0;
}
