/*
 * The signals of `-s`. `-s upgrade` sends USR2 to the running master, and QUIT after the new one serves. The pid file
 * shows the progress: the old master renames it, and the new one writes its own when its workers accept connections.
 * If the new one fails, the old one renames its file back, with new times.
 */
#include "command/server_signal.h"

#include "base/limits.h"
#include "log/error_log.h"
#include "master/pid_file.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define POLL_MS  20
#define WATCH_MS 1000 /* time for which the new server must keep running */
#define WAIT_MS  (LIMIT_UPGRADE_MS + 5000)

long server_signal(const char *pid_path, int number)
{
    long owner = pid_file_owner(pid_path);

    if (owner == -EINVAL)
        error_log_print(LOG_ERROR, "invalid PID number in \"%s\"", pid_path);
    else if (owner < 0)
        error_log_print(LOG_ERROR, "open() \"%s\" failed (%ld: %s)", pid_path, -owner, strerror((int)-owner));
    else if (owner == 0)
        error_log_print(LOG_ERROR, "\"%s\" is stale: no running server uses it", pid_path);
    else if (kill((pid_t)owner, number) < 0)
        error_log_print(LOG_ALERT, "kill(%ld, %d) failed (%d: %s)", owner, number, errno, strerror(errno));
    else
        return owner;
    return 0;
}

static bool status_changed(const char *path, const struct stat *before)
{
    struct stat now;

    return stat(path, &now) == 0 && (now.st_ctim.tv_sec != before->st_ctim.tv_sec ||
                                     now.st_ctim.tv_nsec != before->st_ctim.tv_nsec);
}

/* Waits for the new server's pid file. Returns its pid; 0: the old one continues; -ETIMEDOUT; or -ESRCH: both ended. */
static long wait_for_successor(const char *path, long old, const struct stat *before)
{
    for (int waited = 0; waited < WAIT_MS; waited += POLL_MS) {
        long owner = pid_file_owner(path);

        if (owner > 0 && owner != old)
            return owner;
        if (owner == old && status_changed(path, before))
            return 0;
        if (kill((pid_t)old, 0) < 0 && errno == ESRCH)
            return -ESRCH;
        poll(NULL, 0, POLL_MS);
    }
    return -ETIMEDOUT;
}

/* True if the new server still runs after a while. */
static bool keeps_running(const char *path, long successor)
{
    for (int waited = 0; waited < WATCH_MS; waited += POLL_MS) {
        if (pid_file_owner(path) != successor)
            return false;
        poll(NULL, 0, POLL_MS);
    }
    return true;
}

static int upgrade_failed(const char *reason, long old)
{
    error_log_print(LOG_ERROR, "upgrade failed: %s; process %ld continues (its error log has the cause)", reason, old);
    return EXIT_FAILURE;
}

/* Returns the pid of the master that is being replaced; 0: none, or it is exiting. */
static long replaced_owner(const char *path)
{
    char old[4096 + sizeof(PID_FILE_OLD)];
    long owner;

    snprintf(old, sizeof(old), "%s" PID_FILE_OLD, path);
    owner = pid_file_owner(old);
    return owner > 0 ? owner : 0;
}

/* Ends the old server, and waits until it is exiting, so that another upgrade may begin. */
static int terminate_old_server(const char *path, long old)
{
    if (kill((pid_t)old, SIGQUIT) < 0)
        return upgrade_failed("the old server cannot be signalled", old);
    for (int waited = 0; waited < WAIT_MS && replaced_owner(path) == old; waited += POLL_MS)
        poll(NULL, 0, POLL_MS);
    return EXIT_SUCCESS;
}

int server_upgrade(const char *pid_path)
{
    struct stat before = {0};
    long old, successor;

    if (replaced_owner(pid_path) > 0) {
        error_log_print(LOG_ERROR, "an upgrade has not ended: process %ld still runs (\"%s" PID_FILE_OLD "\")",
                        replaced_owner(pid_path), pid_path);
        return EXIT_FAILURE;
    }
    (void)stat(pid_path, &before);
    old = server_signal(pid_path, SIGUSR2);
    if (old == 0)
        return EXIT_FAILURE;
    successor = wait_for_successor(pid_path, old, &before);
    if (successor == -ESRCH) {
        error_log_print(LOG_ALERT, "upgrade failed: process %ld ended", old);
        return EXIT_FAILURE;
    }
    if (successor == -ETIMEDOUT)
        return upgrade_failed("no new server appeared", old);
    if (successor == 0 || !keeps_running(pid_path, successor))
        return upgrade_failed("the new server ended", old);
    if (terminate_old_server(pid_path, old) != EXIT_SUCCESS)
        return EXIT_FAILURE;
    fprintf(stderr, "sluice: process %ld replaced process %ld\n", successor, old);
    return EXIT_SUCCESS;
}
