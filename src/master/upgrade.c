/*
 * The replaced master's part of an upgrade. The successor is a child process, which gets descriptors by numbers in an
 * environment variable: "PREDECESSOR;READY;STATE;SLOTS;SOCKET;SOCKET...".
 */
#include "master/upgrade.h"

#include "base/limits.h"
#include "base/memory_file.h"
#include "master/master_state.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

void upgrade_close(struct upgrade *upgrade)
{
    fd_close(&upgrade->report_fd);
    fd_close(&upgrade->ready_fd);
    fd_close(&upgrade->state_fd);
}

bool upgrade_shares_sockets(const struct master *master)
{
    return master->upgrade.successor > 0 || master->upgrade.predecessor > 0;
}

/* Returns a descriptor of anonymous memory with the ticket keys, or -errno. */
static int make_state(const struct master *master)
{
    struct upgrade_state state = {.size = sizeof(state),
                                  .tickets_generated_ms = master->tickets_generated_ms,
                                  .tickets = master->shared->tickets};
    int fd = memory_file_create("upgrade", MFD_CLOEXEC);
    int result = fd < 0 ? -errno : fd;

    if (fd >= 0 && write(fd, &state, sizeof(state)) != (ssize_t)sizeof(state)) {
        result = -EIO;
        close(fd);
    }
    OPENSSL_cleanse(&state, sizeof(state));
    return result;
}

/* The sockets of the serving generation, or those kept after WINCH. NULL: none. */
static const struct sockets *present_sockets(const struct master *master)
{
    return master->current ? &master->current->sockets : listen_fds_sockets(master->passed);
}

/* Formats the environment variable into `out`, with all sockets. Returns 0 or -ENOMEM. */
static int print_variable(const struct sockets *sockets, const int *fds, size_t count, int ready_fd, int state_fd,
                          struct buffer *out)
{
    int result = buffer_printf(out, UPGRADE_VARIABLE "=%ld;%d;%d;%u", (long)getpid(), ready_fd, state_fd,
                               sockets->slots);

    for (size_t i = 0; i < count && result == 0; i++)
        result = buffer_printf(out, ";%d", fds[i]);
    return result < 0 ? result : buffer_append(out, STR("\0"));
}

/* In the child: executes the binary. Returns only if that fails. */
static void execute_binary(struct master *master, char *variable, const int *fds, size_t count, int ready_fd,
                           int state_fd)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    for (size_t i = 0; i < count; i++)
        (void)fcntl(fds[i], F_SETFD, 0);
    (void)fcntl(ready_fd, F_SETFD, 0);
    (void)fcntl(state_fd, F_SETFD, 0);
    watchdog_pass_on();
    if (putenv(variable) == 0)
        execv(master->args->executable, master->args->argv);
    log_write(&master->error_log.log, LOG_ALERT, "upgrade: execve() \"%s\" failed (%d: %s)", master->args->executable,
              errno, strerror(errno));
}

/* Returns the pid of the successor, or -errno. */
static pid_t fork_successor(struct master *master, const struct sockets *sockets, int ready_fd, int state_fd)
{
    int *fds = calloc(sockets->endpoints * sockets->slots + 1, sizeof(*fds));
    struct buffer variable = {0};
    size_t count = fds ? sockets_list(sockets, fds) : 0;
    pid_t pid = -ENOMEM;

    if (fds && print_variable(sockets, fds, count, ready_fd, state_fd, &variable) == 0) {
        pid = fork();
        if (pid < 0)
            pid = -errno;
    }
    if (pid == 0) {
        execute_binary(master, variable.data, fds, count, ready_fd, state_fd);
        _exit(EXIT_FAILURE);
    }
    buffer_finish(&variable);
    free(fds);
    return pid;
}

/* Opens the descriptors of the successor, and starts it. Returns 0 or -errno. */
static int start_successor(struct master *master, const struct sockets *sockets)
{
    int ends[2], state_fd = make_state(master);
    pid_t pid;

    if (state_fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
        int error = state_fd < 0 ? state_fd : -errno;

        fd_close(&state_fd);
        return error;
    }
    pid = fork_successor(master, sockets, ends[1], state_fd);
    close(ends[1]);
    close(state_fd);
    if (pid < 0) {
        close(ends[0]);
        return pid;
    }
    master->upgrade.successor = pid;
    master->upgrade.report_fd = ends[0];
    master->upgrade.deadline_ms = master->clock.monotonic_ms + LIMIT_UPGRADE_MS;
    return 0;
}

static void restore_pid_file(struct master *master)
{
    int result = pid_file_restore(&master->pid_file);

    if (result < 0)
        log_write(&master->error_log.log, LOG_ALERT, "the pid file cannot be renamed (%d: %s)", -result,
                  strerror(-result));
}

/* Returns the reason why no upgrade is possible now; NULL: it is possible. */
static const char *rejection_reason(const struct master *master)
{
    if (!master->args->argv || !master->args->load)
        return "the command that started this server cannot be repeated";
    if (master->upgrade.successor > 0)
        return "another upgrade has not ended";
    if (master->upgrade.predecessor > 0)
        return "the previous master still runs: end it by QUIT first";
    if (master->ending || master->next_generation || !present_sockets(master))
        return "the server is starting, reloading or ending";
    return NULL;
}

void upgrade_start(struct master *master)
{
    struct log *log = &master->error_log.log;
    const char *why = rejection_reason(master);
    int result;

    if (why) {
        log_write(log, LOG_ERROR, "signal USR2: no upgrade: %s", why);
        return;
    }
    log_write(log, LOG_NOTICE, "signal USR2: starting \"%s\" for an upgrade", master->args->executable);
    result = pid_file_set_aside(&master->pid_file);
    if (result == 0)
        result = start_successor(master, present_sockets(master));
    if (result == 0)
        return;
    log_write(log, LOG_ALERT, "upgrade failed (%d: %s): this server continues", -result, strerror(-result));
    restore_pid_file(master);
}

static void read_report(struct master *master)
{
    struct upgrade *upgrade = &master->upgrade;
    char byte;
    ssize_t got = upgrade->report_fd < 0 ? -1 : read(upgrade->report_fd, &byte, 1);

    if (got == 0)
        fd_close(&upgrade->report_fd); /* the process has ended: SIGCHLD follows */
    if (got <= 0)
        return;
    upgrade->deadline_ms = 0;
    log_write(&master->error_log.log, LOG_NOTICE,
              "upgrade: process %ld serves, too; QUIT to process %ld completes the upgrade, QUIT to %ld cancels it",
              (long)upgrade->successor, (long)getpid(), (long)upgrade->successor);
}

void upgrade_read(struct master *master)
{
    read_report(master);
    upgrade_read_predecessor(master);
}

void upgrade_hand_over(struct master *master)
{
    char text[32];

    if (master->upgrade.successor == 0)
        return;
    fd_close(&master->upgrade.report_fd);
    pid_file_remove(&master->pid_file);
    snprintf(text, sizeof(text), "MAINPID=%ld", (long)master->upgrade.successor);
    service_notify(text);
    master->watchdog = (struct watchdog){0};
}

static void log_exit(struct master *master, pid_t pid, int status)
{
    bool killed = WIFSIGNALED(status);
    bool orderly = master->ending && status == 0; /* after another upgrade or a signal to it */

    log_write(&master->error_log.log, orderly ? LOG_INFO : LOG_ALERT, "upgrade: process %ld %s %d%s", (long)pid,
              killed ? "was ended by signal" : "exited with status", killed ? WTERMSIG(status) : WEXITSTATUS(status),
              master->ending ? "" : ": this server continues");
}

void upgrade_child_exited(struct master *master, pid_t pid, int status)
{
    struct upgrade *upgrade = &master->upgrade;

    if (pid != upgrade->successor)
        return;
    fd_close(&upgrade->report_fd);
    upgrade->successor = 0;
    upgrade->deadline_ms = 0;
    log_exit(master, pid, status);
    restore_pid_file(master);
}

void upgrade_check(struct master *master)
{
    struct upgrade *upgrade = &master->upgrade;

    if (upgrade->early_data_from_ms > 0 && master->clock.monotonic_ms >= upgrade->early_data_from_ms) {
        upgrade->early_data_from_ms = 0;
        __atomic_store_n(&master->shared->replay_window.closed, 0, __ATOMIC_RELEASE);
    }
    if (upgrade->deadline_ms == 0 || master->clock.monotonic_ms < upgrade->deadline_ms)
        return;
    upgrade->deadline_ms = 0;
    log_write(&master->error_log.log, LOG_ALERT, "upgrade: process %ld does not serve after %d s: it is killed",
              (long)upgrade->successor, LIMIT_UPGRADE_MS / 1000);
    kill(upgrade->successor, SIGKILL);
}

int upgrade_next_ms(const struct master *master)
{
    const struct upgrade *upgrade = &master->upgrade;

    return upgrade->early_data_from_ms > 0 || upgrade->deadline_ms > 0 ? LIMIT_UPGRADE_CHECK_MS : -1;
}
