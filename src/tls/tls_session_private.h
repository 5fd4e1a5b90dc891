/*
 * The internals of a session, for its own files and the callbacks of tls_context.c. Private to tls/.
 */
#ifndef TLS_TLS_SESSION_PRIVATE_H
#define TLS_TLS_SESSION_PRIVATE_H

#include "tls/tls_bio.h"
#include "tls/tls_server.h"

/* The state of early data. */
enum early {
    EARLY_NONE,
    EARLY_POSSIBLE,                  /* the ClientHello has not arrived */
    EARLY_DETECTED,                  /* early data arrive: the first byte was read to detect them */
    EARLY_READING,
    EARLY_RECEIVED,                  /* all were received; the client's Finished is outstanding */
};

/* Small, because every connection has one, idle or not. */
struct tls_session {
    SSL *ssl;                           /* owned; owns the BIO over `bio` */
    struct tls_bio bio;
    const struct tls_server *server;    /* not owned: selected by SNI */
    struct tls_receiver *receiver;      /* owned; NULL: OpenSSL decrypts */
    const char *error;                  /* a constant text; NULL: none */
    uint32_t updates_since_ms;          /* low bits of now_ms at the first of `key_updates` */
    uint8_t key_updates;                /* of the peer, within LIMIT_KEY_UPDATES_MS */
    bool failed;                        /* nothing is read or written any more */
    bool out_of_memory;                 /* the reason of `failed` */
    bool finished;                      /* the handshake is complete */
    uint8_t early;                      /* enum early */
    char first_early;                   /* EARLY_DETECTED */
    bool update_rejected;               /* the owner rejected a new key */
    bool close_notify_queued;           /* close_notify was queued */
};

_Static_assert(sizeof(struct tls_session) <= 104, "10,000 idle connections have one each");

/* True once the parameters are negotiated: from early data or the end of the handshake on. */
static inline bool tls_session_is_negotiated(const struct tls_session *session)
{
    return session->finished || session->early >= EARLY_DETECTED;
}

/* True if the ClientHello requested the answer to a challenge of ACME. */
static inline bool tls_session_is_challenge(const struct tls_session *session)
{
    return session->server == &session->server->context->challenge_server;
}

/* The owner's clock. */
static inline uint64_t tls_session_now_ms(const struct tls_session *session)
{
    const struct tls_output *output = session->bio.output;

    return output->now_ms ? output->now_ms(session->bio.owner) : 0;
}

/* Empties OpenSSL's error queue. */
void tls_clear_errors(void);
/* Fails the session. `text` is a constant. Returns -EPROTO. */
int tls_session_fail(struct tls_session *session, const char *text);
/* The same with a fatal alert (RFC 8446 6.2). */
int tls_session_reject(struct tls_session *session, uint8_t alert, const char *text);
/* Fails the session because an allocation failed. Returns -EPROTO. */
int tls_session_fail_allocation(struct tls_session *session);
/* A text for OpenSSL's errors; the most frequent ones are replaced by texts for administrators. */
const char *tls_session_fault(struct tls_session *session);
/* Maps a failed call on the SSL: -EAGAIN, 0 (the peer closed), or -EPROTO with its error text. */
int tls_session_result(struct tls_session *session, int result);

/* SSL_do_handshake, during which the session gets the client's secret of application data. */
int tls_session_do_handshake(struct tls_session *session);
/*
 * Reads at most one record from the input by OpenSSL, so that a request for a new key is seen before OpenSSL answers
 * it. Results as tls_session_read.
 */
ssize_t tls_session_read_record(struct tls_session *session, char *into, size_t size);

/* The session of an SSL, through its BIO: ex_data would cost a table per connection. */
struct tls_session *tls_session_of(const SSL *ssl);

#endif
