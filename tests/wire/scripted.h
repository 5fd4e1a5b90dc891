/*
 * A scripted kernel: it accepts or refuses keys, records the keys and control messages, and encrypts nothing. After a
 * promotion, the bytes on the socket are plaintext.
 */
#ifndef TESTS_WIRE_SCRIPTED_H
#define TESTS_WIRE_SCRIPTED_H

#include "tls/ktls.h"

enum { SCRIPTED_CONTROLS = 64, SCRIPTED_MARK = 16 };

/* With `marks`, each call writes its mark into the stream, at its position. */
#define SCRIPTED_MARK_CONTROL "[[  CONTROL   ]]" /* a record by control message */
#define SCRIPTED_MARK_KEY     "[[    KEY     ]]" /* a second key */

struct scripted {
    int ulp_error, tx_error, rekey_error;
    bool marks;
    uint64_t counted;               /* the record sequence number that it reports; UINT64_MAX: fails with EINVAL */
    int ulp_calls, tx_calls;
    uint16_t version, cipher;       /* of the last key, as in linux/tls.h */
    uint64_t sequence;
    uint8_t iv[8];                  /* TLS 1.2 GCM: the next explicit nonce */
    unsigned char key[56];          /* as passed to setsockopt */
    socklen_t key_length;
    int control_eagain;             /* number of control records that first fail with EAGAIN */
    uint8_t control_types[SCRIPTED_CONTROLS];
    unsigned controls;
    char control[256];              /* the last one */
    size_t control_length;
};

extern struct scripted kernel;
extern const struct ktls_calls scripted_calls;

#endif
