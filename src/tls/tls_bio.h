/*
 * The BIO under an SSL: lends received bytes in, and is the sending half of the
 * record layer as far as OpenSSL can tell (KTLS.md, "accept and be the record layer"). Until the write key is
 * offered it passes finished ciphertext on; afterwards plaintext with its content type. It touches no
 * socket and never fails to write. Private to tls.
 */
#ifndef TLS_TLS_BIO_H
#define TLS_TLS_BIO_H

#include "tls/tls_session.h"

#include <openssl/bio.h>

enum { TLS_BIO_FIRST = 5 };

/* Embedded in the session, found through BIO_get_data. */
struct tls_bio {
    struct str lent;                 /* received and not yet taken; not owned */
    const struct tls_output *output; /* not owned */
    void *owner;                     /* of the output; not owned */
    size_t taken;                    /* bytes taken in all: capped during the handshake */
    uint8_t first[TLS_BIO_FIRST];    /* the first bytes of the connection, to know what was spoken */
    uint8_t type;                    /* content type of the next write; 0: application data */
    uint8_t cipher;      /* enum record_cipher of the key we took; RECORD_NONE: none was offered */
    uint8_t alerts;      /* written since the handshake */
    bool established;    /* the handshake is over */
    bool update_written; /* a KeyUpdate has left, and its key has not come yet */
    bool cut;            /* nothing more is let in */
};

/* The method of all our BIOs. NULL when out of memory; freed with BIO_meth_free. */
BIO_METHOD *tls_bio_method(void);

/* A BIO over `bio`, which outlives it. NULL when out of memory. */
BIO *tls_bio_create(const BIO_METHOD *method, struct tls_bio *bio);

#endif
