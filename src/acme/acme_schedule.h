/*
 * The times at which certificates are requested: at two thirds of the lifetime, and after a failure with growing delays.
 * A file records the last attempt, so that a restart does not repeat it at once.
 */
#ifndef ACME_ACME_SCHEDULE_H
#define ACME_ACME_SCHEDULE_H

#include "acme/acme_file.h"
#include "base/limits.h"

/* The last attempt. Zeroed: there was none. */
struct acme_attempt {
    int64_t tried_s;                /* its end, in seconds since the epoch */
    int64_t next_s;                 /* after a failure: not before this time */
    uint64_t failures;              /* consecutive */
    char error[LIMIT_ACME_ERROR];   /* of the last one; empty: it succeeded */
};

/*
 * Returns the time of renewal: after two thirds of the lifetime, and up to a twentieth of the lifetime later.
 * `random` distributes the requests of many certificates.
 */
int64_t acme_renewal_s(const struct acme_validity *validity, uint32_t random);

/* Returns the delay after this number of consecutive failures, from 1; `random` varies it by a quarter. */
uint64_t acme_retry_s(uint64_t retry_ms, uint64_t failures, uint32_t random);

/*
 * Returns the time, in seconds since the epoch, from which a certificate is due; it may be in the past. `validity` NULL: there
 * is no valid certificate. A recorded attempt in the future is ignored: the clock was set back.
 */
int64_t acme_due_s(const struct acme_validity *validity, const struct acme_attempt *attempt, int64_t now_s, uint32_t random);

/* Records a failure at `now_s`. Other characters than printable ASCII in `error` become spaces. */
void acme_attempt_failed(struct acme_attempt *attempt, uint64_t retry_ms, const char *error, int64_t now_s, uint32_t random);

/* Reads the file. Returns 0, or -errno and a zeroed attempt: -EINVAL if it is malformed. */
MUST_CHECK int acme_attempt_read(const char *path, struct acme_attempt *out_attempt);
/* Writes the file atomically. Returns 0 or -errno. */
MUST_CHECK int acme_attempt_write(const char *path, const struct acme_attempt *attempt);

#endif
