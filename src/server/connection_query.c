/*
 * Lists the connections of a worker, or closes one, for the control socket. Nothing is recorded for this while requests
 * are handled: each row is read from the connection when a query arrives.
 */
#include "server/connection_query.h"

#include "server/connection_internal.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

/* Copies as much of a text as fits, with a NUL. */
static void copy_text(char *into, size_t size, struct str text)
{
    snprintf(into, size, STR_FMT, STR_ARG(text));
}

static void copy_peer(char *into, size_t size, const union proxy_address *peer)
{
    struct listen_address client = {.length = sizeof(*peer)};
    char text[128];

    memcpy(&client.socket, peer, sizeof(*peer));
    copy_text(into, size, listen_address_format(&client, text, sizeof(text)));
}

void connection_row_common(struct connection_row *row, const struct endpoint *endpoint,
                           const struct virtual_server *server, const union proxy_address *peer,
                           const struct wire *wire)
{
    copy_peer(row->client, sizeof(row->client), peer);
    copy_text(row->listen, sizeof(row->listen), endpoint->text);
    copy_text(row->server, sizeof(row->server), server->name);
    row->received = wire_bytes_received(wire);
    row->sent = wire_bytes_sent(wire);
    row->tls_path = wire->transfer.path;
    if (wire->tls && wire->state != WIRE_HANDSHAKE)
        copy_text(row->tls, sizeof(row->tls), tls_session_protocol(wire->tls));
}

/*
 * Copies the path of the request target without the query component, which may have secrets. The target of a malformed
 * request may be an absolute URI with a password: it is omitted.
 */
static void copy_path(char *into, size_t size, struct str target)
{
    size_t length = 0;

    if (!str_starts(target, STR("/")) && !str_equal(target, STR("*")))
        return;
    for (size_t i = 0; i < target.length && target.data[i] != '?'; i++) {
        unsigned char c = (unsigned char)target.data[i];
        bool visible = c > ' ' && c < 0x7f;

        if (length + (visible ? 1 : 3) >= size)
            break;
        length += (size_t)snprintf(into + length, size - length, visible ? "%c" : "%%%02X", c);
    }
}

static void describe_connection(const struct connection *connection, struct connection_row *row)
{
    const struct session *session = connection->session;
    unsigned requests = 0;
    const struct exchange *x =
        session && session->protocol->current ? session->protocol->current(session, &requests) : NULL;
    const struct request_state *request = x ? request_state_of(x) : NULL;
    struct str protocol = session ? str_from(session->protocol->alpn) : STR("");
    uint32_t now_s = (uint32_t)(connection->worker->loop.clock.monotonic_ms / 1000);

    *row = (struct connection_row){.number = connection->number,
                                   .seconds = now_s - connection->opened_s,
                                   .requests = requests,
                                   .state = (uint8_t)connection_timeout_state(connection)};
    copy_text(row->protocol, sizeof(row->protocol), session && str_empty(protocol) ? STR("upgraded") : protocol);
    connection_row_common(row, connection->endpoint, request ? request->server : connection->endpoint->servers[0],
                          &connection->peer, &connection->wire);
    if (!x)
        return;
    row->tls_path = x->transfer.path;
    copy_text(row->method, sizeof(row->method), x->request.method_name);
    copy_path(row->path, sizeof(row->path), x->request.target);
}

size_t query_response_size(unsigned rows)
{
    return offsetof(struct query_response, rows) + rows * sizeof(struct connection_row);
}

/* A list that is being sent. */
struct listing {
    struct query_response *response;
    uint32_t left;                  /* rows that may follow */
    int fd;
};

/* Sends the rows collected so far. False: the socket has no room, or the other end is closed. */
static bool send_response(struct query_response *response, int fd)
{
    ssize_t sent = send(fd, response, query_response_size(response->row_count), MSG_DONTWAIT | MSG_NOSIGNAL);

    response->row_count = 0;
    if (sent >= 0)
        response->connections = 0;
    return sent >= 0;
}

static struct connection_row *next_row(const struct listing *listing)
{
    return &listing->response->rows[listing->response->row_count];
}

/* Adds next_row(), and sends the packet when it is full. */
static void add_row(struct listing *listing)
{
    listing->left--;
    if (++listing->response->row_count == QUERY_ROWS && !send_response(listing->response, listing->fd))
        listing->left = 0;
}

static bool is_listed(const struct connection *connection)
{
    return connection->wire.state != WIRE_CLOSING && !connection->endpoint->control;
}

static uint64_t count_connections(const struct worker *worker)
{
    uint64_t count = 0, number;

    for (struct list *link = worker->connection_list.next; link != &worker->connection_list; link = link->next)
        count += is_listed(container_of(link, struct connection, link));
    for (struct list *link = worker->streams.next; link != &worker->streams; link = link->next)
        count += worker->stream->find_wire(link, &number) != NULL;
    return count;
}

static void list_http(const struct worker *worker, struct listing *listing, bool waiting)
{
    for (const struct list *link = worker->connection_list.next; link != &worker->connection_list && listing->left > 0;
         link = link->next) {
        const struct connection *connection = container_of(link, struct connection, link);

        if (!is_listed(connection) || (connection_timeout_state(connection) == CONNECTION_WAITING) != waiting)
            continue;
        describe_connection(connection, next_row(listing));
        add_row(listing);
    }
}

static void list_streams(const struct worker *worker, struct listing *listing)
{
    uint64_t number;

    for (struct list *link = worker->streams.next; link != &worker->streams && listing->left > 0; link = link->next) {
        if (!worker->stream->find_wire(link, &number))
            continue;
        worker->stream->describe(link, next_row(listing));
        add_row(listing);
    }
}

/* Idle connections come last, because rows may be omitted. */
static void list_connections(const struct worker *worker, struct query_response *response, uint32_t rows, int fd)
{
    struct listing listing = {response, rows, fd};

    response->connections = count_connections(worker);
    list_http(worker, &listing, false);
    list_streams(worker, &listing);
    list_http(worker, &listing, true);
}

/* Returns the open wire of a connection; NULL: this worker does not have the connection. */
static struct wire *find_wire(struct worker *worker, uint64_t number)
{
    for (struct list *link = worker->connection_list.next; link != &worker->connection_list; link = link->next) {
        struct connection *connection = container_of(link, struct connection, link);

        if (connection->number == number && is_listed(connection))
            return &connection->wire;
    }
    for (struct list *link = worker->streams.next; link != &worker->streams; link = link->next) {
        uint64_t found;
        struct wire *wire = worker->stream->find_wire(link, &found);

        if (wire && found == number)
            return wire;
    }
    return NULL;
}

static bool close_connection(struct worker *worker, uint64_t number)
{
    struct wire *wire = find_wire(worker, number);

    if (!wire)
        return false;
    log_write_fields(worker->log, LOG_NOTICE, &(struct log_fields){.connection = number},
                     "control: the connection is closed");
    wire_close(wire, WIRE_CLOSE_BROKEN); /* a FIN would mark the end of some responses */
    return true;
}

void connection_query_respond(struct worker *worker, uint64_t number, uint32_t rows, int fd)
{
    struct query_response response = {.pid = (uint64_t)getpid()};

    if (number > 0)
        response.closed = close_connection(worker, number);
    else
        list_connections(worker, &response, rows, fd);
    (void)send_response(&response, fd);
    close(fd);
}

static bool has_end(const char *text, size_t size)
{
    return strnlen(text, size) < size;
}

static bool row_valid(const struct connection_row *row)
{
    return row->state < CONNECTION_STATES && row->tls_path < PATH_COUNT &&
           has_end(row->protocol, sizeof(row->protocol)) && has_end(row->tls, sizeof(row->tls)) &&
           has_end(row->client, sizeof(row->client)) && has_end(row->listen, sizeof(row->listen)) &&
           has_end(row->server, sizeof(row->server)) && has_end(row->method, sizeof(row->method)) &&
           has_end(row->path, sizeof(row->path));
}

bool query_response_valid(const struct query_response *response, size_t length)
{
    if (length < query_response_size(0) || response->row_count > QUERY_ROWS || response->closed > 1 ||
        length != query_response_size(response->row_count))
        return false;
    for (unsigned i = 0; i < response->row_count; i++) {
        if (!row_valid(&response->rows[i]))
            return false;
    }
    return true;
}
