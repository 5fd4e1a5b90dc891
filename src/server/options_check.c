/*
 * Arguments of the subcommands that look at configurations: fmt.
 */
#include "server/options_parse.h"

#include <string.h>

/* A file that begins with a dash is written "./-name". */
static int file_argument(struct parse *parse, const char *argument)
{
    struct options *options = parse->options;

    if (!*argument)
        return options_fail(parse, "the file to format has an empty name");
    if (options->write && strcmp(argument, "-") == 0)
        return options_fail(parse, "option \"-w\" takes files, and \"-\" is the standard input");
    if (!options->files)
        options->files = &parse->argv[parse->at];
    options->file_count++;
    return 0;
}

int fmt_argument(struct parse *parse, const char *argument)
{
    struct options *options = parse->options;

    if (argument[0] != '-' || !argument[1])
        return file_argument(parse, argument);
    if (options->files)
        return options_fail(parse, "the options of fmt stand before its files (\"%s\")", argument);
    if (strcmp(argument, "-w") == 0)
        options->write = true;
    else if (strcmp(argument, "--check") == 0)
        options->check = true;
    else
        return options_fail(parse, "invalid option of fmt: \"%s\"", argument);
    return options->write && options->check ? options_fail(parse, "fmt takes \"-w\" or \"--check\", not both")
                                            : 0;
}
