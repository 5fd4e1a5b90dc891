/*
 * The PROXY protocol (haproxy's proxy-protocol.txt, version 2020/03/05): the addresses of a connection, sent by a
 * proxy at its beginning as text (version 1) or binary (version 2). The functions only parse and format.
 */
#ifndef WIRE_PROXY_HEADER_H
#define WIRE_PROXY_HEADER_H

#include "base/str.h"

#include <netinet/in.h>

/* An IPv4 or IPv6 address with its port. AF_UNSPEC: unknown. */
union proxy_address {
    struct sockaddr any;
    struct sockaddr_in ip4;
    struct sockaddr_in6 ip6;
};

struct proxy_header {
    union proxy_address source;      /* the client; AF_UNSPEC for LOCAL, UNKNOWN and Unix sockets */
    union proxy_address destination; /* the address it connected to; same family */
};

/* Maximum length of a header with all TLVs. */
#define PROXY_HEADER_MAX 4096
/* Maximum length of a header written by proxy_header_write. */
#define PROXY_HEADER_WRITTEN 108

/*
 * Parses a header at the start of `bytes`. Returns its length, 0: incomplete, or -EPROTO: missing, malformed, or
 * longer than PROXY_HEADER_MAX. TLVs are skipped, each length checked.
 */
MUST_CHECK ssize_t proxy_header_parse(struct str bytes, struct proxy_header *out_header);

/*
 * Writes a header of version 1 or 2. For addresses of different families or not of IP the header has UNKNOWN (LOCAL).
 * Returns its length, at most PROXY_HEADER_WRITTEN.
 */
size_t proxy_header_write(const struct sockaddr *source, const struct sockaddr *destination, unsigned version,
                          char into[PROXY_HEADER_WRITTEN]);

#endif
