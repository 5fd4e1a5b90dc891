/*
 * Arguments of `sluice ctl`: its options precede or follow the words of the command.
 */
#include "command/options_parse.h"

#include <string.h>

/* "-s SOCKET", "-sSOCKET" */
static int socket_option(struct parse *parse, const char *value)
{
    if (!*value && parse->at + 1 < parse->argc)
        value = parse->argv[++parse->at];
    if (!*value)
        return options_fail(parse, "option \"-s\" of ctl requires the path of a socket");
    parse->options->socket = value;
    return 0;
}

static int word_argument(struct parse *parse)
{
    struct options *options = parse->options;

    if (!options->files)
        options->files = &parse->argv[parse->at];
    else if (options->files + options->file_count != &parse->argv[parse->at])
        return options_fail(parse, "the options of ctl precede or follow its command (\"%s\")", parse->argv[parse->at]);
    options->file_count++;
    return 0;
}

int ctl_argument(struct parse *parse, const char *argument)
{
    if (argument[0] != '-' || !argument[1])
        return word_argument(parse);
    if (strncmp(argument, "-s", 2) == 0)
        return socket_option(parse, argument + 2);
    if (strncmp(argument, "-c", 2) == 0)
        return options_flags(parse, argument + 1);
    if (strcmp(argument, "--json") != 0)
        return options_fail(parse, "invalid option of ctl: \"%s\"", argument);
    parse->options->json = true;
    return 0;
}
