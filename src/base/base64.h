/*
 * Base64 (RFC 4648 4), the strict form: standard alphabet, padding required.
 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/arena.h"

/* Decodes into the arena. data is NULL for malformed text, or when out of memory. */
struct str base64_decode(struct arena *arena, struct str text);

#endif
