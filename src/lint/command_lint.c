/*
 * The command: the loader's messages and the findings of the rules, in one list.
 */
#include "lint/lint.h"

#include "log/error_log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

struct run {
    const struct options *options;
    int status;
};

static void collect_errors(struct lint *lint, const struct conf_errors *errors)
{
    for (unsigned i = 0; i < errors->count; i++) {
        const struct conf_error *error = &errors->items[i];

        lint_add(lint, &(struct lint_finding){.level = error->warning ? "warning" : "error",
                                              .mark = error->mark,
                                              .message = error->message,
                                              .hint = error->hint});
    }
}

/* Runs the rules and prints the findings. Called before a configuration is freed, also for an invalid one. */
static void lint_configuration(void *owner, const struct configuration *configuration, const struct conf_errors *errors)
{
    struct run *run = owner;
    struct arena arena;
    struct lint lint = {.arena = &arena, .configuration = errors->failed ? NULL : configuration};
    struct buffer text = {0};

    arena_init(&arena, NULL, 0);
    collect_errors(&lint, errors);
    lint_run(&lint);
    if (lint.failed || lint_print(&lint, run->options->format, &text) < 0 ||
        (text.length && fwrite(text.data, 1, text.length, stdout) != text.length) || fflush(stdout) != 0)
        run->status = 2;
    else
        run->status = errors->failed ? 2 : lint.count ? 1 : 0;
    buffer_finish(&text);
    arena_reset(&arena);
}

int command_lint(const struct options *options)
{
    char space[PATH_MAX];
    const char *path = options_conf_path(options, space, sizeof(space));
    struct run run = {.options = options, .status = 2};
    struct configuration_source source = {.path = str_from(path),
                                          .prefix = str_from(options->prefix),
                                          .test_only = true,
                                          .report = lint_configuration,
                                          .owner = &run};
    struct buffer diagnostics = {0};
    struct log silent = {0};

    if (!path) {
        error_log_print(LOG_EMERG, "the name of the configuration file is too long");
        return run.status;
    }
    configuration_destroy(configuration_load(&source, &silent, &diagnostics));
    buffer_finish(&diagnostics);
    return run.status;
}
