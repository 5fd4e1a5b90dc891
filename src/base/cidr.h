/*
 * Ranges of addresses as configurations write them: "10.0.0.0/8", "2001:db8::/32", "127.0.0.1", "unix:".
 */
#ifndef BASE_CIDR_H
#define BASE_CIDR_H

#include "base/str.h"

#include <sys/socket.h>

struct cidr {
    sa_family_t family;             /* AF_INET, AF_INET6, AF_UNIX */
    uint8_t bits;                   /* of the address, that must be the same */
    uint8_t bytes[16];
};

/* 0, or -EINVAL: no range, or one with bits behind its length ("10.0.0.1/8"). */
MUST_CHECK int cidr_parse(struct str text, struct cidr *out_cidr);
/* True where the address lies in the range. An IPv4 address mapped into IPv6 counts as IPv4. */
bool cidr_contains(const struct cidr *cidr, const struct sockaddr *address);

#endif
