/*
 * The keys that session tickets are sealed with (RFC 5077 4; RFC 8446 4.6.1 leaves the form to the server). Either they
 * are drawn, again and again, by one process for all: then a ticket resumes wherever the memory of its key is seen. Or
 * they come from files, for several machines that stand for one.
 */
#ifndef TLS_TICKET_KEYS_H
#define TLS_TICKET_KEYS_H

#include "base/str.h"

/* One key; zeroed: none. */
struct ticket_key {
    uint8_t name[16];               /* stands in each ticket, so that its key is found */
    uint8_t hmac[32];
    uint8_t aes[32];
    uint8_t size;                   /* bytes of `hmac` and of `aes`: 32, or 16 */
};

/* One more than are in use, so that the next one is complete before it is used. */
enum { TICKET_KEYS_DRAWN = 3 };

/* Drawn keys, in memory that may be shared by processes: one writes, all read. Zeroed: none yet. */
struct ticket_keys {
    uint64_t number;                /* of the key that seals, counted from 1; atomic; the one before it opens, too */
    struct ticket_key keys[TICKET_KEYS_DRAWN];
};

/*
 * A new key seals from now on, the last one opens what it has sealed, and the one before that is wiped. So a ticket opens for as long as
 * it lives where this is called no more often than that. 0, or -EIO: nothing has changed.
 */
MUST_CHECK int ticket_keys_rotate(struct ticket_keys *keys);
/* No key is left. */
void ticket_keys_wipe(struct ticket_keys *keys);
/* The key that seals (`age` 0), or the one before it (1). False: there is none. The copy is the caller's to wipe. */
bool ticket_keys_get(const struct ticket_keys *keys, unsigned age, struct ticket_key *out_key);

/* What a key file holds: 80 bytes (name 16, HMAC 32, AES-256 32), or 48 (name 16, AES-128 16, HMAC 16). 0 or -EINVAL. */
MUST_CHECK int ticket_key_parse(struct str bytes, struct ticket_key *out_key);

#endif
