/*
 * Leaving the terminal, and telling whoever started us that we run: the waiting
 * command, and a service manager ($NOTIFY_SOCKET).
 */
#ifndef MASTER_DAEMON_H
#define MASTER_DAEMON_H

#include "base/must_check.h"

/*
 * Forks; the caller goes on in the child, in a session of its own. The launching command stays until daemon_report, and then exits 0; it exits 1 where the
 * child ends without. 0 or -errno.
 */
MUST_CHECK int daemon_detach(int *out_report_fd);
/*
 * First of all in a process: what of standard input, output and error was closed when we were started becomes
 * /dev/null. Otherwise a log or a client's socket would get such a number, and whatever is printed.
 */
void daemon_fill_streams(void);
/* Standard input, output and error become /dev/null. */
void daemon_leave_terminal(void);
/* Lets the launching command go, and leaves the terminal. -1: nobody waits. */
void daemon_report(int report_fd);

/* One message to the service manager, as "READY=1"; nothing where there is none (sd_notify(3)). */
void service_notify(const char *state);

#endif
