/*
 * Early data (0-RTT, RFC 8446 2.3): whether those of a connection are taken. OpenSSL looks whether the ticket
 * is as old as the client says, and so bounds for how long a connection can be replayed; that it is not
 * replayed meanwhile is seen to here, for all workers.
 */
#include "tls/tls_session_private.h"

#include "base/limits.h"

#include <stdlib.h>

/*
 * The clock on the wall may be set back, and then what is over would be new again. A ticket notes its time by
 * the other clock, too: where the two have not gone on together since, the age of the ticket is not known.
 */
static bool is_age_known(const struct tls_session *session, const struct ticket_note *note)
{
    return llabs(tls_clocks_apart_ms(session) - note->apart_ms) <= LIMIT_EARLY_DRIFT_MS;
}

static int early_allowed(SSL *ssl, void *unused)
{
    const struct tls_session *session = tls_session_of(ssl);
    const struct tls_server *server = session->server;
    SSL_SESSION *ticket = SSL_get_session(ssl);
    uint64_t now_ms = tls_session_now_ms(session);
    struct ticket_note note;
    uint8_t random[32];

    if (!server->settings->early_data || !server->context->early || !tls_ticket_note(ticket, &note) ||
        !is_age_known(session, &note))
        return 0;
    return SSL_get_client_random(ssl, random, sizeof(random)) == sizeof(random) &&
           early_seen_note(server->context->early, random, now_ms);
}

/*
 * OpenSSL's own protection would give each ticket out of a cache of one process; with ours tickets stay what
 * they are. The callback is the default server's, the rest of the server that SNI chooses.
 */
void tls_early_set(struct tls_server *server)
{
    SSL_CTX_set_allow_early_data_cb(server->openssl, early_allowed, NULL);
    SSL_CTX_set_options(server->openssl, SSL_OP_NO_ANTI_REPLAY);
    if (server->settings->early_data)
        SSL_CTX_set_max_early_data(server->openssl, LIMIT_EARLY_DATA);
}
