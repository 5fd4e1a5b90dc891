/*
 * Whether a client may have what a server has, by the certificate that it has shown, or has not (`ssl_verify_client`).
 */
#include "server/journey.h"
#include "server/journey_steps.h"
#include "server/refuse.h"

static void say(const struct journey *journey, const char *what, const char *why)
{
    log_write(journey->worker->log, LOG_INFO, "*%llu %s%s", (unsigned long long)journey->number, what, why);
}

int journey_trust(struct visit *visit)
{
    const struct journey *journey = visit->journey;
    const struct tls_session *tls = journey->wire.tls;
    int status = 0;

    if (!tls || visit->server->tls.client.verify == TLS_VERIFY_OFF)
        return 0;
    if (tls_session_settings(tls)->owner != visit->server) {
        /* RFC 9110 7.4: that one has asked for other certificates, or none. */
        say(journey,
            "the request names another server than the connection was made for, and that one asks for "
            "certificates",
            "");
        status = 421;
    } else {
        switch (tls_session_client_state(tls)) {
        case TLS_CLIENT_ACCEPTED:
            return 0;
        case TLS_CLIENT_REFUSED:
            say(journey, "client SSL certificate verify error: ", tls_session_client_fault(tls));
            status = STATUS_CERTIFICATE_BAD;
            break;
        case TLS_CLIENT_ABSENT:
            say(journey, "client sent no required SSL certificate", "");
            status = STATUS_CERTIFICATE_ABSENT;
            break;
        }
    }
    visit->x->response.close_after = true; /* the next certificate comes with the next connection */
    return status;
}
