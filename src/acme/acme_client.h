/*
 * Runs the client program: in a process group of its own, with a time limit, without a terminal. Its output becomes
 * lines of the error log, and the cause of a failure.
 */
#ifndef ACME_ACME_CLIENT_H
#define ACME_ACME_CLIENT_H

#include "acme/acme_environment.h"
#include "base/limits.h"
#include "base/log.h"

#include <sys/types.h>

enum { ACME_ARGUMENTS = 2 * LIMIT_ACME_NAMES + 48 };

/* Events that end a wait of the renewal process. */
struct acme_events {
    int signal_fd;                  /* TERM, INT, QUIT, USR1 and CHLD */
    int control_fd;                 /* its peer is closed when the master exits; -1: none */
    bool ending;                    /* TERM, INT or QUIT was received, or the master has exited */
    bool replaced;                  /* USR1 was received: the process ends when no client runs */
};

/* Opens the signals, which stay blocked in this process. Returns 0 or -errno. */
MUST_CHECK int acme_events_open(struct acme_events *events, int control_fd);
/* Closes signal_fd; control_fd belongs to the caller. */
void acme_events_close(struct acme_events *events);
/*
 * Waits until `fd` (-1: none) is readable, a signal arrives, events->ending becomes true, or the time has passed.
 * Returns true if `fd` is readable.
 */
bool acme_events_wait(struct acme_events *events, int fd, uint64_t timeout_ms);

struct acme_run {
    char *arguments[ACME_ARGUMENTS];            /* NULL-terminated; the first one is the name of the program */
    size_t count;
    const char *challenges;                     /* for the hook: the folder, and the type that it accepts */
    const char *challenge_type;
    const struct acme_environment *environment; /* further variables; NULL: none */
    mode_t umask;                               /* 0: 077 */
    const char *home;                           /* working directory of the program */
    uint64_t timeout_ms;
    struct acme_events *events;
    struct log *log;                            /* gets the lines of the output; NULL: they are not logged */
    char output[LIMIT_ACME_OUTPUT];             /* the last bytes of its output, NUL-terminated */
    size_t length;
};

/* Appends an argument, which is not copied. acme_client_run fails if there are too many. */
void acme_run_add(struct acme_run *run, const char *argument);

/*
 * Runs the program. Returns its exit status; -ENOENT: it is not installed; -ETIMEDOUT: it exceeded the time limit and
 * was killed; -EINTR: events->ending became true, and the program was killed; -ECHILD: another process or the kernel
 * killed it; or -errno. The output is in run->output.
 */
MUST_CHECK int acme_client_run(struct acme_run *run);

/*
 * Writes the cause of a failure from the output: the last "detail" of the authority, else the last line. Empty: there
 * is no output.
 */
void acme_client_cause(const struct acme_run *run, char *into, size_t size);

#endif
