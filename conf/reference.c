/*
 * Prints what the tables of this build say: the reference in Markdown or the JSON Schema. For
 * the build alone; users have `sluice help` and `sluice schema`.
 */
#include "server/configuration.h"

#include <stdio.h>

int main(int count, char **arguments)
{
    struct buffer text = {0};
    int error;

    if (count != 2 || (strcmp(arguments[1], "reference") != 0 && strcmp(arguments[1], "schema") != 0)) {
        fprintf(stderr, "usage: %s reference|schema\n", arguments[0]);
        return 2;
    }
    if (strcmp(arguments[1], "reference") == 0)
        error = conf_print_reference(configuration_schema(), &text);
    else
        error = conf_print_json_schema(configuration_schema(), &text);
    if (error == 0 && fwrite(text.data, 1, text.length, stdout) != text.length)
        error = -1;
    buffer_finish(&text);
    return error < 0 || fflush(stdout) != 0;
}
