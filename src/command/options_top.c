/*
 * Arguments of `sluice top`.
 */
#include "command/options_parse.h"

#include "base/limits.h"

#include <string.h>

static int parse_interval(struct parse *parse, const char *text)
{
    uint64_t seconds;

    if (str_to_u64(str_from(text), &seconds) < 0 || seconds == 0 || seconds > LIMIT_TOP_INTERVAL_S)
        return options_fail(parse, "invalid interval \"%s\": it must be a number of seconds from 1 to %d", text,
                            LIMIT_TOP_INTERVAL_S);
    parse->options->interval_s = (unsigned)seconds;
    return 0;
}

int top_argument(struct parse *parse, const char *argument)
{
    struct options *options = parse->options;

    if (strcmp(argument, "--once") == 0) {
        options->once = true;
        return 0;
    }
    if (strcmp(argument, "--json") == 0) {
        options->json = true;
        return 0;
    }
    if (strncmp(argument, "--interval=", 11) == 0)
        return parse_interval(parse, argument + 11);
    if (strcmp(argument, "--interval") == 0)
        return parse->at + 1 < parse->argc ? parse_interval(parse, parse->argv[++parse->at])
                                           : options_fail(parse, "option \"--interval\" requires a number of seconds");
    if (argument[0] == '-')
        return options_fail(parse, "invalid option of top: \"%s\"", argument);
    if (options->url)
        return options_fail(parse, "top takes one URL, and \"%s\" is a second one", argument);
    options->url = argument;
    return 0;
}
