/*
 * Reports of invalid TLS settings, with the position of the value. Private to tls/.
 */
#ifndef TLS_TLS_FAULT_H
#define TLS_TLS_FAULT_H

#include "tls/tls_context.h"

/* The receiver of faults, and the current position. */
struct tls_reporter {
    tls_fault_report *report;
    void *owner;
    struct tls_fault fault; /* its texts are not set */
};

/* The same receiver for a directive's value. */
struct tls_reporter tls_reporter_at(const struct tls_reporter *reporter, const char *directive, size_t index);
/* Reports an error text, with the part after a newline as hint. Returns false. */
bool tls_fail(const struct tls_reporter *reporter, const char *format, ...) PRINTF_LIKE(2, 3);
/* OpenSSL's reason for its last failure, or "out of memory"; clears the queue. */
const char *tls_openssl_reason(void);

#endif
