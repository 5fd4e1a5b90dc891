/*
 * Another protocol after 101. A module's session takes over the connection, and the exchange ends: its memory is freed
 * except for the data of its access log line, which is written when the connection closes. Variables that are final at
 * the upgrade are formatted then; late variables are evaluated at the close, with a small new exchange.
 */
#include "log/access_log.h"
#include "server/connection_internal.h"

#include <stdlib.h>

/* The data of an exchange that is kept after the upgrade. */
struct upgraded_exchange {
    struct exchange *retained;      /* the exchange itself if a module waits for its end, else NULL */
    struct access_log_pending *lines;  /* owned */
    const struct virtual_server *server;
    const struct location *location;
    uint64_t started_us;
    uint64_t request_bytes, head_bytes; /* of the request, and of the response head */
    int status;
};

void exchange_upgrade(struct exchange *x, struct upgraded_session *upgraded)
{
    struct request_state *request = request_state_of(x);

    request->upgraded = upgraded;
    list_remove(&request->resumed);
    list_push(&request->worker->resumed, &request->resumed);
}

/* Returns true if a module other than the responding one keeps state: its `finish` runs at the close. */
static bool module_awaits_end(const struct request_state *request)
{
    uint64_t others = request->location->finishing & ~(UINT64_C(1) << (request->next_module - 1));

    for (; others != 0; others &= others - 1) {
        if (exchange_state_found(request->x, module_table[__builtin_ctzll(others)]))
            return true;
    }
    return false;
}

/* Returns NULL when out of memory: the request is counted now, and its log line as dropped. */
static struct upgraded_exchange *save_for_log(struct request_state *request)
{
    struct exchange *x = request->x;
    struct upgraded_exchange *ended = calloc(1, sizeof(*ended));

    if (!ended || access_log_evaluate(&request->location->site->access_logs, x, &x->arena, &ended->lines) < 0) {
        request_count(request);
        request->worker->counters->log_lines_dropped++;
        free(ended);
        return NULL;
    }
    ended->server = request->server;
    ended->location = request->location;
    ended->started_us = x->started_us;
    ended->request_bytes = x->request.bytes;
    ended->head_bytes = x->response.bytes_sent;
    ended->status = request_status(request);
    if (module_awaits_end(request))
        ended->retained = x;
    return ended;
}

void connection_upgrade(struct request_state *request)
{
    struct connection *connection = request->connection;
    struct upgraded_session *upgraded = request->upgraded;
    struct session *former = connection->session;

    upgraded->connection = connection;
    upgraded->ended = save_for_log(request);
    connection->session = &upgraded->session;
    request->upgrade_done = true;
    connection->wire.transfer = request->x->transfer; /* the upgraded session continues it */
    former->protocol->close(former);
    if (connection->wire.peer_ended)
        connection->session->protocol->signal(connection->session, SESSION_PEER_CLOSED);
    connection_wake(connection);
}

bool connection_upgraded(struct request_state *request)
{
    struct upgraded_session *upgraded = request->upgraded;

    if (!upgraded)
        return false;
    if (!request->upgrade_done) { /* the connection closed before the upgrade */
        upgraded->session.protocol->close(&upgraded->session);
        return false;
    }
    request->x->cancelled = false;
    if (upgraded->ended && upgraded->ended->retained)
        exchange_hold(request->x);
    else
        request_release(request);
    return true;
}

void upgraded_wake(struct upgraded_session *upgraded)
{
    if (upgraded->connection)
        connection_wake(upgraded->connection);
}

/* Creates an exchange with the data that late variables read. NULL: out of memory. */
static struct exchange *restore_exchange(const struct upgraded_exchange *ended, struct connection *connection)
{
    struct exchange *x = exchange_create(&connection->worker->arenas, sizeof(*x));
    struct request_state *request = x ? request_state_create(x, connection, connection->worker) : NULL;

    if (!request) {
        exchange_release(x);
        return NULL;
    }
    request->server = ended->server;
    request->location = ended->location;
    x->settings = &ended->location->session;
    x->started_us = ended->started_us;
    x->response.status = ended->status;
    x->response.head_sent = true;
    return x;
}

static void write_access_log(struct upgraded_session *upgraded, struct exchange *x, bool whole)
{
    const struct upgraded_exchange *ended = upgraded->ended;
    struct transfer transfer = wire_transfer_end(&upgraded->connection->wire, NULL);
    struct request_state *request = request_state_of(x);

    request->tls_path = transfer.path;
    request->tls_reason = transfer.reason;
    request->zero_copy = transfer.zero_copy;
    x->cancelled = !whole;
    x->request.bytes = ended->request_bytes + upgraded->received;
    x->response.bytes_sent = ended->head_bytes + upgraded->sent;
    x->response.body_bytes_sent = upgraded->sent;
    upgraded->restore(upgraded, x);
    if (x == ended->retained)
        request_release(request);
    access_log_write_pending(request->worker->access_log, ended->lines, x, &x->arena);
}

void upgraded_end(struct upgraded_session *upgraded, bool whole)
{
    struct upgraded_exchange *ended = upgraded->ended;
    struct exchange *x;

    if (!ended)
        return;
    x = ended->retained ? ended->retained : restore_exchange(ended, upgraded->connection);
    request_count_values(upgraded->connection->worker, ended->location->zones,
                         (struct status_zone_request){.status = ended->status,
                                                      .sent = ended->head_bytes + upgraded->sent,
                                                      .received = ended->request_bytes + upgraded->received},
                         ended->started_us);
    if (x)
        write_access_log(upgraded, x, whole);
    else
        upgraded->connection->worker->counters->log_lines_dropped++;
    exchange_release(x);
    upgraded->ended = NULL;
    access_log_pending_free(ended->lines);
    free(ended);
}

void upgraded_log(const struct upgraded_session *upgraded, enum log_level level, const char *what, int error,
                  struct str server)
{
    if (!upgraded->connection)
        return;
    log_write_fields(connection_log(upgraded->connection), level,
                     &(struct log_fields){.connection = upgraded->connection->number, .upstream = server},
                     "%s (%d: %s) while proxying upgraded connection", what, -error, strerror(-error));
}
