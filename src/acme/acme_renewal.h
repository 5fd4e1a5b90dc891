/*
 * The renewal process: requests each certificate when it is due, and writes one byte to its channel after each
 * installation. It runs beside the workers, as another user where the server starts as root.
 */
#ifndef ACME_ACME_RENEWAL_H
#define ACME_ACME_RENEWAL_H

#include "acme/acme_environment.h"
#include "base/log.h"

struct acme_renewal {
    const struct acme *acme;
    /* One for each certificate. */
    const struct acme_environment *environments;
    const char *executable;         /* this program, as hook of the client */
    int channel_fd;                 /* to the master; the process exits when the master closes the other end */
    struct log *log;
};

/*
 * Runs until TERM, INT or QUIT, until the master exits, or until USR1, after which the client that runs completes.
 * Returns the exit status.
 */
int acme_renewal_run(const struct acme_renewal *renewal);

#endif
