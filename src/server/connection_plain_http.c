/*
 * The response to plain HTTP on a TLS port. There is no session: the wire has discarded the request.
 */
#include "server/connection_internal.h"

static const char plain_to_tls[] = "HTTP/1.1 400 Bad Request\r\n"
                                   "Content-Type: text/plain; charset=utf-8\r\n"
                                   "Content-Length: 46\r\n"
                                   "Connection: close\r\n"
                                   "\r\n"
                                   "The plain HTTP request was sent to HTTPS port\n";

void connection_reject_plain_http(struct connection *connection)
{
    struct chunk chunk = {.kind = CHUNK_BYTES, .bytes = {plain_to_tls, sizeof plain_to_tls - 1}};

    log_write_fields(connection_log(connection), LOG_INFO, &(struct log_fields){.connection = connection->number},
                     "client sent plain HTTP request to HTTPS port");
    if (wire_send(&connection->wire, &chunk) < 0)
        wire_close(&connection->wire, WIRE_CLOSE_ABORT);
    else
        wire_close(&connection->wire, WIRE_CLOSE_ORDERLY);
}
