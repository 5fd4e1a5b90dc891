/*
 * Daemon mode: one fork and a pipe. The child prints startup errors to the terminal before it detaches; the pipe only
 * transmits the result.
 */
#include "master/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* In the launching command: waits until the child sends one byte (ready) or exits. */
static _Noreturn void wait_for_report(int fd)
{
    char byte;
    ssize_t got;

    do {
        got = read(fd, &byte, 1);
    } while (got < 0 && errno == EINTR);
    _exit(got == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
}

int daemon_detach(int *out_report_fd)
{
    int ends[2];
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    child = fork();
    if (child < 0) {
        int error = -errno;

        close(ends[0]);
        close(ends[1]);
        return error;
    }
    if (child > 0) {
        close(ends[1]);
        wait_for_report(ends[0]);
    }
    close(ends[0]);
    if (setsid() < 0) {
        close(ends[1]);
        return -errno;
    }
    *out_report_fd = ends[1];
    return 0;
}

void daemon_fill_streams(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDWR); /* the lowest free number */
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

void daemon_leave_terminal(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    if (null > STDERR_FILENO)
        close(null);
}

void daemon_report(int report_fd)
{
    if (report_fd < 0)
        return;
    daemon_leave_terminal();
    /* A failure is ignored: the launching command may have exited. */
    if (write(report_fd, "1", 1) != 1)
        errno = 0;
    close(report_fd);
}
