/*
 * An order: requests a certificate by the configured client, and installs it.
 */
#ifndef ACME_ACME_ORDER_H
#define ACME_ACME_ORDER_H

#include "acme/acme_program.h"

/*
 * Requests the certificate with a new key. Returns 0 after installing it; -EINTR: events->ending became true; -EINVAL: it
 * failed, with the cause in `error`.
 */
MUST_CHECK int acme_order_request(const struct acme_order *order, char *error, size_t size);

#endif
