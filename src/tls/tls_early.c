/*
 * Early data (0-RTT, RFC 8446 2.3): accepted or rejected per connection. OpenSSL checks the ticket's age, which
 * bounds the time for a replay; the replay window shared by all workers rejects replays within that time.
 */
#include "tls/tls_session_private.h"

#include "base/limits.h"

#include <stdlib.h>

/*
 * True if wall clock and monotonic clock, both recorded in the ticket, have advanced equally since. After the wall
 * clock was set back, expired tickets would appear valid.
 */
static bool is_age_known(const struct tls_session *session, const struct ticket_appdata *appdata)
{
    return llabs(tls_clock_offset_ms(session) - appdata->clock_offset_ms) <= LIMIT_EARLY_DRIFT_MS;
}

static int early_allowed(SSL *ssl, void *unused)
{
    const struct tls_session *session = tls_session_of(ssl);
    const struct tls_server *server = session->server;
    SSL_SESSION *ticket = SSL_get_session(ssl);
    uint64_t now_ms = tls_session_now_ms(session);
    struct ticket_appdata appdata;
    uint8_t random[32];

    if (!server->settings->early_data || !server->context->replay_window || !tls_ticket_appdata(ticket, &appdata) ||
        !is_age_known(session, &appdata))
        return 0;
    return SSL_get_client_random(ssl, random, sizeof(random)) == sizeof(random) &&
           replay_window_add(server->context->replay_window, random, now_ms);
}

/*
 * Turns off OpenSSL's own anti-replay, which would replace stateless tickets by entries of a per-process cache. The
 * callback is that of the default server, the other settings are those of the server that SNI selected.
 */
void tls_early_set(struct tls_server *server)
{
    SSL_CTX_set_allow_early_data_cb(server->openssl, early_allowed, NULL);
    SSL_CTX_set_options(server->openssl, SSL_OP_NO_ANTI_REPLAY);
    if (server->settings->early_data)
        SSL_CTX_set_max_early_data(server->openssl, LIMIT_EARLY_DATA);
}
