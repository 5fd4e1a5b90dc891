/*
 * Parses the SRV records of a DNS message (RFC 2782) with their time to live, which c-ares does not report for them.
 */
#ifndef IO_RESOLVER_SRV_H
#define IO_RESOLVER_SRV_H

#include "base/limits.h"
#include "base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SRV_TYPE = 33, SRV_CLASS_IN = 1 };

struct srv_record {
    char target[LIMIT_HOST + 1];
    uint16_t priority, weight, port;
    uint32_t ttl_s;
};

/*
 * Parses the usable SRV records, at most `room`; skips other records, and those with the target "." or port 0. Returns
 * their count, or -EBADMSG for a malformed message.
 */
MUST_CHECK int srv_read(const unsigned char *message, size_t length, struct srv_record *out_records, size_t room);

#endif
