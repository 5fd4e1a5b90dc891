/*
 * The certificates that a context presents, for display.
 */
#ifndef TLS_TLS_CERTIFICATE_FACTS_H
#define TLS_TLS_CERTIFICATE_FACTS_H

#include "tls/tls_context.h"

struct tls_certificate_facts {
    char subject[256], issuer[256]; /* distinguished names (RFC 2253), possibly truncated */
    char key[32];                   /* "EC", "RSA" */
    int64_t until_s;                /* end of validity, since the epoch */
};

/* Describes certificate number `index` of server number `server`. False: there are no more. */
bool tls_certificate_facts(const struct tls_context *context, size_t server, size_t index,
                           struct tls_certificate_facts *out_facts);

#endif
