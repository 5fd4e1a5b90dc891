/*
 * A command line being parsed: what the files of options share.
 */
#ifndef COMMAND_OPTIONS_PARSE_H
#define COMMAND_OPTIONS_PARSE_H

#include "command/options.h"

struct parse {
    int argc;
    char *const *argv;
    int at;
    struct options *options;
    char *error;
    size_t error_size;
};

/* One argument behind a subcommand, argv[at]; it may take the next ones. 0, or what options_fail returned. */
typedef int subcommand_argument(struct parse *parse, const char *argument);

subcommand_argument fmt_argument, lint_argument, explain_argument;

/* One word of bundled flags, without its dash: 0, or what options_fail returned. */
MUST_CHECK int options_flags(struct parse *parse, const char *letters);
/* -EINVAL, with that sentence as the error. */
int options_fail(struct parse *parse, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
