/*
 * Address ranges in the configuration's notation: "10.0.0.0/8", "2001:db8::/32", "127.0.0.1", "unix:".
 */
#ifndef BASE_CIDR_H
#define BASE_CIDR_H

#include "base/str.h"

#include <sys/socket.h>

struct cidr {
    sa_family_t family;             /* AF_INET, AF_INET6, AF_UNIX */
    uint8_t bits;                   /* length of the prefix that is compared */
    uint8_t bytes[16];
};

/* Parses a range. 0, or -EINVAL: malformed, or bits are set beyond the prefix length ("10.0.0.1/8"). */
MUST_CHECK int cidr_parse(struct str text, struct cidr *out_cidr);
/* True if the range contains the address. An IPv4-mapped IPv6 address counts as IPv4. */
bool cidr_contains(const struct cidr *cidr, const struct sockaddr *address);

#endif
