/*
 * The state of the renewal process, shared by acme_renewal.c (the schedule) and acme_renewal_request.c (runs of the
 * client).
 */
#ifndef ACME_ACME_RENEWAL_PRIVATE_H
#define ACME_ACME_RENEWAL_PRIVATE_H

#include "acme/acme_order.h"
#include "acme/acme_renewal.h"
#include "acme/acme_schedule.h"

/* The state of one certificate in this process. */
struct certificate_state {
    struct acme_attempt attempt;    /* kept in memory, too: the disk may be full */
    bool unwritten;                 /* the file of the attempt is older */
    uint32_t random;
    int file_error;                 /* why the file is not usable, logged; 0: it is, or does not exist */
    bool supports_window;           /* its client queries the window of the authority */
    int64_t due_s, query_s;         /* when it is to be requested; when its client is to query the window */
};

struct renewal {
    const struct acme_renewal *settings;
    struct acme_events events;
    struct certificate_state *states;
    char hook[PATH_MAX];
    bool lock_failed;               /* logged */
};

/* The wall clock. */
int64_t renewal_now_s(void);
/* Writes the attempt of a certificate to its file; logs a failure. */
void renewal_store_attempt(struct renewal *renewal, size_t index);
/* The order of a certificate at the authority `directory`, which may be filled in later. */
struct acme_order renewal_make_order(struct renewal *renewal, size_t index, const char *directory);
/*
 * Requests the certificate if it is due; else queries the window of its authority. Records the result. The caller holds
 * the lock.
 */
void renewal_run_client(struct renewal *renewal, size_t index);

#endif
