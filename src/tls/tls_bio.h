/*
 * The BIO below an SSL: supplies received bytes, and accepts the write key in place of kTLS (tls/README.md). Until
 * OpenSSL offers the write key, it passes finished ciphertext on; afterwards plaintext with its content type. It
 * touches no socket, and its writes do not fail. Private to tls/.
 */
#ifndef TLS_TLS_BIO_H
#define TLS_TLS_BIO_H

#include "tls/tls_session.h"

#include <openssl/bio.h>

enum { TLS_BIO_FIRST = 5 };

/* Embedded in the session, found through BIO_get_data. */
struct tls_bio {
    struct str input;                   /* received, not consumed; not owned */
    const struct tls_output *output;    /* not owned */
    void *owner;                        /* of the output; not owned */
    size_t consumed;                    /* bytes consumed in total: capped during the handshake */
    uint8_t first_bytes[TLS_BIO_FIRST]; /* the first bytes of the connection, to recognise other protocols */
    uint8_t type;                       /* content type of the next write; 0: application data */
    uint8_t cipher;                     /* enum record_cipher of the accepted key; RECORD_NONE: none was offered */
    uint8_t alerts;                     /* sent since the handshake */
    bool established;                   /* the handshake is complete */
    bool update_written;                /* a KeyUpdate was sent, its new key is outstanding */
    bool input_closed;                  /* no further input is passed on */
};

/* The shared BIO method. NULL when out of memory; freed by BIO_meth_free. */
BIO_METHOD *tls_bio_method(void);

/* A BIO over `bio`, which outlives it. NULL when out of memory. */
BIO *tls_bio_create(const BIO_METHOD *method, struct tls_bio *bio);

#endif
