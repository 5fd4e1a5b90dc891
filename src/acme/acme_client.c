/*
 * Starts the client, collects its output, and ends it.
 */
#include "acme/acme_client.h"

#include "acme/acme_hook.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum { KILL_MS = 2000, GROUP_CHECK_MS = 20, NOT_STARTED = 127 };

static const int awaited_signals[] = {SIGTERM, SIGINT, SIGQUIT, SIGUSR1, SIGCHLD};

int acme_events_open(struct acme_events *events, int control_fd)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(awaited_signals) / sizeof(awaited_signals[0]); i++)
        sigaddset(&set, awaited_signals[i]);
    *events = (struct acme_events){.signal_fd = -1, .control_fd = control_fd};
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    events->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return events->signal_fd < 0 ? -errno : 0;
}

void acme_events_close(struct acme_events *events)
{
    if (events->signal_fd >= 0)
        close(events->signal_fd);
    events->signal_fd = -1;
}

static void read_signals(struct acme_events *events)
{
    struct signalfd_siginfo arrived;

    while (read(events->signal_fd, &arrived, sizeof(arrived)) == sizeof(arrived)) {
        switch (arrived.ssi_signo) {
        case SIGCHLD:
            break;
        case SIGUSR1:
            events->replaced = true;
            break;
        default:
            events->ending = true;
        }
    }
}

bool acme_events_wait(struct acme_events *events, int fd, uint64_t timeout_ms)
{
    struct pollfd entries[] = {{.fd = events->signal_fd, .events = POLLIN},
                               {.fd = events->ending ? -1 : events->control_fd, .events = POLLIN},
                               {.fd = fd, .events = POLLIN}};

    if (poll(entries, 3, timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms) <= 0)
        return false;
    if (entries[0].revents)
        read_signals(events);
    if (entries[1].revents & (POLLHUP | POLLERR))
        events->ending = true;
    return entries[2].revents != 0;
}

void acme_run_add(struct acme_run *run, const char *argument)
{
    if (run->count < ACME_ARGUMENTS - 1)
        run->arguments[run->count] = (char *)(uintptr_t)argument; /* execv takes char *, and does not write to it */
    run->count++;
}

static bool is_program(const char *path)
{
    struct stat state;

    return stat(path, &state) == 0 && S_ISREG(state.st_mode) && access(path, X_OK) == 0;
}

/* Finds a program in PATH. */
static bool find_program(const char *name, char path[PATH_MAX])
{
    const char *list = getenv("PATH");
    struct str rest = str_from(list ? list : DEFAULT_PATH);

    while (rest.data) {
        struct str folder = str_cut(&rest, ':');

        if (snprintf(path, PATH_MAX, STR_FMT "/%s", STR_ARG(folder), name) < PATH_MAX && is_program(path))
            return true;
    }
    return false;
}

/* In the new process: closes the descriptors of the server except the three standard ones, and executes the program. */
static _Noreturn void become_client(struct acme_run *run, const char *program, int output, pid_t parent)
{
    static const char *const removed[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS",
                                          "LISTEN_PID", "LISTEN_FDNAMES", "SLUICE_UPGRADE"};
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigset_t none;

    sigemptyset(&none);
    if (setpgid(0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent || null < 0 ||
        dup2(null, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0 ||
        close_range(STDERR_FILENO + 1, UINT_MAX, 0) < 0 || signal(SIGPIPE, SIG_DFL) == SIG_ERR ||
        sigprocmask(SIG_SETMASK, &none, NULL) < 0 || chdir(run->home) < 0)
        _exit(NOT_STARTED);
    umask(run->umask ? run->umask : 077);
    if (run->environment && acme_environment_export(run->environment) < 0)
        _exit(NOT_STARTED);
    for (size_t i = 0; i < sizeof(removed) / sizeof(removed[0]); i++)
        unsetenv(removed[i]);
    if (setenv(ACME_CHALLENGES, run->challenges, 1) < 0 || setenv(ACME_CHALLENGE_TYPE, run->challenge_type, 1) < 0 ||
        setenv("HOME", run->home, 1) < 0 || setenv("LC_ALL", "C", 1) < 0)
        _exit(NOT_STARTED);
    execv(program, run->arguments);
    fprintf(stderr, "%s cannot be started (%d: %s)\n", program, errno, strerror(errno));
    _exit(NOT_STARTED);
}

/* Keeps the end of the output: the beginning is removed if there is no more room. */
static void keep_output(struct acme_run *run, struct str text)
{
    size_t room = sizeof(run->output) - 1, excess;

    if (text.length > room)
        text = str_skip(text, text.length - room);
    excess = run->length + text.length > room ? run->length + text.length - room : 0;
    memmove(run->output, run->output + excess, run->length - excess);
    run->length -= excess;
    memcpy(run->output + run->length, text.data, text.length);
    run->length += text.length;
    run->output[run->length] = '\0';
}

static void log_lines(struct acme_run *run, struct str text)
{
    while (run->log && !str_empty(text)) {
        struct str line = str_cut(&text, '\n');

        if (!str_empty(line))
            log_write(run->log, LOG_INFO, "acme: " STR_FMT, STR_ARG(line));
    }
}

/* Returns false at the end of the output. */
static bool read_output(struct acme_run *run, int fd)
{
    char text[4096];
    ssize_t length = read(fd, text, sizeof(text));

    if (length <= 0)
        return length < 0 && (errno == EAGAIN || errno == EINTR);
    log_lines(run, str_of(text, (size_t)length));
    keep_output(run, str_of(text, (size_t)length));
    return true;
}

static uint64_t now_ms(void)
{
    return clock_monotonic_us() / 1000;
}

/* Waits for the end of the client until `deadline_ms`. Returns true with its status. */
static bool wait_client(struct acme_run *run, pid_t pid, int *fd, uint64_t deadline_ms, bool until_ending,
                        int *out_status)
{
    for (;;) {
        uint64_t now = now_ms();

        if (waitpid(pid, out_status, WNOHANG) == pid)
            return true;
        if (now >= deadline_ms || (until_ending && run->events->ending))
            return false;
        if (acme_events_wait(run->events, *fd, deadline_ms - now) && !read_output(run, *fd))
            *fd = -1;
    }
}

/*
 * Waits for the end of the processes that the client has started: a DNS hook may be removing its record. Returns true
 * if they have ended: the number of the group may be used again.
 */
static bool wait_group(struct acme_run *run, pid_t pid, int fd, uint64_t deadline_ms)
{
    while (kill(-pid, 0) == 0) {
        if (now_ms() >= deadline_ms)
            return false;
        if (acme_events_wait(run->events, fd, GROUP_CHECK_MS) && !read_output(run, fd))
            fd = -1;
    }
    return true;
}

/* Signals the whole group, in which processes may ignore SIGTERM. */
static int kill_client(struct acme_run *run, pid_t pid, int fd)
{
    uint64_t deadline_ms = now_ms() + KILL_MS;
    bool ended;
    int status;

    kill(-pid, SIGTERM);
    ended = wait_client(run, pid, &fd, deadline_ms, false, &status);
    if (!wait_group(run, pid, fd, deadline_ms))
        kill(-pid, SIGKILL);
    while (!ended && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return run->events->ending ? -EINTR : -ETIMEDOUT;
}

static int supervise_client(struct acme_run *run, pid_t pid, int output)
{
    int fd = output, status;

    if (!wait_client(run, pid, &fd, now_ms() + run->timeout_ms, true, &status))
        return kill_client(run, pid, fd);
    kill(-pid, SIGKILL); /* processes that it started */
    while (fd >= 0 && acme_events_wait(run->events, fd, 0) && read_output(run, fd))
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
}

int acme_client_run(struct acme_run *run)
{
    char program[PATH_MAX];
    int ends[2], result;
    pid_t parent = getpid(), pid;

    run->length = 0;
    run->output[0] = '\0';
    if (run->count >= ACME_ARGUMENTS)
        return -E2BIG;
    run->arguments[run->count] = NULL;
    if (!find_program(run->arguments[0], program))
        return -ENOENT;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid = fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ? -1 : fork();
    if (pid == 0)
        become_client(run, program, ends[1], parent);
    result = pid < 0 ? -errno : 0;
    close(ends[1]);
    if (pid > 0) {
        (void)setpgid(pid, pid); /* as the client does, so that signals reach its group from now on */
        result = supervise_client(run, pid, ends[0]);
    }
    close(ends[0]);
    return result;
}

/* The value of `"detail": "VALUE"` in a line of JSON. */
static bool detail_of(struct str line, struct str *out)
{
    static const struct str name = {"\"detail\":", 9};
    ssize_t at = str_search(line, name);

    if (at < 0)
        return false;
    *out = str_trim(str_skip(line, (size_t)at + name.length));
    if (str_ends(*out, STR(",")))
        out->length--;
    if (out->length >= 2 && out->data[0] == '"')
        *out = str_slice(*out, 1, out->length - 1);
    return true;
}

void acme_client_cause(const struct acme_run *run, char *into, size_t size)
{
    struct str rest = str_of(run->output, run->length), cause = STR("");
    bool detailed = false;

    while (!str_empty(rest)) {
        struct str line = str_trim(str_cut(&rest, '\n'));

        if (detail_of(line, &cause))
            detailed = true;
        else if (!detailed && line.length > 1)
            cause = line;
    }
    snprintf(into, size, STR_FMT, STR_ARG(cause));
}
