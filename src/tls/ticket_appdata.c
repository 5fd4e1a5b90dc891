/*
 * Data stored in a session: whether its client was accepted, and the clocks' difference when it was made.
 */
#include "tls/ticket_appdata.h"

#include "base/clock.h"

#include "tls/tls_session_private.h"

/* One byte, and a number in host byte order: only this machine reads it. */
enum { APPDATA_SIZE = 1 + sizeof(int64_t) };

int64_t tls_clock_offset_ms(const struct tls_session *session)
{
    struct clock clock;

    clock_read(&clock);
    return clock.wall_ms - (int64_t)tls_session_now_ms(session);
}

/* OpenSSL would use the session lifetime of the default server. */
bool tls_session_set_appdata(SSL *ssl, SSL_SESSION *made)
{
    const struct tls_session *session = tls_session_of(ssl);
    const struct tls_settings *settings = session->server->settings;
    int64_t clock_offset_ms = tls_clock_offset_ms(session);
    char packed[APPDATA_SIZE] = {tls_session_client_state(session) == TLS_CLIENT_ACCEPTED};

    if (settings->session_timeout_s)
        SSL_SESSION_set_timeout(made, (long)settings->session_timeout_s);
    if (settings->client.verify == TLS_VERIFY_OFF && !settings->early_data)
        return true;
    memcpy(packed + 1, &clock_offset_ms, sizeof(clock_offset_ms));
    return SSL_SESSION_set1_ticket_appdata(made, packed, sizeof(packed)) == 1;
}

bool tls_ticket_appdata(SSL_SESSION *resumed, struct ticket_appdata *out_appdata)
{
    void *packed = NULL;
    size_t length = 0;

    if (SSL_SESSION_get0_ticket_appdata(resumed, &packed, &length) != 1 || length != APPDATA_SIZE)
        return false;
    out_appdata->accepted = *(const char *)packed == 1;
    memcpy(&out_appdata->clock_offset_ms, (const char *)packed + 1, sizeof(out_appdata->clock_offset_ms));
    return true;
}
