/*
 * The index of server names: exact names, "*.example.com", ".example.com" (both), "mail.*". Case and one trailing
 * dot are ignored. nginx's order: exact, longest leading wildcard, longest trailing wildcard. Regular expressions
 * are tried afterwards by tls_context.c. Private to tls/.
 */
#ifndef TLS_TLS_NAMES_H
#define TLS_TLS_NAMES_H

#include "base/table.h"

struct tls_names {
    struct table exact;
    struct table suffixes; /* ".example.com" */
    struct table prefixes; /* "mail." */
};

/* Initialises an empty index. */
void tls_names_init(struct tls_names *names);
/* Accepts a zeroed one. The names themselves and their values are not owned. */
void tls_names_finish(struct tls_names *names);

/*
 * Adds a name in the syntax of server_name; it must outlive the index. 0, -EEXIST (the first one stays), -EINVAL,
 * -ENOMEM.
 */
MUST_CHECK int tls_names_add(struct tls_names *names, struct str name, void *value);

/* The value of a name, or NULL. */
void *tls_names_find(const struct tls_names *names, struct str name);

#endif
