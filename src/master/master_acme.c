/*
 * The renewal process of `ssl_certificate: acme` (src/acme): the master forks it beside the workers, starts it again if
 * it dies, and looks for changed certificate files when it reports a new one.
 */
#include "master/master_state.h"

#include "acme/acme_folder.h"
#include "acme/acme_renewal.h"
#include "acme/acme_status.h"
#include "base/limits.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DELAY_DOUBLED = 6 }; /* up to a minute */

/* The user that runs the client. Returns 0, or -errno after logging it. */
static int find_identity(struct master *master, struct generation *generation, struct identity *out_identity)
{
    struct str user = generation->configuration->acme.user;
    const char *missing;
    int result = 0;

    *out_identity = generation->identity;
    if (master->is_root && !str_empty(user))
        result = identity_find(user, STR(""), out_identity, &missing);
    if (result < 0)
        log_write(&master->error_log.log, LOG_EMERG, "acme.user: there is no user \"" STR_FMT "\"", STR_ARG(user));
    return result;
}

int master_acme_open(struct master *master, struct generation *generation)
{
    struct acme *acme = &generation->configuration->acme;
    struct identity identity;
    int result;

    if (acme->count == 0)
        return 0;
    result = find_identity(master, generation, &identity);
    if (result == 0)
        result = acme_folder_create(acme, master->is_root ? identity.user : (uid_t)-1,
                                    master->is_root ? identity.group : (gid_t)-1, &master->error_log.log);
    if (result < 0)
        return result;
    acme->zone = acme_zone_open(acme->count);
    return acme->zone ? 0 : -ENOMEM;
}

/* The variables of all certificates, read as the user that starts the server. NULL when out of memory. */
static struct acme_environment *read_environments(const struct acme *acme)
{
    struct acme_environment *environments = calloc(acme->count, sizeof(*environments));

    for (size_t i = 0; environments && i < acme->count; i++)
        acme_environment_read(acme->items[i].environment.data, &environments[i]);
    return environments;
}

static _Noreturn void become_renewal(struct master *master, struct generation *generation, int channel_fd)
{
    struct log *log = &master->error_log.log;
    struct acme_renewal renewal = {.acme = &generation->configuration->acme,
                                   .executable = master->args->executable,
                                   .channel_fd = channel_fd,
                                   .log = log};
    struct identity identity;
    const char *step = "closing files, or finding the user,";
    char executable[PATH_MAX] = "";
    const int kept[] = {channel_fd, master->error_log.fd};
    int result = child_close_others(kept, sizeof(kept) / sizeof(kept[0])), status = EXIT_FAILURE;

    if (result == 0)
        result = find_identity(master, generation, &identity);
    if (result == 0 && !(renewal.environments = read_environments(renewal.acme)))
        result = -ENOMEM;
    if (result == 0)
        result = privileges_drop(&identity, &step);
    if (!renewal.executable && readlink("/proc/self/exe", executable, sizeof(executable) - 1) > 0)
        renewal.executable = executable;
    if (result < 0)
        log_write(log, LOG_ALERT, "acme: %s failed (%d: %s)", step, -result, strerror(-result));
    else
        status = acme_renewal_run(&renewal);
    exit(status);
}

static void start_renewal(struct master *master)
{
    struct renewal_child *renewal = &master->renewal;
    struct log *log = &master->error_log.log;
    int ends[2];
    pid_t pid;

    renewal->start_ms = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
        log_write(log, LOG_ALERT, "acme: socketpair() failed (%d: %s)", errno, strerror(errno));
        renewal->start_ms = master->clock.monotonic_ms + (LIMIT_ACME_CONTROL_MS << DELAY_DOUBLED);
        return;
    }
    channel_refuse_descriptors(ends[0]);
    renewal->channel_fd = ends[0];
    pid = fork();
    if (pid == 0)
        become_renewal(master, master->current, ends[1]);
    close(ends[1]);
    if (pid > 0) {
        renewal->pid = pid;
        log_write(log, LOG_INFO, "renewal process %ld started", (long)pid);
        return;
    }
    log_write(log, LOG_ALERT, "starting the renewal process of acme failed (%d: %s)", errno, strerror(errno));
    close(ends[0]);
    renewal->channel_fd = -1;
    renewal->start_ms = master->clock.monotonic_ms + (LIMIT_ACME_CONTROL_MS << DELAY_DOUBLED);
}

void master_acme_stop(struct master *master)
{
    struct renewal_child *renewal = &master->renewal;

    renewal->enabled = false;
    renewal->start_ms = 0;
    if (renewal->pid == 0 || renewal->kill_ms > 0)
        return;
    kill(renewal->pid, SIGTERM);
    renewal->kill_ms = master->clock.monotonic_ms + LIMIT_STOP_MS;
}

void master_acme_reopen(struct master *master)
{
    struct renewal_child *renewal = &master->renewal;

    if (renewal->pid == 0 || renewal->kill_ms > 0)
        return;
    renewal->replaced = true;
    kill(renewal->pid, SIGUSR1);
}

void master_acme_start(struct master *master)
{
    master_acme_stop(master);
    if (!master->current || master->current->configuration->acme.count == 0)
        return;
    master->renewal.enabled = true;
    master->renewal.failures = 0;
    if (master->renewal.pid == 0)
        start_renewal(master);
}

void master_acme_check(struct master *master)
{
    struct renewal_child *renewal = &master->renewal;

    if (renewal->kill_ms > 0 && master->clock.monotonic_ms >= renewal->kill_ms) {
        kill(renewal->pid, SIGKILL);
        renewal->kill_ms = UINT64_MAX;
    }
    if (renewal->start_ms > 0 && master->clock.monotonic_ms >= renewal->start_ms && renewal->pid == 0)
        start_renewal(master);
}

int master_acme_next_ms(const struct master *master)
{
    const struct renewal_child *renewal = &master->renewal;
    uint64_t due_ms = renewal->kill_ms > 0 ? renewal->kill_ms : renewal->start_ms;

    return due_ms == 0 ? -1 : master_wait_ms(master, due_ms);
}

void master_acme_read(struct master *master)
{
    char message[64];
    ssize_t length = read(master->renewal.channel_fd, message, sizeof(message));

    if (length > 0 && master->current)
        master->current->files_checked_ms = 0;
    if (length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    close(master->renewal.channel_fd); /* SIGCHLD follows */
    master->renewal.channel_fd = -1;
}

static void plan_restart(struct master *master, int status)
{
    struct renewal_child *renewal = &master->renewal;
    unsigned doubled = renewal->failures < DELAY_DOUBLED ? renewal->failures : DELAY_DOUBLED;
    uint64_t delay_ms = (uint64_t)LIMIT_ACME_CONTROL_MS << doubled;

    renewal->failures++;
    renewal->start_ms = master->clock.monotonic_ms + delay_ms;
    log_write(&master->error_log.log, LOG_ALERT,
              "the renewal process of acme exited %s %d; it starts again in %llu ms",
              WIFSIGNALED(status) ? "on signal" : "with code",
              WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), (unsigned long long)delay_ms);
}

bool master_acme_exited(struct master *master, pid_t pid, int status)
{
    struct renewal_child *renewal = &master->renewal;
    bool expected = renewal->kill_ms > 0 || (renewal->replaced && status == 0);

    if (renewal->pid != pid)
        return false;
    if (renewal->channel_fd >= 0)
        master_acme_read(master);
    if (renewal->channel_fd >= 0)
        close(renewal->channel_fd);
    renewal->channel_fd = -1;
    renewal->pid = 0;
    renewal->kill_ms = 0;
    renewal->replaced = false;
    if (renewal->enabled && expected)
        start_renewal(master);
    else if (renewal->enabled)
        plan_restart(master, status);
    return true;
}
