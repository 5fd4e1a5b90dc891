/*
 * The state of the certificates in shared memory: written by the renewal process, shown by the status page. Workers
 * look for challenges of tls-alpn-01 only while a certificate is being renewed.
 */
#ifndef ACME_ACME_STATUS_H
#define ACME_ACME_STATUS_H

#include "acme/acme_schedule.h"

/* Returns memory for `count` certificates that forked processes share; NULL: out of memory. */
struct acme_zone *acme_zone_open(size_t count);
/* Accepts NULL. */
void acme_zone_close(struct acme_zone *zone);

/* Stores whether a certificate is being renewed, here or on another machine with the same state folder. */
void acme_zone_set_renewing(struct acme_zone *zone, bool renewing);
/* Returns it: challenges may exist. False without a zone (NULL). */
bool acme_zone_renewing(const struct acme_zone *zone);

/* A copy of one certificate's state. */
struct acme_status {
    uint64_t not_after_s;           /* end of the validity; 0: there is no certificate yet */
    uint64_t next_s;                /* the next attempt */
    uint64_t failures;
    /* 1: the window of the authority decides about the next attempt; 0: two thirds of the lifetime. */
    uint64_t window;
    char error[LIMIT_ACME_ERROR];   /* empty: none */
};

/* Stores a copy. `index` is below the count of acme_zone_open. */
void acme_status_set(struct acme_zone *zone, size_t index, const struct acme_status *status);
/*
 * False if the zone has no such certificate. While the error is written, its text may consist of parts of both errors.
 */
bool acme_status_get(const struct acme_zone *zone, size_t index, struct acme_status *out_status);

#endif
