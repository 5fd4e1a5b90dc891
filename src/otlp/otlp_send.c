/*
 * Connects unless a connection is open, sends head and body, and reads the response.
 */
#include "otlp/otlp_send.h"

#include "base/buffer.h"
#include "base/limits.h"
#include "build_options.h"

#include <errno.h>

enum { READ_BYTES = 4096 };

static int write_all(struct otlp_connection *connection, struct str bytes)
{
    return connection->tls.session ? otlp_tls_write(&connection->tls, bytes)
                                   : otlp_socket_write(&connection->socket, bytes);
}

static ssize_t read_some(struct otlp_connection *connection, char *into, size_t size)
{
    return connection->tls.session ? otlp_tls_read(&connection->tls, into, size)
                                   : otlp_socket_read(&connection->socket, into, size);
}

/* After the head, a failure ends the connection, but not the attempt: the status is known. */
static int read_response(struct otlp_connection *connection, struct otlp_response_reader *reader)
{
    char bytes[READ_BYTES];
    int result = 0;

    while (result == 0) {
        ssize_t received = read_some(connection, bytes, sizeof(bytes));

        if (received < 0)
            return reader->response.status > 0 ? 0 : (int)received;
        result = otlp_response_read(reader, str_of(bytes, (size_t)received));
    }
    return result < 0 ? result : 0;
}

/* *out_answered: the collector has begun to respond. */
static int exchange_messages(struct otlp_connection *connection, struct str head, struct str body,
                             struct otlp_response *out_response, bool *out_answered)
{
    struct otlp_response_reader reader;
    int sent = write_all(connection, head), error;

    if (sent == 0)
        sent = write_all(connection, body);
    error = sent;
    otlp_response_init(&reader);
    /* A collector may respond before it has read the request: its response is read then, too. */
    if (sent == 0 || sent == -EPIPE || sent == -ECONNRESET) {
        int received = read_response(connection, &reader);

        error = received == 0 || sent == 0 ? received : sent;
    }
    *out_answered = reader.received > 0;
    reader.response.keepalive &= sent == 0;
    if (error == 0)
        *out_response = reader.response;
    otlp_response_finish(&reader);
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
    return error < 0 ? error : buffer_append(head, STR("\r\n"));
}

static int open_connection(struct otlp_connection *connection, struct otlp_events *events, const struct otlp *otlp,
                           uint64_t deadline_ms)
{
    const struct otlp_endpoint *endpoint = &otlp->endpoint;
    int error;

    *connection = (struct otlp_connection){0};
    error = otlp_socket_connect(events, endpoint, deadline_ms, &connection->socket);
    if (error < 0)
        return error;
    connection->open = true;
    if (!endpoint->tls)
        return 0;
    return otlp_tls_connect(&connection->tls, &connection->socket, otlp->tls, endpoint->host);
}

void otlp_connection_close(struct otlp_connection *connection)
{
    if (!connection->open)
        return;
    connection->open = false;
    otlp_tls_finish(&connection->tls);
    otlp_socket_close(&connection->socket);
}

void otlp_connection_check(struct otlp_connection *connection)
{
    bool quiet = connection->open && otlp_socket_is_quiet(&connection->socket);

    if (quiet && connection->tls.session)
        quiet = otlp_tls_is_quiet(&connection->tls);
    if (!quiet)
        otlp_connection_close(connection);
}

/* The collector may close an open connection while the request is on its way (RFC 9112 9.5). */
static bool may_repeat(int error, bool answered)
{
    return error < 0 && !answered && error != -ETIMEDOUT && error != -ENOMEM;
}

/* Exchanges the messages on the open connection or a new one. */
static int send_messages(struct otlp_connection *connection, struct otlp_events *events, const struct otlp *otlp,
                         struct str head, struct str body, struct otlp_response *out_response, const char **out_fault)
{
    uint64_t deadline_ms = otlp_now_ms() + LIMIT_OTLP_SEND_MS;
    bool reused, answered = false;
    int error;

    otlp_connection_check(connection);
    do {
        reused = connection->open;
        error = reused ? 0 : open_connection(connection, events, otlp, deadline_ms);
        connection->socket.deadline_ms = deadline_ms;
        if (error == 0)
            error = exchange_messages(connection, head, body, out_response, &answered);
        *out_fault = connection->tls.fault;
        if (error < 0 || !out_response->keepalive)
            otlp_connection_close(connection);
    } while (reused && may_repeat(error, answered));
    return error;
}

int otlp_send(struct otlp_connection *connection, struct otlp_events *events, const struct otlp *otlp,
              struct str body, struct otlp_response *out_response, const char **out_fault)
{
    struct buffer head;
    int error;

    *out_fault = NULL;
    buffer_init(&head, 2 * LIMIT_OTLP_URL + LIMIT_OTLP_FIELDS + 512);
    error = write_head(otlp, body.length, &head);
    if (error == 0)
        error = send_messages(connection, events, otlp, buffer_str(&head), body, out_response, out_fault);
    buffer_finish(&head);
    return error;
}
