/*
 * The times at which certificates are requested: in the window of the authority (RFC 9773) or at two thirds of the
 * lifetime, and after a failure with growing delays. A file records the last attempt, so that a restart does not repeat
 * it at once.
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
    int64_t queried_s;              /* the last answer about the window, or the renewal after it; 0: none */
    int window;                     /* that answer: enum acme_window */
};

/*
 * Returns the time of renewal: after two thirds of the lifetime, and up to a twentieth of the lifetime later.
 * `random` distributes the requests of many certificates.
 */
int64_t acme_renewal_s(const struct acme_validity *validity, uint32_t random);

/* Returns the delay after this number of consecutive failures, from 1; `random` varies it by a quarter. */
uint64_t acme_retry_s(uint64_t retry_ms, uint64_t failures, uint32_t random);

/*
 * True while the window of the authority decides: its last answer, at most LIMIT_ACME_ANSWER_S ago, was that it is
 * ahead.
 */
bool acme_window_decides(const struct acme_attempt *attempt, int64_t now_s);

/*
 * Returns the time, in seconds since the epoch, from which a certificate is due; it may be in the past. `validity`
 * NULL: there is no valid certificate. A recorded attempt more than LIMIT_ACME_SKEW_S in the future is ignored: the
 * clock was set back. While the window of the authority decides, the certificate is due in the last tenth of its
 * lifetime; if it has been reached, at once. After a success, a certificate with all names is not due before another
 * twentieth of its lifetime has passed.
 */
int64_t acme_due_s(const struct acme_validity *validity, const struct acme_attempt *attempt, int64_t now_s,
                   uint32_t random);

/*
 * Returns the time from which a client that supports the window of the authority is to query it; it may be in the past.
 * INT64_MAX: never, because the certificate is due for another reason, or expires within LIMIT_ACME_LAST_DAY_S.
 */
int64_t acme_window_query_s(const struct acme_validity *validity, const struct acme_attempt *attempt, int64_t now_s,
                            uint32_t random);

/* Records an answer at `now_s`. */
void acme_attempt_answered(struct acme_attempt *attempt, enum acme_window window, int64_t now_s);
/* Records a failure at `now_s`. Other characters than printable ASCII in `error` become spaces. */
void acme_attempt_failed(struct acme_attempt *attempt, uint64_t retry_ms, const char *error, int64_t now_s,
                         uint32_t random);

/* Reads the file. Returns 0, or -errno and a zeroed attempt: -EINVAL if it is malformed. */
MUST_CHECK int acme_attempt_read(const char *path, struct acme_attempt *out_attempt);
/* Writes the file atomically. Returns 0 or -errno. */
MUST_CHECK int acme_attempt_write(const char *path, const struct acme_attempt *attempt);

#endif
