/*
 * Keys that encrypt session tickets (RFC 5077 4; RFC 8446 4.6.1 leaves the format to the server). They are either
 * generated periodically by one process for all processes that share the memory, or read from files shared by several
 * machines.
 */
#ifndef TLS_TICKET_KEYS_H
#define TLS_TICKET_KEYS_H

#include "base/str.h"

/* One key; zeroed: none. */
struct ticket_key {
    uint8_t name[16];               /* part of each ticket, selects the key */
    uint8_t hmac[32];
    uint8_t aes[32];
    uint8_t size;                   /* bytes of `hmac` and of `aes` in use: 32, or 16 */
};

/* One more than are in use, so that the next key is complete before it is used. */
enum { TICKET_KEYS_GENERATED = 3 };

/* Generated keys, in memory that may be shared by processes: one writes, all read. Zeroed: none yet. */
struct ticket_keys {
    uint64_t number;                /* number of the current key, from 1; atomic; the previous one decrypts, too */
    struct ticket_key keys[TICKET_KEYS_GENERATED];
};

/*
 * Generates a new current key; the previous one still decrypts, and the one before is wiped. If the calls are at least
 * a ticket lifetime apart, every ticket can be decrypted until it expires. 0, or -EIO: nothing changed.
 */
MUST_CHECK int ticket_keys_rotate(struct ticket_keys *keys);
/* Wipes all keys. */
void ticket_keys_wipe(struct ticket_keys *keys);
/* Copies the current key (`age` 0) or the previous one (1), to be wiped by the caller. False: there is none. */
bool ticket_keys_get(const struct ticket_keys *keys, unsigned age, struct ticket_key *out_key);

/* Parses a key file: 80 bytes (name 16, HMAC 32, AES-256 32) or 48 (name 16, AES-128 16, HMAC 16). 0 or -EINVAL. */
MUST_CHECK int ticket_key_parse(struct str bytes, struct ticket_key *out_key);

#endif
