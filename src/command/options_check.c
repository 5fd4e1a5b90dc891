/*
 * Arguments of the subcommands that check configurations: fmt, lint, explain.
 */
#include "command/options_parse.h"

#include <string.h>

/* An argument that begins with a dash is an option, except "-"; a file of such a name is written "./-name". */
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
        return options_fail(parse, "the options of fmt precede its files (\"%s\")", argument);
    if (strcmp(argument, "-w") == 0)
        options->write = true;
    else if (strcmp(argument, "--check") == 0)
        options->check = true;
    else if (strcmp(argument, "--diff") == 0 || strcmp(argument, "-d") == 0)
        options->diff = true;
    else
        return options_fail(parse, "invalid option of fmt: \"%s\"", argument);
    return options->write + options->check + options->diff > 1
               ? options_fail(parse, "fmt takes one of \"-w\", \"--check\" and \"--diff\"")
               : 0;
}

static int parse_format(struct parse *parse, const char *name)
{
    static const char *const names[] = {"text", "gcc", "json", "sarif"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            parse->options->format = (enum output_format)i;
            return 0;
        }
    }
    return options_fail(parse, "invalid format \"%s\": use text, gcc, json or sarif", name);
}

/* Parses "--format NAME" or "--format=NAME"; 1: the argument is neither. */
static int format_argument(struct parse *parse, const char *argument)
{
    if (strncmp(argument, "--format=", 9) == 0)
        return parse_format(parse, argument + 9);
    if (strcmp(argument, "--format") != 0)
        return 1;
    if (parse->at + 1 >= parse->argc)
        return options_fail(parse, "option \"--format\" requires a name");
    return parse_format(parse, parse->argv[++parse->at]);
}

int lint_argument(struct parse *parse, const char *argument)
{
    int format = format_argument(parse, argument);

    if (format <= 0)
        return format;
    if (argument[0] == '-' && argument[1])
        return options_fail(parse, "invalid option of lint: \"%s\"", argument);
    if (parse->options->conf)
        return options_fail(parse, "lint takes one file, and \"%s\" is a second one", argument);
    parse->options->conf = argument;
    return 0;
}

int explain_argument(struct parse *parse, const char *argument)
{
    int format = format_argument(parse, argument);

    if (format == 0 && parse->options->format != OUTPUT_TEXT && parse->options->format != OUTPUT_JSON)
        return options_fail(parse, "explain writes text or json");
    if (format <= 0)
        return format;
    if (argument[0] == '-')
        return options_flags(parse, argument + 1);
    if (parse->options->url)
        return options_fail(parse, "explain takes one URL, and \"%s\" is a second one", argument);
    parse->options->url = argument;
    return 0;
}
