/*
 * The configuration that `sluice serve` runs with: YAML text, loaded like any other.
 */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include "base/buffer.h"

#define SERVE_PORT       8443
#define SERVE_PORT_TRIES 100

/* Ports are tried from `first` on, `tries` of them: the first that is free on 127.0.0.1 and, where the machine has it, on [::1]. 0 where none is. */
unsigned serve_find_port(unsigned first, unsigned tries, bool *out_ip6);
/*
 * The text. The folder is not in it: it is the prefix of the configuration, to which `root` is relative, so that no character in its
 * name can mean anything. 0 or -ENOMEM.
 */
MUST_CHECK int serve_configuration(unsigned port, bool ip6, struct buffer *out);

#endif
