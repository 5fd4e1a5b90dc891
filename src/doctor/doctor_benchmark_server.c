/*
 * The server of the benchmark: a child process that runs a generated configuration with one worker. It inherits
 * listening sockets on free ports as from a service manager (LISTEN_FDS), so that no port is chosen twice, and the
 * client can connect before the worker accepts. It ends when its parent does.
 */
#include "doctor/doctor_benchmark.h"

#include "base/clock.h"
#include "base/limits.h"
#include "command/serve.h"
#include "doctor/doctor_load.h"
#include "io/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* FIRST_PASSED: the first descriptor of LISTEN_FDS, see sd_listen_fds(3). */
enum { BACKLOG = 64, POLL_MS = 20, FIRST_PASSED = 3 };

/* The file that is served: this program. Split into its directory and its name. */
struct program_file {
    char path[PATH_MAX];
    const char *directory, *name;
};

/* Fails for a name with special characters, which becomes part of a template and of YAML. Returns 0 or -errno. */
static int find_program(struct program_file *program)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";
    ssize_t length = readlink("/proc/self/exe", program->path, sizeof(program->path) - 1);
    char *slash;

    if (length < 0)
        return -errno;
    program->path[length] = '\0';
    slash = strrchr(program->path, '/');
    if (!slash || slash[strspn(slash + 1, plain) + 1] != '\0')
        return -EINVAL;
    *slash = '\0';
    program->directory = slash == program->path ? "/" : program->path;
    program->name = slash + 1;
    return 0;
}

static int add_server(struct buffer *text, uint16_t port, const char *tls, const char *name)
{
    return buffer_printf(text,
                         "    - listen: \"127.0.0.1:%u%s\"\n"
                         "      server_name: localhost\n"
                         "%s"
                         "      location:\n"
                         "        \"= " LOAD_PATH "\": {alias: \"%s\"}\n",
                         port, *tls ? " ssl" : "", tls, name);
}

/* Only LOAD_PATH is served, since no other location has a root: other users of the machine can connect, too. */
static int write_configuration(const struct benchmark_server *server, const char *name, struct buffer *text)
{
    static const char *const tls[BENCHMARK_PATHS] = {
        [BENCHMARK_PLAIN] = "",
        [BENCHMARK_USER] = "      ssl_certificate: self-signed\n      ssl_ktls: off\n",
        [BENCHMARK_KTLS] = "      ssl_certificate: self-signed\n      ssl_ktls: on\n",
    };
    int error = buffer_append(text, STR("worker_processes: 1\n"
                                        "error_log: {path: stderr, level: error}\n"
                                        "events: {worker_connections: 64}\n"
                                        "http:\n"
                                        "  access_log: off\n"
                                        "  keepalive_requests: 1000000000\n"
                                        "  server:\n"));

    for (unsigned path = 0; path < BENCHMARK_PATHS && error == 0; path++) {
        if (server->ports[path])
            error = add_server(text, server->ports[path], tls[path], name);
    }
    return error;
}

/* Opens a listening socket on a free port. Returns it, or -errno. */
static int open_socket(uint16_t *out_port)
{
    struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct listen_address address = {.length = sizeof(loopback)};
    int fd;

    memcpy(&address.socket, &loopback, sizeof(loopback));
    fd = listener_open(&address, BACKLOG);
    if (fd >= 0 && getsockname(fd, (struct sockaddr *)&address.socket, &address.length) < 0) {
        int error = -errno;

        close(fd);
        return error;
    }
    if (fd >= 0)
        *out_port = (uint16_t)listen_address_port(&address);
    return fd;
}

/* Moves the sockets to the descriptors of LISTEN_FDS, and sets its variables. Returns 0 or -errno. */
static int pass_sockets(const int fds[BENCHMARK_PATHS])
{
    int moved[BENCHMARK_PATHS];
    unsigned count = 0;
    char number[24];

    for (unsigned path = 0; path < BENCHMARK_PATHS; path++) {
        if (fds[path] < 0)
            continue;
        moved[count] = fcntl(fds[path], F_DUPFD_CLOEXEC, FIRST_PASSED + BENCHMARK_PATHS);
        if (moved[count] < 0)
            return -errno;
        close(fds[path]);
        count++;
    }
    for (unsigned i = 0; i < count; i++) {
        if (dup2(moved[i], FIRST_PASSED + (int)i) < 0)
            return -errno;
        close(moved[i]);
    }
    unsetenv("NOTIFY_SOCKET");
    snprintf(number, sizeof(number), "%u", count);
    if (setenv("LISTEN_FDS", number, 1) < 0)
        return -errno;
    snprintf(number, sizeof(number), "%d", (int)getpid());
    return setenv("LISTEN_PID", number, 1) < 0 ? -errno : 0;
}

/* The child process. */
static int run_server(const struct benchmark_server *server, const struct program_file *program,
                      const int fds[BENCHMARK_PATHS], pid_t parent)
{
    struct buffer text = {0};
    int status = EXIT_FAILURE;

    /* If the parent has ended before prctl, no signal is sent. */
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return EXIT_FAILURE;
    if (write_configuration(server, program->name, &text) == 0 && pass_sockets(fds) == 0)
        status = serve_text(buffer_str(&text), program->directory);
    buffer_finish(&text);
    return status;
}

/*
 * Signals are blocked until the child has reset the actions of those that the parent handles: a handler of the parent
 * would run in the child, and the signal would have no effect.
 */
static int fork_server(struct benchmark_server *server, const struct program_file *program,
                       const int fds[BENCHMARK_PATHS])
{
    static const int reset[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    pid_t parent = getpid();
    sigset_t all, before;
    int error;

    fflush(NULL);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    server->master = fork();
    error = server->master < 0 ? -errno : 0;
    if (server->master == 0) {
        for (size_t i = 0; i < sizeof(reset) / sizeof(reset[0]); i++)
            signal(reset[i], SIG_DFL);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (server->master == 0)
        _exit(run_server(server, program, fds, parent));
    return error;
}

int benchmark_server_start(struct benchmark_server *server, bool ktls, char *fault, size_t fault_size)
{
    int fds[BENCHMARK_PATHS] = {-1, -1, -1};
    struct program_file program;
    int error = find_program(&program);

    *server = (struct benchmark_server){.master = -1};
    if (error < 0) {
        snprintf(fault, fault_size,
                 "the file of this program cannot be served: it was replaced, or its name has unusual characters");
        return error;
    }
    for (unsigned path = 0; path < BENCHMARK_PATHS && error == 0; path++) {
        if (path == BENCHMARK_KTLS && !ktls)
            continue;
        fds[path] = open_socket(&server->ports[path]);
        error = fds[path] < 0 ? fds[path] : 0;
    }
    if (error == 0)
        error = fork_server(server, &program, fds);
    if (error < 0)
        snprintf(fault, fault_size, "the server of the benchmark could not be started: %s", strerror(-error));
    for (unsigned path = 0; path < BENCHMARK_PATHS; path++) {
        if (fds[path] >= 0)
            close(fds[path]);
    }
    return error;
}

/* Reaps the server if it has ended. */
static bool has_ended(const struct benchmark_server *server)
{
    pid_t reaped = waitpid(server->master, NULL, WNOHANG);

    return reaped == server->master || (reaped < 0 && errno == ECHILD);
}

static pid_t read_child(pid_t parent)
{
    char path[64];
    long child = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
    file = fopen(path, "re");
    if (!file)
        return -errno;
    if (fscanf(file, "%ld", &child) != 1)
        child = 0;
    fclose(file);
    return (pid_t)child;
}

pid_t benchmark_server_worker(const struct benchmark_server *server)
{
    pid_t worker = read_child(server->master);

    return worker == 0 ? -ECHILD : worker;
}

void benchmark_server_stop(struct benchmark_server *server)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    uint64_t end_us = clock_monotonic_us() + (uint64_t)LIMIT_BENCHMARK_WAIT_MS * 1000;

    if (server->master <= 0)
        return;
    kill(server->master, SIGTERM);
    while (!has_ended(server)) {
        if (clock_monotonic_us() > end_us) {
            kill(server->master, SIGKILL);
            end_us = UINT64_MAX;
        }
        nanosleep(&pause, NULL);
    }
    server->master = -1;
}
