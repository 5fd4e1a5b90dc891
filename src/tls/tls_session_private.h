/*
 * The inside of a session, for its own files and the callbacks of tls_context.c. Private to tls.
 */
#ifndef TLS_TLS_SESSION_PRIVATE_H
#define TLS_TLS_SESSION_PRIVATE_H

#include "tls/tls_bio.h"
#include "tls/tls_server.h"

/* Idle connections by the thousand have one each: kept small. */
struct tls_session {
    SSL *ssl; /* owned; owns the BIO over `bio` */
    struct tls_bio bio;
    const struct tls_server *server; /* not owned: the one that SNI chose */
    const char *error;               /* a constant sentence; NULL: none */
    uint32_t updates_since_ms;       /* low bits of now_ms at the first of `key_updates` */
    uint8_t key_updates;             /* of the peer, within LIMIT_KEY_UPDATES_MS */
    bool failed;                     /* nothing more is read or written */
    bool finished;                   /* the handshake is over */
    bool update_refused;             /* the owner does not want a new key */
    bool shut;                       /* close_notify was queued */
};

_Static_assert(sizeof(struct tls_session) <= 96, "10,000 idle connections have one each");

/* The session of an SSL, through its BIO: an index of ex_data would cost every connection a table. */
struct tls_session *tls_session_of(const SSL *ssl);

#endif
