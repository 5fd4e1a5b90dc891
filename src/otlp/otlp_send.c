/*
 * Connects, sends head and body, and reads the response.
 */
#include "otlp/otlp_send.h"

#include "base/buffer.h"
#include "base/limits.h"
#include "build_options.h"
#include "otlp/otlp_socket.h"
#include "otlp/otlp_tls.h"

#include <errno.h>
#include <stdlib.h>

struct connection {
    struct otlp_socket socket;
    struct otlp_tls tls;            /* zeroed: plain */
};

static int write_all(struct connection *connection, struct str bytes)
{
    return connection->tls.session ? otlp_tls_write(&connection->tls, bytes)
                                   : otlp_socket_write(&connection->socket, bytes);
}

static ssize_t read_some(struct connection *connection, char *into, size_t size)
{
    return connection->tls.session ? otlp_tls_read(&connection->tls, into, size)
                                   : otlp_socket_read(&connection->socket, into, size);
}

/* `room` has LIMIT_OTLP_RESPONSE bytes. */
static int read_response(struct connection *connection, char *room, struct otlp_response *out_response)
{
    size_t length = 0;
    int result = 0;

    while (result == 0) {
        ssize_t received = read_some(connection, room + length, LIMIT_OTLP_RESPONSE - length);

        if (received < 0)
            return (int)received;
        length += (size_t)received;
        result = otlp_response_parse(str_of(room, length), received == 0, out_response);
    }
    return result < 0 ? result : 0;
}

static int exchange_messages(struct connection *connection, struct str head, struct str body,
                             struct otlp_response *out_response)
{
    char *room = malloc(LIMIT_OTLP_RESPONSE);
    int error = room ? write_all(connection, head) : -ENOMEM;

    if (error == 0)
        error = write_all(connection, body);
    /* A collector may respond before it has read the request: its response is read then, too. */
    if (error == 0 || error == -EPIPE || error == -ECONNRESET) {
        int received = read_response(connection, room, out_response);

        error = received == 0 || error == 0 ? received : error;
    }
    free(room);
    return error;
}

static int write_head(const struct otlp *otlp, size_t body_length, struct buffer *head)
{
    const struct otlp_endpoint *endpoint = &otlp->endpoint;
    int error = buffer_printf(head,
                              "POST " STR_FMT " HTTP/1.1\r\nHost: " STR_FMT "\r\nUser-Agent: sluice/" SLUICE_VERSION
                              "\r\nContent-Type: application/x-protobuf\r\nContent-Length: %zu\r\n%s",
                              STR_ARG(endpoint->path), STR_ARG(endpoint->authority), body_length,
                              otlp->gzip ? "Content-Encoding: gzip\r\n" : "");

    for (size_t i = 0; i < otlp->field_count && error == 0; i++)
        error = buffer_printf(head, STR_FMT ": " STR_FMT "\r\n", STR_ARG(otlp->fields[i].name),
                              STR_ARG(otlp->fields[i].value));
    return error < 0 ? error : buffer_append(head, STR("Connection: close\r\n\r\n"));
}

/* Connects to the endpoint, and exchanges the messages. */
static int send_messages(struct otlp_events *events, const struct otlp *otlp, struct str head, struct str body,
                         struct otlp_response *out_response, const char **out_fault)
{
    const struct otlp_endpoint *endpoint = &otlp->endpoint;
    struct connection connection = {0};
    int error = otlp_socket_connect(events, endpoint, otlp_now_ms() + LIMIT_OTLP_SEND_MS, &connection.socket);

    if (error < 0)
        return error;
    if (endpoint->tls)
        error = otlp_tls_connect(&connection.tls, &connection.socket, otlp->tls, endpoint->host);
    if (error == 0)
        error = exchange_messages(&connection, head, body, out_response);
    *out_fault = connection.tls.fault;
    otlp_tls_finish(&connection.tls);
    otlp_socket_close(&connection.socket);
    return error;
}

int otlp_send(struct otlp_events *events, const struct otlp *otlp, struct str body,
              struct otlp_response *out_response, const char **out_fault)
{
    struct buffer head;
    int error;

    *out_fault = NULL;
    buffer_init(&head, 2 * LIMIT_OTLP_URL + LIMIT_OTLP_FIELDS + 512);
    error = write_head(otlp, body.length, &head);
    if (error == 0)
        error = send_messages(events, otlp, buffer_str(&head), body, out_response, out_fault);
    buffer_finish(&head);
    return error;
}
