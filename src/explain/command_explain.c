/*
 * The command: loads the configuration, starts a worker in a child process on a private address, and sends it the
 * request.
 */
#include "explain/explain.h"

#include "log/error_log.h"
#include "master/shared.h"
#include "server/worker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Removes upstream groups and caches from the configuration, so that the worker neither resolves names nor checks
 * servers, and turns PROXY protocol headers off, which the client does not send.
 */
static void isolate_configuration(struct configuration *configuration)
{
    for (size_t i = 0; i < configuration->endpoint_count; i++)
        configuration->endpoints[i].proxy_protocol = false;
    configuration->caches.count = 0;
    configuration->upstreams.first = NULL;
    configuration->upstreams.count = 0;
}

/* Loads without binding addresses; errors are printed. */
static struct configuration *load_for_explain(const struct options *options, struct log *log)
{
    char space[PATH_MAX];
    const char *path = options_conf_path(options, space, sizeof(space));
    struct configuration_source source = {.path = str_from(path),
                                          .prefix = str_from(options->prefix),
                                          .overlay = str_from(options->overlay),
                                          .test_only = true};
    struct buffer diagnostics = {0};
    struct configuration *configuration = path ? configuration_load(&source, log, &diagnostics) : NULL;

    if (!configuration && diagnostics.length &&
        fwrite(diagnostics.data, 1, diagnostics.length, stderr) != diagnostics.length)
        errno = 0;
    buffer_finish(&diagnostics);
    return configuration;
}

/* Opens a listening socket on a private loopback address, or -errno. */
static int listen_on_loopback(struct sockaddr_in *out_address)
{
    struct listen_address address;
    socklen_t length = sizeof(*out_address);
    int fd = listen_address_parse(STR("127.0.0.1:1"), &address) < 0 ? -EINVAL : 0;

    if (fd < 0)
        return fd;
    ((struct sockaddr_in *)&address.socket)->sin_port = 0;
    fd = listener_open(&address, 8);
    if (fd < 0)
        return fd;
    if (getsockname(fd, (struct sockaddr *)out_address, &length) < 0) {
        close(fd);
        return -errno;
    }
    return fd;
}

static int serve_one_request(struct explain *explain, struct configuration *configuration,
                             struct error_log *log, int fd, pid_t parent)
{
    struct worker_socket socket = {.endpoint = (size_t)(explain->endpoint - configuration->endpoints),
                                   .fd = fd};
    struct shared *shared = shared_create(1);

    if (!shared || shared_slot_acquire(shared) < 0)
        return EXIT_FAILURE;
    shared_set_generation(shared, 1, 1);
    return worker_run(&(struct worker_args){.configuration = configuration,
                                            .shared = shared,
                                            .workers = 1,
                                            .error_log = log,
                                            .sockets = &socket,
                                            .socket_count = 1,
                                            .channel_fd = -1,
                                            .master = parent,
                                            .trace = &explain->trace});
}

static int connect_to_worker(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Sends the request. The worker prints the explanation and exits; if the request fails, the worker is terminated. */
static int request_url(const struct explain *explain, const struct explain_url *url, pid_t worker,
                       const struct sockaddr_in *address)
{
    int fd = connect_to_worker(address);
    bool sent = fd >= 0 && explain_request(fd, url, explain->endpoint->ssl);
    int status = 0;

    if (!sent) {
        error_log_print(LOG_ERROR, "request to %s failed: %s", explain->url,
                        fd < 0                   ? strerror(errno)
                        : explain->endpoint->ssl ? "the handshake failed"
                                               : "the connection was closed");
        kill(worker, SIGKILL);
    }
    while (waitpid(worker, &status, 0) < 0 && errno == EINTR)
        ;
    return sent && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int explain_with(struct explain *explain, struct configuration *configuration, struct error_log *log,
                        const struct explain_url *url)
{
    struct sockaddr_in address;
    pid_t parent = getpid(), worker;
    int fd = listen_on_loopback(&address);

    if (fd < 0) {
        error_log_print(LOG_ERROR, "socket() failed (%d: %s)", -fd, strerror(-fd));
        return EXIT_FAILURE;
    }
    isolate_configuration(configuration);
    worker = fork();
    if (worker == 0)
        _exit(serve_one_request(explain, configuration, log, fd, parent));
    close(fd);
    if (worker < 0) {
        error_log_print(LOG_ERROR, "fork() failed (%d: %s)", errno, strerror(errno));
        return EXIT_FAILURE;
    }
    return request_url(explain, url, worker, &address);
}

int command_explain(const struct options *options)
{
    struct explain *explain = calloc(1, sizeof(*explain));
    struct configuration *configuration = NULL;
    struct explain_url url;
    struct error_log log;
    char error[512] = "explain requires a URL (see sluice -h)";
    int status = EXIT_FAILURE;

    signal(SIGPIPE, SIG_IGN);
    if (error_log_open(&log, STR("stderr"), LOG_WARN) < 0 || !explain) {
        free(explain);
        return EXIT_FAILURE;
    }
    if (!options->url || explain_url_parse(str_from(options->url), &url, error, sizeof(error)) < 0) {
        error_log_print(LOG_ERROR, "%s", error);
    } else if ((configuration = load_for_explain(options, &log.log))) {
        *explain = (struct explain){.trace = {explain_step, explain_finished},
                                    .configuration = configuration,
                                    .endpoint = explain_endpoint(configuration, &url, error, sizeof(error)),
                                    .format = options->format,
                                    .url = options->url};
        arena_init(&explain->arena, NULL, 0);
        if (explain->endpoint)
            status = explain_with(explain, configuration, &log, &url);
        else
            error_log_print(LOG_ERROR, "%s", error);
        arena_reset(&explain->arena);
    }
    configuration_destroy(configuration);
    error_log_finish(&log);
    free(explain);
    return status;
}
