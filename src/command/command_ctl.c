/*
 * `sluice ctl`: sends one request to the control socket of a running server, and prints the response.
 */
#include "command/commands.h"

#include "base/limits.h"
#include "command/ctl.h"
#include "conf/conf_tree.h"
#include "log/error_log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* Reads `control` of a configuration, without its other directives. False after an error message. */
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
    if (errors->failed && conf_errors_print(errors, &text) == 0)
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

static const char *remedy_of(int error)
{
    return error == EACCES        ? "; run this command as the user of the server's master, or as root"
           : error == ENOENT      ? "; is \"control\" set in the configuration that runs?"
           : error == ECONNREFUSED ? "; the server does not run"
                                  : "";
}

/* Returns a connected socket, or -1 after an error message. */
static int connect_to(const char *path, bool slow)
{
    const struct timeval patience = {.tv_sec = slow ? 0 : LIMIT_CONTROL_MS / 1000}; /* 0: no timeout */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (strlen(path) >= sizeof(address.sun_path)) {
        error_log_print(LOG_ERROR, "\"%s\" is too long for a Unix socket", path);
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0 &&
        connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    error_log_print(LOG_ERROR, "connect() to unix:%s failed (%d: %s)%s", path, errno, strerror(errno),
                    remedy_of(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static int send_all(int fd, struct str text)
{
    while (text.length > 0) {
        ssize_t sent = send(fd, text.data, text.length, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR)
            return -errno;
        text = str_skip(text, sent < 0 ? 0 : (size_t)sent);
    }
    return 0;
}

/* Reads until the server closes the connection. */
static int receive_all(int fd, struct buffer *out)
{
    ssize_t got = 1;
    int error = 0;

    while (error == 0 && got != 0) {
        error = buffer_reserve(out, 65536);
        got = error == 0 ? recv(fd, out->data + out->length, 65536, 0) : 0;
        if (got > 0)
            out->length += (size_t)got;
        else if (got < 0 && errno != EINTR)
            error = -errno;
    }
    return error;
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

static int call_server(int fd, const struct ctl_verb *verb, const struct options *options)
{
    struct buffer request = {0};
    struct buffer response = {.max = LIMIT_CONTROL_RESPONSE + 2 * 65536};
    int error = ctl_request_print(verb, options->files, !options->json, &request);
    int status = EXIT_FAILURE;

    if (error == 0)
        error = send_all(fd, buffer_str(&request));
    if (error == 0)
        error = receive_all(fd, &response);
    if (error == 0)
        status = print_response(buffer_str(&response), options->json);
    else
        error_log_print(LOG_ERROR, "no response from the server (%d: %s)", -error, strerror(-error));
    buffer_finish(&request);
    buffer_finish(&response);
    return status;
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
        printf("%*s%s\n", width < 44 ? 44 - width : 2, "", verb->help);
    }
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int command_ctl(const struct options *options)
{
    char space[PATH_MAX];
    char error[256];
    const struct ctl_verb *verb;
    const char *path;
    int status;
    int fd;

    if (options->file_count == 1 && strcmp(options->files[0], "help") == 0)
        return print_commands();
    verb = ctl_find(options->files, options->file_count, error, sizeof(error));
    if (!verb) {
        error_log_print(LOG_ERROR, "%s", error);
        return EXIT_FAILURE;
    }
    path = socket_path(options, space);
    fd = path ? connect_to(path, verb->slow) : -1;
    if (fd < 0)
        return EXIT_FAILURE;
    status = call_server(fd, verb, options);
    close(fd);
    return status;
}
