/*
 * `sluice serve [DIR]`: generates a configuration that serves a directory over HTTPS, and runs the server with it.
 * Without --open-to-network it listens on the loopback addresses; without --cert it generates a
 * certificate. --acme obtains one, and listens on all addresses.
 */
#include "command/serve.h"

#include "command/commands.h"
#include "command/serve_acme.h"
#include "log/error_log.h"
#include "master/master.h"
#include "master/socket_probe.h"
#include "site/configuration.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct serve {
    struct serve_settings settings;
    char directory[PATH_MAX], certificate[PATH_MAX], key[PATH_MAX], name[HOST_NAME_MAX + 1], acme_state[PATH_MAX];
};

static int probe_port(const char *host, unsigned port)
{
    struct listen_address address;
    char text[64];
    int length = snprintf(text, sizeof(text), "%s:%u", host, port);

    if (listen_address_parse(str_of(text, (size_t)length), &address) < 0)
        return -EINVAL;
    return socket_probe(&address);
}

unsigned serve_find_port(unsigned first, unsigned tries, bool open, bool *out_ip6)
{
    for (unsigned port = first; port < first + tries && port <= 65535; port++) {
        int ip6;

        if (probe_port(open ? "0.0.0.0" : "127.0.0.1", port) < 0)
            continue;
        ip6 = probe_port(open ? "[::]" : "[::1]", port);
        if (ip6 == -EADDRINUSE)
            continue;
        *out_ip6 = ip6 == 0;
        return port;
    }
    return 0;
}

/*
 * If the server is started as root, workers run as user nobody. They open the directory before they drop root, so its
 * parents need no permissions.
 */
static void print_user(const char *directory)
{
    struct stat status;

    printf("Started as root: the server reads files as user nobody.\n");
    if (stat(directory, &status) == 0 && !(status.st_mode & S_IXOTH))
        printf("User nobody has no permission to enter %s: chmod o+x it, or run this as its owner.\n", directory);
}

static void print_acme_url(const struct serve *serve)
{
    const struct serve_settings *settings = &serve->settings;

    if (settings->port == SERVE_ACME_PORT)
        printf("%s is served at\n  https://%s/\n", serve->directory, settings->acme);
    else
        printf("%s is served at\n  https://%s:%u/, for which port %u of the name must be forwarded to port %u\n",
               serve->directory, settings->acme, settings->port, SERVE_ACME_PORT, settings->port);
    printf("to all clients that can reach this machine.\n"
           "The certificate is requested by ACME, which accepts the terms of service of the authority. Until it "
           "arrives, a self-signed one is used.\n");
}

static void print_urls(const struct serve *serve)
{
    const struct serve_settings *settings = &serve->settings;
    const char *scheme = settings->plain ? "http" : "https";

    if (settings->acme) {
        print_acme_url(serve);
        return;
    }
    printf("%s is served at\n  %s://localhost:%u/\n  %s://127.0.0.1:%u/\n",
           settings->plain ? "The documentation" : serve->directory, scheme, settings->port, scheme, settings->port);
    if (settings->ip6)
        printf("  %s://[::1]:%u/\n", scheme, settings->port);
    if (settings->open)
        printf("  %s://%s:%u/\nand to all clients that can reach this machine.\n", scheme,
               settings->name ? settings->name : "ADDRESS", settings->port);
}

static void print_ready(void *owner, const struct ktls_support *ktls)
{
    const struct serve *serve = owner;
    const struct serve_settings *settings = &serve->settings;
    char text[512];

    print_urls(serve);
    if (!settings->plain)
        printf(STR_FMT "\n", STR_ARG(ktls_describe(ktls, text, sizeof(text))));
    if (!settings->plain && !settings->certificate && !settings->acme)
        printf("The certificate is self-signed: browsers show a warning, curl needs -k. ");
    printf("Ctrl-C ends it.\n");
    if (geteuid() == 0)
        print_user(serve->directory);
    fflush(stdout);
}

static int find_directory(struct serve *serve, const char *directory)
{
    struct stat status;

    if (!realpath(directory, serve->directory)) {
        error_log_print(LOG_EMERG, "cannot serve \"%s\" (%d: %s)", directory, errno, strerror(errno));
        return -EINVAL;
    }
    if (stat(serve->directory, &status) < 0 || !S_ISDIR(status.st_mode)) {
        error_log_print(LOG_EMERG, "cannot serve \"%s\": it is not a directory", directory);
        return -ENOTDIR;
    }
    return 0;
}

static int choose_port(struct serve *serve, unsigned requested)
{
    struct serve_settings *settings = &serve->settings;
    unsigned first = settings->plain ? DOCS_PORT : SERVE_PORT;

    if (settings->acme && !requested)
        requested = SERVE_ACME_PORT;
    settings->port = serve_find_port(requested ? requested : first, requested ? 1 : SERVE_PORT_TRIES, settings->open,
                                     &settings->ip6);
    if (settings->port > 0)
        return 0;
    if (settings->acme) {
        error_log_print(LOG_EMERG,
                        "port %u is in use or not permitted; --acme needs the port %u of \"%s\", or --port N with a "
                        "port to which it is forwarded",
                        requested, SERVE_ACME_PORT, settings->acme);
        return -EADDRINUSE;
    }
    if (requested)
        error_log_print(LOG_EMERG, "port %u is in use or not permitted; without %s the next free one is used",
                        requested, settings->plain ? "a number" : "--port");
    else
        error_log_print(LOG_EMERG, "no port from %u to %u is free", first, first + SERVE_PORT_TRIES - 1);
    return -EADDRINUSE;
}

/*
 * Makes the path absolute, because relative paths would start at the served directory. Symbolic links are not
 * resolved, since their target changes when a certificate is renewed.
 */
static int find_file(const char *given, char into[PATH_MAX], const char **out_path)
{
    char directory[PATH_MAX] = "";
    bool found;

    if (!given)
        return 0;
    found = access(given, F_OK) == 0 && (*given == '/' || getcwd(directory, sizeof(directory)));
    if (found && snprintf(into, PATH_MAX, "%s%s%s", directory, *directory ? "/" : "", given) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        found = false;
    }
    if (!found) {
        error_log_print(LOG_EMERG, "\"%s\" cannot be opened (%d: %s)", given, errno, strerror(errno));
        return -EINVAL;
    }
    *out_path = into;
    return 0;
}

static int find_certificate(struct serve *serve, const struct options *options)
{
    int error;

    if (options->key && !options->certificate) {
        error_log_print(LOG_EMERG, "--key FILE requires --cert FILE");
        return -EINVAL;
    }
    error = find_file(options->certificate, serve->certificate, &serve->settings.certificate);
    return error < 0 ? error : find_file(options->key, serve->key, &serve->settings.key);
}

static int find_acme(struct serve *serve, const struct options *options)
{
    if (options->acme_directory && !options->acme) {
        error_log_print(LOG_EMERG, "--acme-directory URL requires --acme NAME");
        return -EINVAL;
    }
    if (!options->acme)
        return 0;
    if (options->certificate) {
        error_log_print(LOG_EMERG, "--acme NAME and --cert FILE exclude each other");
        return -EINVAL;
    }
    serve->settings.open = true;
    serve->settings.acme = options->acme;
    serve->settings.acme_directory = options->acme_directory;
    serve->settings.acme_state = serve->acme_state;
    return serve_acme_check(options->acme);
}

/* Uses the host name only if it is valid in a certificate: letters, digits, dashes and dots. */
static void find_name(struct serve *serve)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
    char *name = serve->name;

    if (!serve->settings.open || gethostname(name, sizeof(serve->name) - 1) < 0)
        return;
    if (*name && strspn(name, allowed) == strlen(name) && strcmp(name, "localhost") != 0)
        serve->settings.name = name;
}

/* Loads a generated configuration, and prints its diagnostics. */
static struct configuration *load_text(struct str text, const char *prefix)
{
    struct configuration_source source = {.text = text, .prefix = str_from(prefix)};
    struct configuration *configuration = NULL;
    struct buffer diagnostics = {0};
    struct error_log log;

    if (error_log_open(&log, STR("stderr"), LOG_WARN) == 0)
        configuration = configuration_load(&source, &log.log, &diagnostics);
    if (diagnostics.length > 0)
        fprintf(stderr, STR_FMT, STR_ARG(buffer_str(&diagnostics)));
    error_log_finish(&log);
    buffer_finish(&diagnostics);
    return configuration;
}

static int run_server(struct serve *serve)
{
    struct master_args args = {
        .run_worker = command_worker, .ready = print_ready, .owner = serve, .no_pid_file = true};
    struct buffer text = {0};

    if (serve_configuration(&serve->settings, &text) == 0)
        args.configuration = load_text(buffer_str(&text), serve->directory);
    buffer_finish(&text);
    return args.configuration ? master_run(&args) : EXIT_FAILURE;
}

int serve_text(struct str text, const char *prefix)
{
    struct master_args args = {.run_worker = command_worker, .no_pid_file = true};

    args.configuration = load_text(text, prefix);
    return args.configuration ? master_run(&args) : EXIT_FAILURE;
}

int command_serve(const struct options *options)
{
    struct serve serve = {
        .settings = {.spa = options->spa, .autoindex = options->autoindex, .open = options->open_to_network}};

    if (find_acme(&serve, options) < 0)
        return EXIT_FAILURE;
    if (!options->acme)
        find_name(&serve);
    if (find_directory(&serve, options->directory ? options->directory : ".") < 0 ||
        find_certificate(&serve, options) < 0 || choose_port(&serve, options->port) < 0 ||
        (options->acme && serve_acme_state(serve.acme_state) < 0))
        return EXIT_FAILURE;
    return run_server(&serve);
}

int serve_plain(const char *directory, unsigned port)
{
    struct serve serve = {.settings = {.plain = true}};

    if (find_directory(&serve, directory) < 0 || choose_port(&serve, port) < 0)
        return EXIT_FAILURE;
    return run_server(&serve);
}
