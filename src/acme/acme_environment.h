/*
 * The file of acme.environment: variables for the client, such as credentials of a DNS provider. Only the renewal
 * process reads it, before it drops the privileges of the master; the values are passed to the client, and never
 * logged.
 */
#ifndef ACME_ACME_ENVIRONMENT_H
#define ACME_ACME_ENVIRONMENT_H

#include "acme/acme.h"
#include "base/limits.h"

struct acme_environment {
    char *text;                     /* owned: "NAME=VALUE", each terminated by NUL; NULL: none */
    size_t length;
    char error[LIMIT_ACME_ERROR];   /* the reason why the file cannot be used; empty: none */
};

/*
 * Reads lines NAME=VALUE; empty lines and comments (#) are ignored, quotes around a value are removed. A file that
 * others than its owner may read, or with another line, is not used: `error` names the place and the remedy. An empty
 * path: no variables.
 */
void acme_environment_read(const char *path, struct acme_environment *out_environment);
/* Wipes and frees. */
void acme_environment_finish(struct acme_environment *environment);
/* Adds the variables to this process. They refer to `environment`. Returns 0 or -errno. */
MUST_CHECK int acme_environment_export(const struct acme_environment *environment);

#endif
