/*
 * An order: requests a certificate by the configured client, and installs it.
 */
#ifndef ACME_ACME_ORDER_H
#define ACME_ACME_ORDER_H

#include "acme/acme_program.h"

/*
 * Requests the certificate with a new key. Returns 0 after installing it; -EINTR: events->ending became true; -EINVAL:
 * it failed, with the cause in `error`.
 */
MUST_CHECK int acme_order_request(const struct acme_order *order, char *error, size_t size);

/*
 * Runs the client once to find out whether it queries the window of the authority (RFC 9773). False also if it fails.
 */
bool acme_order_supports_window(const struct acme_order *order);
/*
 * Lets such a client query the window, and renew the installed certificate with a new key if it has been reached.
 * Returns 1 after installing it; 0: it was not renewed; or as acme_order_request. `out_window` is written always: the
 * answer; after 0 and ACME_WINDOW_UNKNOWN another authority may have issued the certificate.
 */
MUST_CHECK int acme_order_renew(const struct acme_order *order, enum acme_window *out_window, char *error, size_t size);

#endif
