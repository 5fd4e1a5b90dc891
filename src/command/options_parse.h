/*
 * The state of parsing a command line, shared by options*.c.
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

/*
 * Parses one argument of a subcommand, argv[at]; it may consume following ones. Returns 0, or the result of
 * options_fail.
 */
typedef int subcommand_argument(struct parse *parse, const char *argument);

/* options_commands.c */
subcommand_argument serve_argument, docs_argument, doctor_argument, schema_argument, help_argument, import_argument;
/* options_ctl.c */
subcommand_argument ctl_argument;
/* options_check.c */
subcommand_argument fmt_argument, lint_argument, explain_argument;
/* options_top.c */
subcommand_argument top_argument;

/* options_flags.c: parses one word of bundled flags, without its dash. Returns 0, or the result of options_fail. */
MUST_CHECK int options_flags(struct parse *parse, const char *letters);
/* Formats the error message into parse->error. Returns -EINVAL. */
int options_fail(struct parse *parse, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
