/*
 * `sluice serve --acme NAME`: a certificate by ACME for the generated configuration, by the challenge tls-alpn-01.
 */
#ifndef COMMAND_SERVE_ACME_H
#define COMMAND_SERVE_ACME_H

#include "base/must_check.h"

#include <limits.h>

#define SERVE_ACME_PORT 443             /* at which authorities validate names */

/*
 * Finds the state folder: /var/lib/sluice/acme, or, without root, sluice/acme in $XDG_STATE_HOME or in ~/.local/state.
 * Creates its parents. Returns 0, or -errno after printing the error.
 */
MUST_CHECK int serve_acme_state(char into[PATH_MAX]);
/* Checks the argument of --acme. Returns 0, or -EINVAL after printing the error. */
MUST_CHECK int serve_acme_check(const char *name);

#endif
