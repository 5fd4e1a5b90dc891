/*
 * Lines of the debug log. They are written with the worker's debug log, whose level is debug.
 */
#include "server/connection_debug.h"

#include "base/cidr.h"

#include <stdarg.h>

bool connection_debug_is_on(const struct worker *worker, const union proxy_address *peer)
{
    const struct conf_rows *clients = &worker->configuration->main->debug_connections;
    const struct cidr *ranges = clients->items;

    for (size_t i = 0; i < clients->count; i++) {
        if (cidr_contains(&ranges[i], &peer->any))
            return true;
    }
    return worker->log->level >= LOG_DEBUG;
}

void connection_debug_update(struct worker *worker)
{
    for (struct list *link = worker->connection_list.next; link != &worker->connection_list; link = link->next) {
        struct connection *connection = container_of(link, struct connection, link);

        connection->debug = connection_debug_is_on(worker, &connection->peer);
    }
}

void connection_debug_write(const struct connection *connection, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_vwrite_fields(connection_log(connection), LOG_DEBUG, &(struct log_fields){.connection = connection->number},
                      format, args);
    va_end(args);
}

void connection_debug_trace(void *connection, struct str text)
{
    connection_debug_write(connection, STR_FMT, STR_ARG(text));
}

void connection_debug_accepted(const struct connection *connection)
{
    struct listen_address client = {.length = sizeof connection->peer};
    char text[128];

    if (!connection->debug)
        return;
    memcpy(&client.socket, &connection->peer, sizeof connection->peer);
    connection_debug_write(connection, "accepted, client: " STR_FMT ", listen: " STR_FMT,
                           STR_ARG(listen_address_format(&client, text, sizeof text)),
                           STR_ARG(connection->endpoint->text));
}

void connection_debug_opened(const struct connection *connection)
{
    const struct tls_session *tls = connection->wire.tls;

    if (tls)
        connection_debug(connection, "handshake done: " STR_FMT ", " STR_FMT "%s", STR_ARG(tls_session_protocol(tls)),
                         STR_ARG(tls_session_cipher(tls)), tls_session_reused(tls) ? ", resumed" : "");
    connection_debug(connection, "protocol: %s", connection->session->protocol->alpn);
}

const char *connection_debug_outcome(enum outcome outcome)
{
    static const char *const names[] = {
        [OUTCOME_DECLINED] = "declined", [OUTCOME_RESPONDED] = "responded", [OUTCOME_PENDING] = "pending",
        [OUTCOME_ALLOWED] = "allowed",   [OUTCOME_INTERNAL_REDIRECT] = "internal redirect",
    };

    return names[outcome];
}

void connection_debug_finished(const struct request_state *request)
{
    const struct exchange *x = request->x;

    request_debug(request, "response %s: status %d, %llu bytes, %llu of the body, %s",
                  x->cancelled ? "aborted" : "sent", request_status(request),
                  (unsigned long long)x->response.bytes_sent, (unsigned long long)x->response.body_bytes_sent,
                  wire_path_name(request->tls_path));
}
