/*
 * `sluice serve`: generates a configuration as YAML text, which is loaded like any other, and runs it.
 */
#ifndef COMMAND_SERVE_H
#define COMMAND_SERVE_H

#include "base/buffer.h"

#define SERVE_PORT       8443
#define SERVE_PORT_TRIES 100
#define DOCS_PORT        8080

/* Parameters of the configuration. */
struct serve_settings {
    bool plain;                     /* HTTP, and no access log */
    unsigned port;
    bool ip6;                       /* IPv6 is available */
    bool open;                      /* listens on all addresses, not only on the loopback */
    bool spa;                       /* paths without a file get index.html */
    bool autoindex;
    const char *name;               /* host name for the certificate; NULL: only localhost */
    const char *acme;               /* the name of a certificate by ACME; NULL: none */
    const char *acme_state;         /* absolute path of its state folder */
    const char *acme_directory;     /* URL of the authority; NULL: the default */
    const char *certificate;        /* absolute path; NULL: generated at startup */
    const char *key;                /* absolute path; NULL: in the certificate's file */
};

/*
 * Returns the first of `tries` ports from `first` on that is free on 127.0.0.1 (`open`: 0.0.0.0) and, if IPv6 is
 * available, on [::1] ([::]). 0: none.
 */
unsigned serve_find_port(unsigned first, unsigned tries, bool open, bool *out_ip6);
/*
 * serve_configuration.c: generates the text. It does not contain the directory, which is the prefix of the
 * configuration: `root` is relative to it, so its name needs no quoting. The paths of certificate and key are quoted.
 * Returns 0 or -ENOMEM.
 */
MUST_CHECK int serve_configuration(const struct serve_settings *settings, struct buffer *out);
/*
 * Serves a directory over HTTP on the loopback addresses; port 0: the first free one from DOCS_PORT on. Returns the
 * exit status.
 */
int serve_plain(const char *directory, unsigned port);
/*
 * Runs a configuration given as text, without a pid file, until a signal ends it. Relative paths start at `prefix`.
 * Returns the exit status.
 */
int serve_text(struct str text, const char *prefix);

#endif
