/*
 * Parses the command line (command/options.h) and calls the function of the command (command/commands.h).
 */
#include "acme/acme_hook.h"
#include "build_options.h"
#include "command/commands.h"
#include "command/options.h"
#include "doctor/doctor.h"
#include "explain/explain.h"
#include "lint/lint.h"
#include "log/error_log.h"
#include "master/daemon.h"
#include "top/top.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int print_text(const char *text)
{
    return fputs(text, stdout) < 0 || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/*
 * True if an ACME client runs this program as its hook: by the name of the link that it calls, or as
 * `sluice acme-hook`. *argc and *argv then begin with that name.
 */
static bool is_hook(int *argc, char ***argv)
{
    const char *name = *argc > 0 ? strrchr(**argv, '/') : NULL;

    if (name && strcmp(name + 1, ACME_HOOK) == 0)
        return true;
    if (*argc < 2 || strcmp((*argv)[1], "acme-hook") != 0)
        return false;
    --*argc;
    ++*argv;
    return true;
}

int main(int argc, char **argv)
{
    struct options options;
    char error[256];

    daemon_fill_streams();
    if (is_hook(&argc, &argv))
        return acme_hook(argc, argv);
    if (options_parse(argc, argv, &options, error, sizeof(error)) < 0) {
        error_log_print(LOG_EMERG, "%s (see sluice -h)", error);
        return EXIT_FAILURE;
    }
    switch (options.command) {
    case COMMAND_RUN:
        return command_run(&options);
    case COMMAND_TEST:
    case COMMAND_TEST_PRINT:
        return command_test(&options);
    case COMMAND_SIGNAL:
        return command_signal(&options);
    case COMMAND_VERSION:
        return print_text("sluice version: sluice/" SLUICE_VERSION "\n");
    case COMMAND_BUILD:
        return command_build();
    case COMMAND_USAGE:
        return print_text(options_usage());
    case COMMAND_SERVE:
        return command_serve(&options);
    case COMMAND_DOCS:
        return command_docs(&options);
    case COMMAND_DOCTOR:
        return command_doctor(&options);
    case COMMAND_SCHEMA:
        return command_schema();
    case COMMAND_HELP:
        return command_help(&options);
    case COMMAND_IMPORT:
        return command_import(&options);
    case COMMAND_EXPLAIN:
        return command_explain(&options);
    case COMMAND_LINT:
        return command_lint(&options);
    case COMMAND_TOP:
        return command_top(&options);
    case COMMAND_FMT:
        return command_fmt(&options);
    case COMMAND_CTL:
        return command_ctl(&options);
    }
    return EXIT_FAILURE;
}
