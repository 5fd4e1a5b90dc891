/*
 * Checks whether a client may use a virtual server: by its certificate (`ssl_verify_client`), by the server's
 * certificate of the connection, and by early data (`ssl_early_data`).
 */
#include "server/connection.h"
#include "server/connection_internal.h"
#include "server/error_response.h"

static void log_authorization(const struct connection *connection, const char *what, const char *why)
{
    log_write_fields(connection_log(connection), LOG_INFO, &(struct log_fields){.connection = connection->number},
                     "%s%s", what, why);
}

static int check_certificate(struct request_state *request)
{
    const struct connection *connection = request->connection;
    const struct tls_session *tls = connection->wire.tls;
    int status = 0;

    if (!tls || request->server->tls.client.verify == TLS_VERIFY_OFF)
        return 0;
    if (tls_session_settings(tls)->owner != request->server) {
        /* RFC 9110 7.4: the other server requires a certificate that this handshake did not request. */
        log_authorization(connection,
                          "client attempted to request the server name different from the one that was negotiated, "
                          "and that server requires client certificates",
                          "");
        status = 421;
    } else {
        switch (tls_session_client_state(tls)) {
        case TLS_CLIENT_ACCEPTED:
            return 0;
        case TLS_CLIENT_REFUSED:
            log_authorization(connection, "client SSL certificate verify error: ", tls_session_client_fault(tls));
            status = STATUS_CERTIFICATE_BAD;
            break;
        case TLS_CLIENT_ABSENT:
            log_authorization(connection, "client sent no required SSL certificate", "");
            status = STATUS_CERTIFICATE_ABSENT;
            break;
        }
    }
    request->x->response.close_after = true; /* the client can send another certificate only on a new connection */
    return status;
}

/*
 * RFC 9110 7.4: clients share a connection of HTTP/2 between the hosts that its certificate names (RFC 9113 9.1.1). As
 * in nginx, requests of HTTP/1.1 and clients without SNI (gateways) may name any host.
 */
static int check_host(const struct request_state *request)
{
    const struct tls_session *tls = request->connection->wire.tls;
    const struct request *head = &request->x->request;

    if (!tls || head->version != HTTP_2 || tls_session_settings(tls)->owner == request->server ||
        tls_session_server_name(tls).length == 0 || tls_session_certificate_covers(tls, head->host))
        return 0;
    log_authorization(request->connection, "the certificate of the connection is not valid for the requested host", "");
    return 421;
}

/* RFC 9110 9.2.1: a replay of a safe request is harmless. */
static bool is_safe(const struct request *request)
{
    bool safe =
        request->method == METHOD_GET || request->method == METHOD_HEAD || request->method == METHOD_OPTIONS;

    return safe && request->content_length == 0;
}

/*
 * RFC 8470: sets Early-Data, so that an upstream server can respond 425. The handshake was for the server of SNI; Host
 * may select another one with the same certificate, which does not accept early data.
 */
static int check_early(struct request_state *request)
{
    struct exchange *x = request->x;

    request->early = wire_early(&request->connection->wire);
    if (!request->early)
        return 0;
    if (!is_safe(&x->request) || !request->server->tls.early_data)
        return 425;
    return headers_set(&x->request.headers, &x->arena, STR("Early-Data"), STR("1")) < 0 ? 500 : 0;
}

int connection_authorize(struct request_state *request)
{
    int status = check_certificate(request);

    if (!status)
        status = check_early(request);
    return status ? status : check_host(request);
}
