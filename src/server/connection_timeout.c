/*
 * The one timer of a connection. The phase determines the timeout; the deadline moves lazily, so a request needs no
 * timer operation. There is no timeout while a module produces a response: modules have timers of their own.
 */
#include "server/connection_internal.h"

#include "base/limits.h"

#define CHECK_MS 1000

enum phase {
    PHASE_HANDSHAKE,
    PHASE_FIRST,
    PHASE_IDLE,
    PHASE_HEAD,
    PHASE_BODY,
    PHASE_WAITING,
    PHASE_SENDING,
    PHASE_BLOCKED,
    PHASE_CLOSING,
    PHASE_LINGERING
};

static enum phase phase_of(struct connection *connection)
{
    if (wire_lingering(&connection->wire))
        return wire_unacknowledged(&connection->wire) ? PHASE_SENDING : PHASE_LINGERING;
    if (!connection->session)
        return connection->wire.state == WIRE_HANDSHAKE ? PHASE_HANDSHAKE : PHASE_SENDING;
    if (!wire_drained(&connection->wire))
        return PHASE_SENDING;
    switch (connection->session->protocol->phase(connection->session)) {
    case SESSION_IDLE:
        return connection->requests ? PHASE_IDLE : PHASE_FIRST;
    case SESSION_HEAD:
        return PHASE_HEAD;
    case SESSION_BODY:
        return PHASE_BODY;
    case SESSION_WAITING:
    case SESSION_SENDING: /* no output is pending: the response's producer is slow */
        return PHASE_WAITING;
    case SESSION_BLOCKED:
        return PHASE_BLOCKED;
    case SESSION_CLOSING:
        return PHASE_CLOSING;
    case SESSION_OVER:
        break;
    }
    return PHASE_SENDING;
}

/* True if the session measures the timeouts of its streams, which the events of other streams must not extend. */
static bool session_times_streams(const struct connection *connection)
{
    return connection->session && connection->session->protocol->deadline;
}

static uint64_t timeout_ms(const struct connection *connection, enum phase phase)
{
    const struct core_site *site = connection->location->site;

    if (session_times_streams(connection) && (phase == PHASE_HEAD || phase == PHASE_BODY || phase == PHASE_BLOCKED))
        return UINT64_MAX;
    switch (phase) {
    case PHASE_FIRST:
        /* During shutdown an unused connection must not delay the exit of the worker. */
        if (connection->worker->draining && !connection->worker->retiring)
            return connection->location->wire.lingering_ms;
        return site->client_header_timeout_ms;
    case PHASE_HANDSHAKE:
    case PHASE_HEAD:
        return site->client_header_timeout_ms;
    case PHASE_IDLE:
        return site->keepalive_timeout_ms;
    case PHASE_BODY:
        return site->client_body_timeout_ms;
    case PHASE_SENDING:
    case PHASE_BLOCKED:
        return site->send_timeout_ms;
    case PHASE_LINGERING:
        return connection->location->wire.lingering_ms;
    case PHASE_CLOSING: /* the session's deadline */
    case PHASE_WAITING:
        break;
    }
    return UINT64_MAX;
}

/*
 * Timeouts between two reads or two writes count from the last one; all others from the start of the phase. Reads do
 * not count while writing: a peer can send TLS records without application data endlessly.
 */
static bool progress_extends(enum phase phase)
{
    return phase == PHASE_BODY || phase == PHASE_SENDING || phase == PHASE_LINGERING;
}

static uint64_t progress_of(const struct wire *wire, enum phase phase)
{
    return phase == PHASE_SENDING ? wire_bytes_sent(wire) : wire_bytes_received(wire);
}

static const uint8_t states[] = {
    [PHASE_HANDSHAKE] = CONNECTION_HANDSHAKE, [PHASE_FIRST] = CONNECTION_WAITING,
    [PHASE_IDLE] = CONNECTION_WAITING,        [PHASE_HEAD] = CONNECTION_READING,
    [PHASE_BODY] = CONNECTION_READING,        [PHASE_WAITING] = CONNECTION_WRITING,
    [PHASE_SENDING] = CONNECTION_WRITING,     [PHASE_LINGERING] = CONNECTION_WRITING,
    [PHASE_BLOCKED] = CONNECTION_WRITING,     [PHASE_CLOSING] = CONNECTION_WAITING,
};

enum connection_state connection_timeout_state(const struct connection *connection)
{
    return (enum connection_state)states[connection->phase];
}

static uint64_t *state_counter(struct connection *connection, enum phase phase)
{
    return &connection->worker->counters->connections[states[phase]];
}

static bool is_rate_measured(const struct connection *connection, enum phase phase)
{
    return phase == PHASE_SENDING || (phase == PHASE_BODY && !session_times_streams(connection));
}

static void begin_window(struct connection *connection, enum phase phase, bool exact)
{
    connection->min_rate.mark = exact ? wire_bytes_confirmed(&connection->wire) : progress_of(&connection->wire, phase);
    connection->min_rate.phase = (uint8_t)phase;
    connection->min_rate.exact = exact;
    connection->min_rate.slow = false;
    connection->min_rate.ms = 0;
}

/*
 * Ends a measuring window. The kernel accepts much output at once that a client then receives slowly: a client that
 * seems too slow is measured for another window by the bytes that TCP reports as acknowledged.
 */
static void end_window(struct connection *connection, enum phase phase)
{
    uint64_t now = connection->min_rate.exact ? wire_bytes_confirmed(&connection->wire)
                                          : progress_of(&connection->wire, phase);
    uint64_t needed = connection->location->site->client_min_rate * connection->min_rate.ms / 1000;

    if (now >= connection->min_rate.mark + needed)
        begin_window(connection, phase, false);
    else if (phase == PHASE_SENDING && !connection->min_rate.exact)
        begin_window(connection, phase, true);
    else
        connection->min_rate.slow = true;
}

/* Counts only time spent waiting for the client, summed over one request body or one response. */
static void measure_rate(struct connection *connection, enum phase phase, uint64_t now)
{
    if (is_rate_measured(connection, (enum phase)connection->phase) && connection->phase == connection->min_rate.phase)
        connection->min_rate.ms += (uint32_t)now - connection->min_rate.checked_ms;
    connection->min_rate.checked_ms = (uint32_t)now;
    if (connection->location->site->client_min_rate == 0 || !is_rate_measured(connection, phase))
        connection->min_rate.slow = false;
    else if (phase != connection->min_rate.phase || connection->requests != connection->requests_seen)
        begin_window(connection, phase, false);
    else if (connection->min_rate.ms >= LIMIT_SLOW_WINDOW_MS)
        end_window(connection, phase);
}

static void log_slow(struct connection *connection)
{
    log_write_fields(connection_log(connection), LOG_INFO, &(struct log_fields){.connection = connection->number},
                     "the client %s less than %llu bytes a second (client_min_rate) for %u s: the connection is closed",
                     connection->phase == PHASE_BODY ? "sends" : "takes",
                     (unsigned long long)connection->location->site->client_min_rate, LIMIT_SLOW_WINDOW_MS / 1000);
}

/* Bounds each wait for more discarded input (lingering_timeout) and their sum (lingering_time). */
static uint64_t lingering_deadline(const struct connection *connection, uint64_t timeout)
{
    uint64_t now = connection->worker->loop.clock.monotonic_ms;
    uint64_t began = now - (uint32_t)((uint32_t)now - connection->lingering_since_ms);
    uint64_t last = began + connection->location->site->lingering_time_ms;
    uint64_t next = connection->waiting_since_ms + timeout;

    return next < last ? next : last;
}

/* Stores the current phase and its start. Returns the deadline of the phase. */
static uint64_t phase_deadline(struct connection *connection)
{
    uint64_t now = connection->worker->loop.clock.monotonic_ms;
    enum phase phase = phase_of(connection);
    uint64_t progress = progress_of(&connection->wire, phase);
    uint64_t timeout;

    measure_rate(connection, phase, now);
    if (phase != connection->phase) {
        --*state_counter(connection, connection->phase);
        ++*state_counter(connection, phase);
        if (phase == PHASE_LINGERING)
            connection->lingering_since_ms = (uint32_t)now;
    }
    if (phase != connection->phase || connection->requests != connection->requests_seen ||
        (progress_extends(phase) && progress != connection->progress)) {
        connection->phase = (uint8_t)phase;
        connection->requests_seen = connection->requests;
        connection->progress = progress;
        connection->waiting_since_ms = now;
    }
    timeout = timeout_ms(connection, phase);
    if (phase == PHASE_LINGERING)
        return lingering_deadline(connection, timeout);
    if (connection->min_rate.slow)
        return now;
    return timeout > UINT64_MAX - connection->waiting_since_ms ? UINT64_MAX
                                                             : connection->waiting_since_ms + timeout;
}

/* The deadline of streams, while the connection is open. */
static uint64_t stream_deadline(const struct connection *connection)
{
    bool open = connection->wire.state == WIRE_OPEN && session_times_streams(connection);

    return open ? connection->session->protocol->deadline(connection->session) : UINT64_MAX;
}

/* Returns true if the session was signalled. */
static bool deadline_passed(struct connection *connection)
{
    connection->waiting_since_ms = connection->worker->loop.clock.monotonic_ms;
    switch ((enum phase)connection->phase) {
    case PHASE_HEAD:
    case PHASE_BODY:
        connection->session->protocol->signal(connection->session, SESSION_TIMEOUT);
        if (!connection->location->wire.reset_timed_out)
            return true; /* the session sends 408 */
        wire_close(&connection->wire, WIRE_CLOSE_TIMEOUT);
        break;
    case PHASE_FIRST:
    case PHASE_IDLE:
    case PHASE_BLOCKED:
        connection->session->protocol->signal(connection->session, SESSION_TIMEOUT);
        return true;
    case PHASE_HANDSHAKE:
    case PHASE_SENDING:
        wire_close(&connection->wire, WIRE_CLOSE_TIMEOUT);
        break;
    case PHASE_LINGERING: /* FIN is already sent */
        wire_close(&connection->wire, WIRE_CLOSE_ABORT);
        break;
    case PHASE_CLOSING:
    case PHASE_WAITING:
        break;
    }
    return false;
}

bool connection_timeout_passed(struct connection *connection)
{
    uint64_t now = connection->worker->loop.clock.monotonic_ms;
    bool signalled = false;

    if (connection->closed) {
        connection_destroy(connection);
        return false;
    }
    if (stream_deadline(connection) <= now) {
        connection->session->protocol->signal(connection->session, SESSION_DEADLINE);
        return true;
    }
    if (phase_deadline(connection) <= now) {
        if (connection->min_rate.slow)
            log_slow(connection);
        signalled = deadline_passed(connection);
    }
    if (!signalled && op_idle(&connection->timer))
        connection_timeout_update(connection);
    return signalled;
}

void connection_timeout_count_writing(struct connection *connection)
{
    enum phase phase = (enum phase)connection->phase;

    /* A detached subrequest's connection is not counted and has no session. */
    if (!connection->session || (phase != PHASE_FIRST && phase != PHASE_IDLE && phase != PHASE_HEAD))
        return;
    --*state_counter(connection, phase);
    ++*state_counter(connection, PHASE_WAITING);
    connection->phase = PHASE_WAITING;
}

void connection_timeout_start(struct connection *connection)
{
    connection->phase = (uint8_t)phase_of(connection);
    connection->waiting_since_ms = connection->worker->loop.clock.monotonic_ms;
    ++*state_counter(connection, connection->phase);
    connection_timeout_update(connection);
}

/*
 * No event reports that bytes were acknowledged or a rate fell: checks often enough that a close is only slightly
 * late.
 */
static uint64_t next_check_ms(const struct connection *connection, uint64_t deadline)
{
    uint64_t earliest = connection->location->wire.lingering_ms;

    if (earliest < CHECK_MS)
        earliest = CHECK_MS;
    earliest += connection->worker->loop.clock.monotonic_ms;
    return deadline < earliest ? deadline : earliest;
}

void connection_timeout_update(struct connection *connection)
{
    uint64_t deadline = phase_deadline(connection);
    uint64_t streams = stream_deadline(connection);

    if (connection->closed)
        return;
    if (streams < deadline)
        deadline = streams;
    if (connection->wire.state == WIRE_DRAINING || is_rate_measured(connection, (enum phase)connection->phase))
        deadline = next_check_ms(connection, deadline);
    loop_timer_move(&connection->worker->loop, &connection->timer, deadline);
}

void connection_timeout_stop(struct connection *connection)
{
    --*state_counter(connection, connection->phase);
    connection->closed = true;
    if (op_idle(&connection->timer))
        connection_destroy(connection);
    else
        loop_cancel(&connection->worker->loop, &connection->timer);
}
