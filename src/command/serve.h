/*
 * The configuration that `sluice serve` runs with: YAML text, loaded like any other.
 */
#ifndef COMMAND_SERVE_H
#define COMMAND_SERVE_H

#include "base/buffer.h"

#define SERVE_PORT       8443
#define SERVE_PORT_TRIES 100

/* What is served, and to whom. */
struct serve_plan {
    unsigned port;
    bool ip6;                       /* the machine has it */
    bool open;                      /* to all that reach this machine, not only to itself */
    bool spa;                       /* what is no file is index.html */
    bool autoindex;
    const char *name;               /* of the machine, for the certificate; NULL: localhost alone */
    const char *certificate;        /* an absolute path; NULL: made at start */
    const char *key;                /* the same; NULL: in the certificate's file */
};

/*
 * Ports are tried from `first` on, `tries` of them: the first that is free on 127.0.0.1 (`open`: 0.0.0.0) and, where the machine has it, on [::1]
 * ([::]). 0 where none is.
 */
unsigned serve_find_port(unsigned first, unsigned tries, bool open, bool *out_ip6);
/*
 * The text. The folder is not in it: it is the prefix of the configuration, to which `root` is relative, so that no character in its
 * name can mean anything; those of certificate and key are quoted. 0 or -ENOMEM.
 */
MUST_CHECK int serve_configuration(const struct serve_plan *plan, struct buffer *out);

#endif
