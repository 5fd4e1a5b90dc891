/*
 * `sluice ctl`: sends one request to the control socket of a running server, and prints the response.
 */
#include "command/commands.h"

#include "base/limits.h"
#include "command/ctl.h"
#include "command/ctl_connection.h"
#include "conf/conf_tree.h"
#include "log/error_log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Reads `control` of a configuration, even if other directives in it have errors. False after an error message.
 */
static bool socket_of_file(const char *path, char into[PATH_MAX])
{
    struct conf_errors *errors = calloc(1, sizeof(*errors));
    struct buffer text = {0};
    struct str found = STR("");
    struct arena arena;
    const struct conf_node *node = NULL;
    bool good = false;

    if (!errors)
        return false;
    arena_init(&arena, NULL, 0);
    errors->arena = &arena;
    node = conf_map_get(conf_tree_load(&arena, str_from(path), errors), STR("control"));
    if (node && node->kind == CONF_SCALAR && str_starts(node->text, STR("unix:")))
        found = str_skip(node->text, 5);
    if (str_empty(found) && errors->failed && conf_errors_print(errors, &text) == 0)
        fprintf(stderr, STR_FMT, STR_ARG(buffer_str(&text)));
    else if (str_empty(found) || found.length >= PATH_MAX)
        error_log_print(LOG_ERROR, "%s has no control socket; add \"control: unix:/run/sluice/control.sock\" there and "
                        "reload, or name a socket with -s", path);
    else
        good = snprintf(into, PATH_MAX, STR_FMT, STR_ARG(found)) > 0;
    buffer_finish(&text);
    arena_reset(&arena);
    free(errors);
    return good;
}

static const char *socket_path(const struct options *options, char into[PATH_MAX])
{
    char space[PATH_MAX];
    const char *conf;

    if (options->socket)
        return strncmp(options->socket, "unix:", 5) == 0 ? options->socket + 5 : options->socket;
    conf = options_conf_path(options, space, sizeof(space));
    return conf && socket_of_file(conf, into) ? into : NULL;
}

static int print_response(struct str received, bool json)
{
    struct buffer text = {0};
    struct str body = STR("");
    int status = 0;
    int error = ctl_response_parse(received, &status, &body);

    if (error == 0 && status == 200 && !json)
        error = ctl_table_print(body, &text);
    else if (error == 0)
        error = buffer_append(&text, body);
    if (error < 0) {
        error_log_print(LOG_ERROR, "the response of the server is not usable (%d: %s)", -error, strerror(-error));
    } else if (status == 200 || json) {
        error = fwrite(text.data, 1, text.length, stdout) == text.length && fflush(stdout) == 0 ? 0 : -EIO;
    } else {
        error_log_print(LOG_ERROR, STR_FMT, STR_ARG(str_slice(body, 0, body.length - 1)));
    }
    buffer_finish(&text);
    return error == 0 && status == 200 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int call_server(const char *path, const struct ctl_verb *verb, const struct options *options)
{
    struct buffer request = {0};
    struct buffer response = {.max = LIMIT_CONTROL_RESPONSE + 2 * 65536};
    int error = ctl_request_print(verb, options->files, options->file_count, !options->json, &request);
    int status = EXIT_FAILURE;

    if (error < 0)
        error_log_print(LOG_ERROR, "no request (%d: %s)", -error, strerror(-error));
    else if (ctl_exchange(path, buffer_str(&request), verb->slow, &response) == 0)
        status = print_response(buffer_str(&response), options->json);
    buffer_finish(&request);
    buffer_finish(&response);
    return status;
}

static void print_options(const struct ctl_verb *verb)
{
    for (const struct ctl_argument *option = verb->options; option->name; option++) {
        const char *value = option->value ? option->value : option->number ? "N" : "TEXT";

        printf("%s%s%s%s", option == verb->options ? "; options: " : " ", option->name, option->word ? "" : "=",
               option->word ? "" : value);
    }
    printf("\n");
}

static int print_commands(void)
{
    printf("sluice ctl [-s SOCKET | -c FILE] [--json] COMMAND: shows and changes the state of the running server\n\n");
    for (const struct ctl_verb *verb = ctl_verbs; verb->noun; verb++) {
        int width = printf("  %s%s%s", verb->noun, verb->verb ? " " : "", verb->verb ? verb->verb : "");

        for (size_t i = 0; verb->arguments[i].name; i++) {
            width += printf(" ");
            for (const char *c = verb->arguments[i].name; *c; c++)
                width += printf("%c", *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
        }
        width += verb->options[0].name ? printf(" [OPTION...]") : 0;
        printf("%*s%s", width < 43 ? 44 - width : 2, "", verb->help);
        print_options(verb);
    }
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int command_ctl(const struct options *options)
{
    char space[PATH_MAX];
    char error[256];
    const struct ctl_verb *verb;
    const char *path;

    if (options->file_count == 1 && strcmp(options->files[0], "help") == 0)
        return print_commands();
    verb = ctl_find(options->files, options->file_count, error, sizeof(error));
    if (!verb) {
        error_log_print(LOG_ERROR, "%s", error);
        return EXIT_FAILURE;
    }
    path = socket_path(options, space);
    if (!path)
        return EXIT_FAILURE;
    return verb->diff ? ctl_configuration_diff(path, options->json) : call_server(path, verb, options);
}
