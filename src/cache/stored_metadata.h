/*
 * The metadata of a stored response: the first bytes of the head of its entry, in the byte order of this machine.
 */
#ifndef CACHE_STORED_METADATA_H
#define CACHE_STORED_METADATA_H

#include "base/must_check.h"
#include "base/str.h"

struct stored_metadata {
    int32_t status;                 /* 0: not a response: Vary in the fields has the names that select a variant */
    uint32_t fields;                /* header fields of the response, which follow */
    int64_t received_s;
    int64_t initial_age_s;
    int64_t lifetime_s;
    /* As in struct freshness, from the fields of cached_policy. */
    int64_t stale_while_revalidate, stale_if_error;
    uint8_t no_cache, never_stale;  /* 0 or 1, from the same fields */
    uint16_t reason;                /* bytes of the reason phrase, which follows; 0: the standard one */
    unsigned char unused[4];
    uint64_t salt;                  /* part of the keys of the variants: a new salt makes older variants unreachable */
};

/*
 * Reads the metadata of a head, and checks its values: the checksum of the file does not detect a file that another
 * program wrote, or that was changed on purpose. Sums of the times do not overflow. 0 or -EBADMSG.
 */
MUST_CHECK int stored_metadata_read(struct str head, struct stored_metadata *out);

#endif
