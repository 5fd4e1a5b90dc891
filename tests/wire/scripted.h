/*
 * A kernel that does as a test tells it: it takes keys or refuses them, keeps what it was given, and encrypts
 * nothing, so that whatever leaves after a promotion can be read on the socket as it is.
 */
#ifndef TESTS_WIRE_SCRIPTED_H
#define TESTS_WIRE_SCRIPTED_H

#include "tls/ktls.h"

enum { SCRIPTED_CONTROLS = 64, SCRIPTED_MARK = 16 };

/* With `marks`, what the kernel is told stands in the stream where it was told. */
#define SCRIPTED_MARK_CONTROL "[[  CONTROL   ]]" /* a record by control message */
#define SCRIPTED_MARK_KEY     "[[    KEY     ]]" /* a second key */

struct scripted {
    int ulp_error, tx_error, rekey_error;
    bool marks;
    uint64_t counted;               /* what it says of its records; UINT64_MAX: it says EINVAL */
    int ulp_calls, tx_calls;
    uint16_t version, cipher;       /* of the last key that was offered, in the words of linux/tls.h */
    uint64_t sequence;
    uint8_t iv[8];                  /* TLS 1.2 GCM: the next explicit nonce */
    unsigned char key[56];          /* as it was given */
    socklen_t key_length;
    int control_eagain;             /* so many control records are put off first */
    uint8_t control_types[SCRIPTED_CONTROLS];
    unsigned controls;
    char control[256];              /* the last one */
    size_t control_length;
};

extern struct scripted kernel;
extern const struct ktls_calls scripted_calls;

#endif
