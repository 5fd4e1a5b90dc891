/*
 * Which virtual server a name means: exact names, "*.example.com", ".example.com" (both), "mail.*". Case and
 * one trailing dot do not matter. Order as nginx: exact, longest leading wildcard, longest trailing one.
 * Regular expressions are no matter of this index (tls_context.c asks them afterwards). Private to tls.
 */
#ifndef TLS_TLS_NAMES_H
#define TLS_TLS_NAMES_H

#include "base/table.h"

struct tls_names {
    struct table exact;
    struct table suffixes; /* ".example.com" */
    struct table prefixes; /* "mail." */
};

/* An empty index. */
void tls_names_init(struct tls_names *names);
/* Accepts a zeroed one. The names themselves and their values are not owned. */
void tls_names_finish(struct tls_names *names);

/* Adds a name as server_name has it; it must stay as long as the index. 0, -EEXIST (the first one stays),
 * -EINVAL, -ENOMEM. */
MUST_CHECK int tls_names_add(struct tls_names *names, struct str name, void *value);

/* What the name means, or NULL. */
void *tls_names_find(const struct tls_names *names, struct str name);

#endif
