/*
 * "$apr1$" hashes: Apache's variant of MD5-crypt, the default of htpasswd, which libcrypt does not support.
 */
#ifndef AUTH_BASIC_APR1_H
#define AUTH_BASIC_APR1_H

#include "base/str.h"

/*
 * Returns true if `hash` ("$apr1$SALT$22 characters") is the hash of the password. False also for a malformed hash,
 * for a password of LIMIT_LOGIN_TEXT bytes or more, and if OpenSSL has no MD5 (FIPS). A malformed hash takes as long
 * as a valid one. Blocks for 1000 rounds of MD5, well below a millisecond.
 */
bool apr1_matches(const char *password, struct str hash);

#endif
