/*
 * Certificates by ACME (RFC 8555), as the configuration describes them: settings, names and files. The client program
 * implements the protocol; the other files of this folder run it and install the certificates.
 */
#ifndef ACME_ACME_H
#define ACME_ACME_H

#include "conf/directive.h"

struct acme_zone;

enum acme_client { ACME_UACME, ACME_LEGO };
enum acme_challenge_type { ACME_HTTP_01, ACME_TLS_ALPN_01, ACME_DNS_01 };
/* The time at which the authority suggests to renew a certificate (RFC 9773), by its last answer to the client. */
enum acme_window {
    ACME_WINDOW_UNKNOWN,            /* no answer: client or authority may not support it */
    ACME_WINDOW_AHEAD,              /* not reached */
    ACME_WINDOW_REACHED,            /* reached, and the certificate has not been renewed */
};
enum acme_key { ACME_EC256, ACME_EC384, ACME_RSA2048, ACME_RSA4096 };

/* The block `acme`. */
struct acme_settings {
    struct str email;                   /* empty: none */
    struct conf_words directories;      /* URLs of certificate authorities, tried in this order */
    int client;                         /* enum acme_client */
    int challenge;                      /* enum acme_challenge_type */
    int key_type;                       /* enum acme_key */
    struct str eab_key_id, eab_key;     /* external account binding; empty: none */
    struct str dns;                     /* dns-01: the provider, as the client names it */
    struct conf_words dns_resolvers;    /* name servers that the client queries; none: those of the system */
    bool dns_propagation;               /* wait until all authoritative name servers have the record */
    struct str environment;             /* file of variables for the client; empty: none */
    struct str state;                   /* the state folder */
    struct str user;                    /* runs the client where the server starts as root */
    uint64_t retry_ms;                  /* delay after the first failure; doubled after each further one */
    uint64_t timeout_ms;                /* of one run of the client */
};

/* One certificate. */
struct acme_certificate {
    struct str name;                /* its first name */
    struct str *names;              /* all names, `name` first */
    size_t name_count;
    const struct acme_settings *settings;
    struct str file;                /* chain and key as PEM: certificates/NAME.pem */
    struct str attempt_file;        /* the last attempt: certificates/NAME.state */
    struct str environment;         /* settings->environment, terminated by NUL */
};

/* All certificates of a configuration. The texts are terminated by NUL. */
struct acme {
    struct acme_certificate *items;
    size_t count;
    struct str state;               /* the state folder of all of them */
    struct str challenges;          /* challenges/ in it, which workers read */
    struct str user;
    struct acme_zone *zone;         /* acme_status.h; closed with the configuration; NULL: not opened */
};

/* The types' names in the order of enum acme_challenge_type, terminated by NULL. */
extern const char *const acme_challenge_types[];
/* True if a certificate is requested with this type of challenge. */
bool acme_uses_challenge(const struct acme *acme, enum acme_challenge_type type);

/*
 * True for a DNS name in lower case without a wildcard (RFC 1123), or an IPv4 address: the characters permit its use as
 * a file name and as an argument.
 */
bool acme_name_valid(struct str name);
/* True for an IPv4 address, which is a valid name, too. */
bool acme_address_valid(struct str name);
/* True for "*." and a DNS name. */
bool acme_wildcard_valid(struct str name);
/* True for at least one character of base64url (RFC 4648 5), without padding. */
bool acme_base64url_valid(struct str text);
/* True for a token of RFC 8555 8.3: base64url characters, at most LIMIT_ACME_TOKEN. */
bool acme_token_valid(struct str token);
/* True for the key authorization of this token (RFC 8555 8.1). */
bool acme_authorization_valid(struct str authorization, struct str token);

#endif
