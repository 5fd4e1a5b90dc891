/*
 * The commands for a configuration: run, test, print, signal the running server; and build, schema, help.
 */
#include "command/commands.h"

#include "build_options.h"
#include "command/server_signal.h"
#include "command/terminal.h"
#include "log/error_log.h"
#include "master/master.h"
#include "master/privileges.h"
#include "server/module.h"
#include "server/worker.h"
#include "site/configuration.h"
#include "site/core.h"
#include "site/subjects.h"
#include "stream/stream.h"

#include <errno.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int print_buffer(FILE *stream, const struct buffer *text)
{
    if (text->length > 0 && fwrite(text->data, 1, text->length, stream) != text->length)
        return -EIO;
    return fflush(stream) == 0 ? 0 : -EIO;
}

static struct configuration_source source_of(const struct options *options, const char *path)
{
    return (struct configuration_source){.path = str_from(path),
                                         .prefix = str_from(options->prefix),
                                         .overlay = str_from(options->overlay)};
}

/* Loads the configuration named by the options, and prints its diagnostics; with `quiet` without warnings. */
static struct configuration *load_configuration(const struct options *options, const char *path,
                                                bool test_only, bool quiet)
{
    struct configuration_source source = source_of(options, path);
    struct configuration *configuration;
    struct buffer diagnostics = {0};
    struct error_log log;

    if (error_log_open(&log, str_from(options->error_log ? options->error_log : "stderr"),
                       test_only ? LOG_WARN : LOG_NOTICE) < 0)
        error_log_print(LOG_ALERT, "could not open error log file: \"%s\"", options->error_log);
    source.test_only = test_only;
    configuration = configuration_load(&source, &log.log, &diagnostics);
    if (!(configuration && quiet) && print_buffer(stderr, &diagnostics) < 0)
        errno = 0;
    buffer_finish(&diagnostics);
    error_log_finish(&log);
    return configuration;
}

static const char *conf_path(const struct options *options, char *into)
{
    const char *path = options_conf_path(options, into, PATH_MAX);

    if (!path)
        error_log_print(LOG_EMERG, "the name of the configuration file is too long");
    return path;
}

/* Loads the same file with the same options again, after HUP. */
static struct configuration *load_again(void *owner, struct log *log, struct buffer *out_diagnostics)
{
    const struct options *options = owner;
    char space[PATH_MAX];
    struct configuration_source source = source_of(options, options_conf_path(options, space, sizeof(space)));

    return configuration_load(&source, log, out_diagnostics);
}

int command_worker(const struct worker_args *args)
{
    struct worker_args own = *args;

    own.stream = &stream_listening;
    return worker_run(&own);
}

/*
 * Writes the absolute path of the program to `into`, and returns it. Symbolic links stay as they are, because an
 * installation may change them. NULL: unknown.
 */
static const char *executable_path(const char *name, char into[PATH_MAX])
{
    char directory[PATH_MAX];
    ssize_t length;

    if (strchr(name, '/')) {
        bool absolute = name[0] == '/';

        if (!absolute && !getcwd(directory, sizeof(directory)))
            return NULL;
        length = snprintf(into, PATH_MAX, "%s%s%s", absolute ? "" : directory, absolute ? "" : "/", name);
    } else {
        length = readlink("/proc/self/exe", into, PATH_MAX - 1);
        if (length >= 0)
            into[length] = '\0';
    }
    return length > 0 && length < PATH_MAX ? into : NULL;
}

int command_run(const struct options *options)
{
    char space[PATH_MAX];
    const char *path = conf_path(options, space);
    struct options again = *options;
    struct master_args args = {.run_worker = command_worker,
                               .configuration = path ? load_configuration(options, path, false, options->quiet) : NULL,
                               .error_log = options->error_log,
                               .owner = &again};
    char executable[PATH_MAX];

    if (!args.configuration)
        return EXIT_FAILURE;
    args.executable = executable_path(options->argv[0], executable);
    args.argv = args.executable ? options->argv : NULL;
    if (strcmp(path, "-") != 0)
        args.load = load_again;
    return master_run(&args);
}

static int print_tree(const struct configuration *configuration, const char *path)
{
    struct buffer text = {0};
    int result = buffer_printf(&text, "# configuration file %s:\n", path);

    if (result == 0)
        result = conf_print_tree(configuration->tree, &text);
    if (result == 0)
        result = print_buffer(stdout, &text);
    buffer_finish(&text);
    return result;
}

/* As root, the start fails without the user of the workers; other users ignore it. Prints an error. */
static bool user_exists(struct configuration *configuration)
{
    const struct core_main *main = configuration->main;
    const struct conf_node *node = conf_map_get(configuration->tree, STR("user"));
    struct conf_errors errors = {.arena = &configuration->arena};
    struct buffer text = {0};
    struct identity identity;
    const char *missing;

    if (geteuid() != 0 || identity_find(main->user, main->group, &identity, &missing) == 0)
        return true;
    conf_error(&errors, node ? node->mark : (struct conf_mark){0},
               node ? STR("create it, or name another one") : STR("name a user: \"user: www-data\""),
               "there is no %s \"" STR_FMT "\"", missing,
               STR_ARG(missing[0] == 'g' ? main->group : str_empty(main->user) ? STR("nobody") : main->user));
    if (conf_errors_print(&errors, &text) < 0 || print_buffer(stderr, &text) < 0)
        errno = 0;
    buffer_finish(&text);
    return false;
}

int command_test(const struct options *options)
{
    char space[PATH_MAX];
    const char *path = conf_path(options, space);
    struct configuration *configuration = path ? load_configuration(options, path, true, options->quiet) : NULL;
    int result = 0;

    if (configuration && !user_exists(configuration)) {
        configuration_destroy(configuration);
        configuration = NULL;
    }
    if (!configuration) {
        if (path)
            fprintf(stderr, "sluice: configuration file %s test failed\n", path);
        return EXIT_FAILURE;
    }
    if (!options->quiet)
        fprintf(stderr,
                "sluice: the configuration file %s syntax is ok\n"
                "sluice: configuration file %s test is successful\n",
                path, path);
    if (options->command == COMMAND_TEST_PRINT)
        result = print_tree(configuration, path);
    configuration_destroy(configuration);
    return result < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* options.c accepts no other names. */
static int signal_number(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"stop", SIGTERM}, {"quit", SIGQUIT}, {"reopen", SIGUSR1}, {"reload", SIGHUP}, {"upgrade", SIGUSR2}};
    size_t i = 0;

    while (i + 1 < sizeof(signals) / sizeof(signals[0]) && strcmp(name, signals[i].name) != 0)
        i++;
    return signals[i].number;
}

int command_signal(const struct options *options)
{
    int number = signal_number(options->signal);
    char space[PATH_MAX];
    const char *path = conf_path(options, space);
    struct configuration *configuration;
    int status = EXIT_FAILURE;

    configuration = path ? load_configuration(options, path, true, true) : NULL;
    if (!configuration)
        return EXIT_FAILURE;
    if (configuration->main->pid.length < sizeof(space)) {
        snprintf(space, sizeof(space), STR_FMT, STR_ARG(configuration->main->pid));
        if (number == SIGUSR2)
            status = server_upgrade(space);
        else
            status = server_signal(space, number) > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    configuration_destroy(configuration);
    return status;
}

int command_build(void)
{
    char text[256];

    master_aead_describe(text, sizeof(text));
    printf("sluice version: sluice/" SLUICE_VERSION "\n"
           "built with %s, running with %s\n"
           "loop: %s\n"
           "kernel TLS: %s\n"
           "encryption in user space: %s\n"
           "configuration: " SLUICE_CONF "\n"
           "modules, in calling order:",
           OPENSSL_VERSION_TEXT, OpenSSL_version(OPENSSL_VERSION), BUILD_LOOPS, BUILD_KTLS, text);
    for (size_t i = 0; module_table[i]; i++)
        printf(" %s", module_table[i]->name);
    return putchar('\n') == EOF || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int command_schema(void)
{
    struct buffer text = {0};
    int result = conf_print_json_schema(configuration_schema(), &text);

    if (result == 0)
        result = print_buffer(stdout, &text);
    buffer_finish(&text);
    return result < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Lists every directive, group by group. */
static int list_directives(struct buffer *out)
{
    const struct conf_schema *schema = configuration_schema();
    int result = buffer_append(out, STR("sluice help DIRECTIVE explains one of these:\n"));

    for (size_t i = 0; i < schema->count && result == 0; i++) {
        const struct directive *directive = schema->groups[i]->directives;

        if (!directive || !directive->name)
            continue;
        result = buffer_printf(out, "\n%s:", schema->groups[i]->name);
        for (; directive->name && result == 0; directive++)
            result = buffer_printf(out, " %s", directive->name);
        if (result == 0)
            result = buffer_append(out, STR("\n"));
    }
    return result == 0 ? buffer_append(out, STR("\nblocks: events http server location upstream stream include\n"
                                                "log formats: main combined json basic\n"
                                                "variables: '$host', '$arg_NAME' and others (docs/variables.md)\n"))
                       : result;
}

/* Prints the help of a directive, a block, a "$variable" or a built-in log format. */
static int help_print(struct str name, struct buffer *out)
{
    int error;

    if (str_starts(name, STR("$")))
        return conf_print_variable_help(variables_all(), &variables_stream, str_skip(name, 1), out);
    error = core_log_format_print(name, out);
    return error == -ENOENT ? conf_print_help(configuration_schema(), name, out) : error;
}

int command_help(const struct options *options)
{
    struct buffer text = {0};
    int result;

    if (options->directive)
        result = help_print(str_from(options->directive), &text);
    else
        result = list_directives(&text);
    /* For an unknown name, suggestions go to standard error. */
    if (result == 0)
        result = terminal_print(buffer_str(&text));
    else if (print_buffer(stderr, &text) < 0)
        result = -EIO;
    buffer_finish(&text);
    return result < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
