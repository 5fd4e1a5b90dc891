/*
 * The inside of a session, for its own files and the callbacks of tls_context.c. Private to tls.
 */
#ifndef TLS_TLS_SESSION_PRIVATE_H
#define TLS_TLS_SESSION_PRIVATE_H

#include "tls/tls_bio.h"
#include "tls/tls_server.h"

/* Early data: they come before the handshake is over, and may be answered before. */
enum early {
    EARLY_NONE,
    EARLY_POSSIBLE,                  /* the ClientHello has not told yet */
    EARLY_HELD,                      /* they come: the first byte was read, to know it */
    EARLY_READING,
    EARLY_OVER,                      /* all have come; the client's Finished is awaited */
};

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
    uint8_t early;                   /* enum early */
    char first_early;                /* EARLY_HELD */
    bool update_refused;             /* the owner does not want a new key */
    bool shut;                       /* close_notify was queued */
};

_Static_assert(sizeof(struct tls_session) <= 96, "10,000 idle connections have one each");

/* True once it is known what was agreed: from the end of the handshake on, or from early data on. */
static inline bool tls_session_agreed(const struct tls_session *session)
{
    return session->finished || session->early >= EARLY_HELD;
}

/* The owner's clock. */
static inline uint64_t tls_session_now_ms(const struct tls_session *session)
{
    const struct tls_output *output = session->bio.output;

    return output->now_ms ? output->now_ms(session->bio.owner) : 0;
}

/* The session of an SSL, through its BIO: an index of ex_data would cost every connection a table. */
struct tls_session *tls_session_of(const SSL *ssl);

#endif
