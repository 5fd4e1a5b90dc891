/*
 * The adapters of client programs: one table entry for each client, and the functions that all adapters use. Private to
 * acme/.
 */
#ifndef ACME_ACME_PROGRAM_H
#define ACME_ACME_PROGRAM_H

#include "acme/acme_client.h"
#include "acme/acme_environment.h"

#include <limits.h>

/* One request for a certificate. */
struct acme_order {
    const struct acme *acme;
    const struct acme_certificate *certificate;
    const char *directory;                      /* URL of the authority */
    const char *hook;                           /* path of the hook */
    const struct acme_environment *environment; /* of acme.environment; NULL: none */
    struct acme_events *events;
    struct log *log;
};

/* A request in progress. */
struct acme_request {
    const struct acme_order *order;
    const char *program;            /* its name and that of its package */
    char folder[PATH_MAX];          /* accounts and working files of the client, one for each authority and address */
    /* PEM files that the client writes; empty: not known yet. */
    char chain[PATH_MAX], key[PATH_MAX];
    char email[LIMIT_ACME_EMAIL + 1];
    char names[LIMIT_ACME_NAMES][LIMIT_ACME_NAME + 1];
    enum acme_window window;        /* the answer of the authority */
    struct acme_run run;
    char *error;                    /* text of the failure */
    size_t size;
};

/* A client. */
struct acme_program {
    const char *name;               /* the program, and its package */
    /*
     * Runs the program in request->folder, and sets `chain` and `key`. Returns 0; -EINTR: events->ending became true;
     * -EINVAL: it failed, with the cause in request->error.
     */
    int (*issue)(struct acme_request *request);
    /*
     * Both NULL: the client never queries the window of the authority (RFC 9773). supports_window: runs the program,
     * and returns whether it is able to; false if it cannot be run. renew: lets the program query the window, and renew
     * the certificate if the window has been reached. Sets `window`. Returns 1 after a renewal, with `chain` and `key`;
     * 0 without one, also if this authority did not issue the installed certificate; or as `issue`.
     */
    bool (*supports_window)(struct acme_request *request);
    int (*renew)(struct acme_request *request);
};

extern const struct acme_program acme_program_uacme, acme_program_lego;

/* Sets the folder of the client and the names. False: a path is too long. */
bool acme_request_open(struct acme_request *request, const struct acme_order *order, const char *program);
/* Begins a command line with the name of the program; the other arguments follow by acme_run_add. */
void acme_request_start(struct acme_request *request);
/* Writes "FOLDER/..." to `path`. Returns 0; or -EINVAL with an error text. */
MUST_CHECK int acme_request_path(struct acme_request *request, char path[PATH_MAX], const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Stores an error text: "WHAT cannot be VERB (number: text)". Returns -EINVAL. */
int acme_request_failed(struct acme_request *request, const char *what, const char *verb, int error);
/* Stores the cause of a status of acme_client_run that is not 0. Returns -EINTR if it is that, else -EINVAL. */
int acme_request_ended(struct acme_request *request, int status);

#endif
