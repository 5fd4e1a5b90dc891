/*
 * Another protocol after 101. The connection goes over to the session of a module, and the exchange ends: its
 * memory is given back at once, but for what its line in the access log still needs when the connection ends,
 * perhaps hours later. What is settled of that line is written down now; for the rest a small exchange is made anew
 * then.
 */
#include "log/access_log.h"
#include "server/connection_internal.h"

#include <stdlib.h>

/* What is left of an exchange. */
struct legacy {
    struct exchange *held;          /* all of it, where a module waits for its end; else NULL */
    struct access_log_rest *lines;  /* owned */
    const struct virtual_server *server;
    const struct location *location;
    uint64_t started_us;
    uint64_t request_bytes, head_bytes; /* of the request, and of the answer's head */
    int status;
};

void exchange_succeed(struct exchange *x, struct successor *successor)
{
    struct request_state *request = request_state_of(x);

    request->successor = successor;
    list_remove(&request->resumed);
    list_push(&request->worker->resumed, &request->resumed);
}

/* A module other than that which answered has kept something: it is to be told of the end when that has come. */
static bool is_awaited(const struct request_state *request)
{
    uint64_t others = request->location->finishing & ~(UINT64_C(1) << (request->next_module - 1));

    for (; others != 0; others &= others - 1) {
        if (exchange_state_found(request->x, module_table[__builtin_ctzll(others)]))
            return true;
    }
    return false;
}

/* NULL: out of memory. Then it is counted now, and its line in the log as one that was dropped. */
static struct legacy *leave(struct request_state *request)
{
    struct exchange *x = request->x;
    struct legacy *legacy = calloc(1, sizeof(*legacy));

    if (!legacy || access_log_settle(&request->location->site->access_logs, x, &x->arena, &legacy->lines) < 0) {
        request_count(request->worker, request_status(request), x->started_us);
        request->worker->counters->log_lines_dropped++;
        free(legacy);
        return NULL;
    }
    legacy->server = request->server;
    legacy->location = request->location;
    legacy->started_us = x->started_us;
    legacy->request_bytes = x->request.bytes;
    legacy->head_bytes = x->response.bytes_sent;
    legacy->status = request_status(request);
    if (is_awaited(request))
        legacy->held = x;
    return legacy;
}

void connection_upgrade(struct request_state *request)
{
    struct connection *connection = request->connection;
    struct successor *successor = request->successor;
    struct session *former = connection->session;

    successor->connection = connection;
    successor->legacy = leave(request);
    connection->session = &successor->session;
    request->succeeded = true;
    former->protocol->close(former);
    if (connection->wire.peer_ended)
        connection->session->protocol->signal(connection->session, SESSION_PEER_CLOSED);
    connection_wake(connection);
}

bool connection_upgraded(struct request_state *request)
{
    struct successor *successor = request->successor;

    if (!successor)
        return false;
    if (!request->succeeded) { /* the connection ends before */
        successor->session.protocol->close(&successor->session);
        return false;
    }
    request->x->cancelled = false;
    if (successor->legacy && successor->legacy->held)
        exchange_hold(request->x);
    else
        request_release(request);
    return true;
}

void successor_wake(struct successor *successor)
{
    if (successor->connection)
        connection_wake(successor->connection);
}

/* An exchange that has just what late variables ask for. NULL: out of memory. */
static struct exchange *revive(const struct legacy *legacy, struct connection *connection)
{
    struct exchange *x = exchange_create(&connection->worker->arenas, sizeof(*x));
    struct request_state *request = x ? request_state_create(x, connection, connection->worker) : NULL;

    if (!request) {
        exchange_release(x);
        return NULL;
    }
    request->server = legacy->server;
    request->location = legacy->location;
    x->settings = &legacy->location->session;
    x->started_us = legacy->started_us;
    x->response.status = legacy->status;
    x->response.head_sent = true;
    return x;
}

static void tell(struct successor *successor, struct exchange *x, bool whole)
{
    const struct legacy *legacy = successor->legacy;
    struct wire_transfer transfer = wire_transfer_end(&successor->connection->wire);
    struct request_state *request = request_state_of(x);

    request->tls_path = transfer.path;
    request->tls_reason = transfer.reason;
    request->zero_copy = transfer.zero_copy;
    x->cancelled = !whole;
    x->request.bytes = legacy->request_bytes + successor->received;
    x->response.bytes_sent = legacy->head_bytes + successor->sent;
    x->response.body_bytes_sent = successor->sent;
    successor->restore(successor, x);
    if (x == legacy->held)
        request_release(request);
    access_log_write_rest(request->worker->access_log, legacy->lines, x, &x->arena);
}

void successor_end(struct successor *successor, bool whole)
{
    struct legacy *legacy = successor->legacy;
    struct exchange *x;

    if (!legacy)
        return;
    x = legacy->held ? legacy->held : revive(legacy, successor->connection);
    request_count(successor->connection->worker, legacy->status, legacy->started_us);
    if (x)
        tell(successor, x, whole);
    else
        successor->connection->worker->counters->log_lines_dropped++;
    exchange_release(x);
    successor->legacy = NULL;
    access_log_rest_free(legacy->lines);
    free(legacy);
}

void successor_say(const struct successor *successor, enum log_level level, const char *what, int error,
                   struct str server)
{
    if (!successor->connection)
        return;
    log_write(successor->connection->worker->log, level,
              "*%llu %s (%d: %s) while passing on what follows 101, upstream: \"" STR_FMT "\"",
              (unsigned long long)successor->connection->number, what, -error, strerror(-error),
              STR_ARG(server));
}
