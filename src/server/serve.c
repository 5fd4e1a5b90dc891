/*
 * `sluice serve [DIR]`: HTTPS for a folder on this machine alone, with a certificate
 * made at start. There is one mechanism: this writes a configuration and runs it.
 */
#include "server/serve.h"

#include "server/commands.h"
#include "server/configuration.h"
#include "server/error_log.h"
#include "server/master.h"
#include "server/sockets.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct serving {
    char folder[PATH_MAX];
    unsigned port;
    bool ip6;
};

static int probe(const char *host, unsigned port)
{
    struct listen_address address;
    char text[64];
    int length = snprintf(text, sizeof(text), "%s:%u", host, port);

    if (listen_address_parse(str_of(text, (size_t)length), &address) < 0)
        return -EINVAL;
    return socket_probe(&address);
}

unsigned serve_find_port(unsigned first, unsigned tries, bool *out_ip6)
{
    for (unsigned port = first; port < first + tries && port <= 65535; port++) {
        int ip6;

        if (probe("127.0.0.1", port) < 0)
            continue;
        ip6 = probe("[::1]", port);
        if (ip6 == -EADDRINUSE)
            continue;
        *out_ip6 = ip6 == 0;
        return port;
    }
    return 0;
}

int serve_configuration(unsigned port, bool ip6, struct buffer *out)
{
    char other[48] = "";

    if (ip6)
        snprintf(other, sizeof(other), ", \"[::1]:%u ssl\"", port);
    return buffer_printf(out,
                         "error_log: {path: stderr, level: warn}\n"
                         "http:\n"
                         "  access_log: {path: stdout, format: main}\n"
                         "  server:\n"
                         "    - listen: [\"127.0.0.1:%u ssl\"%s]\n"
                         "      server_name: localhost\n"
                         "      ssl_certificate: self-signed\n"
                         "      root: .\n",
                         port, other);
}

/* As root the workers become user nobody. The folder is opened before that, so those above it do not matter. */
static void say_reader(const char *folder)
{
    struct stat status;

    printf("As root: files are read as user nobody.\n");
    if (stat(folder, &status) == 0 && !(status.st_mode & S_IXOTH))
        printf("He may not enter %s: chmod o+x it, or run this as its owner.\n", folder);
}

static void say_ready(void *owner, const struct ktls_support *ktls)
{
    const struct serving *serving = owner;
    char text[512];
    struct str line = ktls_describe(ktls, text, sizeof(text));

    printf("%s is served at\n  https://localhost:%u/\n  https://127.0.0.1:%u/\n", serving->folder,
           serving->port, serving->port);
    if (serving->ip6)
        printf("  https://[::1]:%u/\n", serving->port);
    printf(STR_FMT
           "\nThe certificate is made by this server: browsers ask once, curl wants -k. Ctrl-C ends it.\n",
           STR_ARG(line));
    if (geteuid() == 0)
        say_reader(serving->folder);
    fflush(stdout);
}

static int find_folder(struct serving *serving, const char *folder)
{
    struct stat status;

    if (!realpath(folder, serving->folder)) {
        error_log_say(LOG_EMERG, "cannot serve \"%s\" (%d: %s)", folder, errno, strerror(errno));
        return -EINVAL;
    }
    if (stat(serving->folder, &status) < 0 || !S_ISDIR(status.st_mode)) {
        error_log_say(LOG_EMERG, "cannot serve \"%s\": it is no folder", folder);
        return -ENOTDIR;
    }
    return 0;
}

static int choose_port(struct serving *serving, unsigned asked)
{
    serving->port = serve_find_port(asked ? asked : SERVE_PORT, asked ? 1 : SERVE_PORT_TRIES, &serving->ip6);
    if (serving->port > 0)
        return 0;
    if (asked)
        error_log_say(LOG_EMERG,
                      "port %u is taken or not allowed here; without --port the next free one is used",
                      asked);
    else
        error_log_say(LOG_EMERG, "no port from %d to %d is free", SERVE_PORT,
                      SERVE_PORT + SERVE_PORT_TRIES - 1);
    return -EADDRINUSE;
}

static struct configuration *load(const struct serving *serving)
{
    struct configuration *configuration = NULL;
    struct buffer text = {0};
    struct buffer said = {0};
    struct error_log log;

    if (error_log_open(&log, STR("stderr"), LOG_WARN) == 0 &&
        serve_configuration(serving->port, serving->ip6, &text) == 0) {
        struct configuration_source source = {.text = buffer_str(&text), .prefix = str_from(serving->folder)};

        configuration = configuration_load(&source, &log.log, &said);
    }
    if (said.length > 0)
        fprintf(stderr, STR_FMT, STR_ARG(buffer_str(&said)));
    error_log_finish(&log);
    buffer_finish(&said);
    buffer_finish(&text);
    return configuration;
}

int command_serve(const struct options *options)
{
    struct serving serving = {.port = 0};
    struct master_start start = {.ready = say_ready, .owner = &serving, .no_pid_file = true};

    if (find_folder(&serving, options->folder ? options->folder : ".") < 0 ||
        choose_port(&serving, options->port) < 0)
        return EXIT_FAILURE;
    start.configuration = load(&serving);
    if (!start.configuration)
        return EXIT_FAILURE;
    return master_run(&start);
}
