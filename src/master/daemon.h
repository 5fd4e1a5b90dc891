/*
 * Detaches from the terminal, and reports readiness to the launching command.
 */
#ifndef MASTER_DAEMON_H
#define MASTER_DAEMON_H

#include "base/must_check.h"

/*
 * Forks; the caller continues in the child, in a session of its own. The launching command waits for daemon_report
 * and then exits with 0; with 1 if the child exits without it. Returns 0 or -errno.
 */
MUST_CHECK int daemon_detach(int *out_report_fd);
/*
 * Opens /dev/null for closed standard streams; must be the first call of a process. Otherwise a log or a client's
 * socket could get descriptor 0, 1 or 2, and messages would be written to it.
 */
void daemon_fill_streams(void);
/* Redirects standard input, output and error to /dev/null. */
void daemon_leave_terminal(void);
/* Reports success to the launching command and leaves the terminal. -1: no daemon mode. */
void daemon_report(int report_fd);

#endif
