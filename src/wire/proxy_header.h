/*
 * The PROXY protocol (haproxy's proxy-protocol.txt, version 2020/03/05): who speaks through a proxy before us, said once at
 * the beginning of a connection, in text (version 1) or binary (version 2). Pure: bytes and addresses.
 */
#ifndef WIRE_PROXY_HEADER_H
#define WIRE_PROXY_HEADER_H

#include "base/str.h"

#include <netinet/in.h>

/* An address in the space that TCP needs. AF_UNSPEC: not known. */
union proxy_address {
    struct sockaddr any;
    struct sockaddr_in ip4;
    struct sockaddr_in6 ip6;
};

struct proxy_header {
    union proxy_address source;      /* the client; AF_UNSPEC where the proxy speaks for itself (LOCAL, UNKNOWN) or of a UNIX socket */
    union proxy_address destination; /* where it connected to; of the same family */
};

/* What one header may have, all TLVs included. */
#define PROXY_HEADER_MAX 4096
/* What proxy_header_write may need. */
#define PROXY_HEADER_WRITTEN 108

/*
 * Reads a header at the front of `bytes`. Its length in bytes (what follows is the connection's), 0: more is needed, or -EPROTO: it is none, a
 * bad one, or longer than PROXY_HEADER_MAX. TLVs are skipped, each length checked.
 */
MUST_CHECK ssize_t proxy_header_parse(struct str bytes, struct proxy_header *out_header);

/*
 * Writes one of version 1 or 2. Where the two are not of one family of IP, it says UNKNOWN (or LOCAL). Returns its
 * length, at most PROXY_HEADER_WRITTEN.
 */
size_t proxy_header_write(const struct sockaddr *source, const struct sockaddr *destination, unsigned version,
                          char into[PROXY_HEADER_WRITTEN]);

#endif
