/*
 * The adapter of the client uacme(1): registers an account, requests a certificate, and installs its files.
 */
#ifndef ACME_ACME_UACME_H
#define ACME_ACME_UACME_H

#include "acme/acme_client.h"

/* One request for a certificate. */
struct acme_order {
    const struct acme *acme;
    const struct acme_certificate *certificate;
    const char *directory;          /* URL of the authority */
    const char *hook;               /* path of the hook */
    struct acme_events *events;
    struct log *log;
};

/*
 * uacme: registers an account where there is none, and requests the certificate with a new key. Returns 0 after
 * installing it; -EINTR: events->ending became true; -EINVAL: it failed, with the cause in `error`.
 */
MUST_CHECK int acme_uacme_request(const struct acme_order *order, char *error, size_t size);

#endif
