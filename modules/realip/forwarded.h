/*
 * The address of a client, in the fields of the proxies before the server: X-Forwarded-For, X-Real-IP and others of
 * that form ("192.0.2.1, [2001:db8::1]:80"), and Forwarded (RFC 7239).
 */
#ifndef REALIP_FORWARDED_H
#define REALIP_FORWARDED_H

#include "base/cidr.h"
#include "http/headers.h"
#include "wire/proxy_header.h"

struct forwarded_trust {
    const struct cidr *proxies;
    size_t count;
    bool recursive;                 /* the last address that is not one of these proxies, instead of the last one */
};

bool forwarded_is_trusted(const struct forwarded_trust *trust, const struct sockaddr *address);

/*
 * Searches the fields with this name from the last address to the first: each proxy appends the address of its peer, so
 * the first untrusted one is the client. An invalid address ends the search. False: no address was found.
 */
bool forwarded_find_client(const struct forwarded_trust *trust, const struct headers *headers, struct str name,
                           union proxy_address *out_client);

#endif
