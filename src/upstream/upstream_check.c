/*
 * Active health checks, which one worker makes for all: a connection, or a request whose status is examined. The result
 * is stored in the peer's shared state.
 */
#include "upstream/upstream_group.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "upstream/upstream_check_http2.h"

#include <errno.h>
#include <stdlib.h>

#define STATUS_LINE 12 /* "HTTP/1.1 200" */

/* One check in progress. */
struct upstream_probe {
    struct list link;               /* in group->probes */
    struct upstream_peer *peer;     /* its active connection keeps the peer alive */
    struct upstream_connection *connection;
    struct check_session *http2;    /* owned; NULL: not connected yet, or over HTTP/1.1 */
    char line[STATUS_LINE];
    size_t length;
};

static void set_checked(struct upstream_peer *peer, bool good, const char *reason)
{
    const struct upstream_check *check = peer->group->upstream->check;
    struct upstream_shared *state = peer->state;
    uint64_t result = good ? CHECKED_GOOD : CHECKED_BAD;
    uint64_t before = shared_get(&state->checked);
    uint64_t needed = good ? check->passes : check->fails;

    if (before == result || (good && before == CHECKED_NEVER)) {
        shared_set(&state->checked, result);
        shared_set(&state->contrary_checks, 0);
        return;
    }
    if (shared_add(&state->contrary_checks, 1) + 1 < needed)
        return;
    shared_set(&state->contrary_checks, 0);
    shared_set(&state->checked, result);
    if (good)
        upstream_peer_recovered(peer);
    log_write(peer->group->pool->log, good ? LOG_NOTICE : LOG_WARN,
              "upstream server %s of \"" STR_FMT "\" is %s: its check %s", peer->name,
              STR_ARG(peer->group->upstream->name), good ? "healthy" : "unhealthy", reason);
}

static void probe_free(struct upstream_probe *probe)
{
    list_remove(&probe->link);
    check_session_destroy(probe->http2);
    free(probe);
}

static void probe_finish(struct upstream_probe *probe, bool good, const char *reason)
{
    struct upstream_connection *connection = probe->connection;

    set_checked(probe->peer, good, reason);
    probe_free(probe);
    if (connection)
        upstream_discard(connection);
}

/* Sends the frames of the session while the wire has room. 0 or -errno. */
static int send_frames(struct check_session *session, struct wire *wire)
{
    struct str parts[2];
    size_t room;
    int result = 0;

    while (result >= 0 && (room = wire_room(wire)) > 0) {
        result = check_session_produce(session, room, parts);
        for (unsigned i = 0; i < 2 && result >= 0; i++) {
            const struct chunk chunk = {.kind = CHUNK_BYTES, .bytes = parts[i]};

            if (!str_empty(parts[i]))
                result = wire_send(wire, &chunk);
        }
    }
    if (result < 0 && result != -EAGAIN)
        return result;
    wire_flush(wire);
    return 0;
}

/* False: the probe has failed, and is freed. */
static bool probe_flush(struct upstream_probe *probe)
{
    if (send_frames(probe->http2, &probe->connection->wire) == 0)
        return true;
    probe_finish(probe, false, "ran out of memory");
    return false;
}

/* Closes the connection in order, with GOAWAY, after a response over HTTP/2. */
static void probe_close(struct upstream_probe *probe, bool good, const char *reason)
{
    check_session_end(probe->http2);
    if (!probe_flush(probe))
        return;
    upstream_close(probe->connection);
    probe->connection = NULL;
    probe_finish(probe, good, reason);
}

static void begin_http2(struct upstream_probe *probe)
{
    struct upstream_connection *connection = probe->connection;
    const struct upstream_check *check = probe->peer->group->upstream->check;

    if (check->https && !str_equal(tls_session_alpn(connection->wire.tls), STR("h2"))) {
        probe_finish(probe, false, "did not negotiate HTTP/2 (ALPN \"h2\")");
        return;
    }
    probe->http2 = check_session_create(check->http2, &connection->pool->loop->clock);
    if (!probe->http2) {
        probe_finish(probe, false, "ran out of memory");
        return;
    }
    wire_receive(&connection->wire);
    (void)probe_flush(probe);
}

static void begin_http1(struct upstream_probe *probe)
{
    const struct upstream_check *check = probe->peer->group->upstream->check;
    const struct chunk request = {.kind = CHUNK_BYTES, .bytes = check->request};

    wire_receive(&probe->connection->wire);
    if (wire_send(&probe->connection->wire, &request) < 0)
        probe_finish(probe, false, "ran out of memory");
    else
        wire_flush(&probe->connection->wire);
}

static void probe_opened(void *user)
{
    struct upstream_probe *probe = user;
    const struct upstream_check *check = probe->peer->group->upstream->check;

    if (check->http2)
        begin_http2(probe);
    else if (str_empty(check->request))
        probe_finish(probe, true, "connected");
    else
        begin_http1(probe);
}

/* Parses the status of a status line; 0: malformed. */
static unsigned status_of(const char line[STATUS_LINE])
{
    unsigned status = 0;

    if (memcmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ')
        return 0;
    for (int i = 9; i < STATUS_LINE; i++) {
        if (line[i] < '0' || line[i] > '9')
            return 0;
        status = status * 10 + (unsigned)(line[i] - '0');
    }
    return status;
}

static bool is_accepted(const struct upstream_check *check, unsigned status)
{
    for (size_t i = 0; i < check->match_count; i++) {
        if (status >= check->match[i].low && status <= check->match[i].high)
            return true;
    }
    return false;
}

/* Returns the status; 0: more bytes are needed; -EPROTO: no status line. */
static int read_status_line(struct upstream_probe *probe, struct str bytes)
{
    struct str part = str_slice(bytes, 0, size_sub_sat(STATUS_LINE, probe->length));
    unsigned status;

    memcpy(probe->line + probe->length, part.data, part.length);
    probe->length += part.length;
    if (probe->length < STATUS_LINE)
        return 0;
    status = status_of(probe->line);
    return status ? (int)status : -EPROTO;
}

static size_t probe_received(void *user, struct str bytes)
{
    struct upstream_probe *probe = user;
    const struct upstream_check *check = probe->peer->group->upstream->check;
    int status;

    if (str_empty(bytes)) {
        probe_finish(probe, false, "got no response");
        return 0;
    }
    status = probe->http2 ? check_session_receive(probe->http2, bytes) : read_status_line(probe, bytes);
    if (status < 0) {
        probe_finish(probe, false, status == -ENOMEM ? "ran out of memory" : "got an invalid response");
    } else if (status > 0) {
        bool good = is_accepted(check, (unsigned)status);

        (probe->http2 ? probe_close : probe_finish)(probe, good, good ? "succeeded" : "got an unexpected status");
    } else if (!probe->http2 || probe_flush(probe)) {
        wire_receive(&probe->connection->wire);
    }
    return bytes.length;
}

static void probe_writable(void *user)
{
    struct upstream_probe *probe = user;

    if (probe->http2)
        (void)probe_flush(probe);
}

static void probe_failed(void *user, int error)
{
    struct upstream_probe *probe = user;

    probe->connection = NULL;
    probe_finish(probe, false,
                 error == -ETIMEDOUT ? "timed out"
                 : error == -EPROTO  ? "failed: TLS error"
                                     : "could not connect, or lost the connection");
}

static const struct upstream_events events = {
    .opened = probe_opened, .received = probe_received, .writable = probe_writable, .failed = probe_failed};

static bool is_check_in_progress(const struct upstream_peer *peer)
{
    const struct list *probes = &peer->group->probes;

    for (const struct list *link = probes->next; link != probes; link = link->next) {
        if (container_of(link, const struct upstream_probe, link)->peer == peer)
            return true;
    }
    return false;
}

/*
 * The leader of the checks of all groups extends the leadership at the shortest of their intervals. Its period is long
 * enough that a worker that is busy for a short time does not lose it.
 */
static bool is_leader(struct upstream_pool *pool)
{
    uint64_t period_ms = 3 * pool->check_interval_ms;

    return !pool->zone ||
           upstream_zone_acquire_leadership(pool->zone, pool->worker, pool->loop->clock.monotonic_ms,
                                            period_ms > LIMIT_CHECK_LEAD_MS ? period_ms : LIMIT_CHECK_LEAD_MS);
}

/* Sets the TLS context of a check. The certificate is not verified: checks examine availability, not identity. */
static int set_probe_tls(struct upstream_pool *pool, const struct upstream_check *check, struct upstream_transport *out)
{
    const struct tls_client_settings settings = {.verify = false, .http2 = check->by_http2};

    if (!check->https)
        return 0;
    out->context = upstream_pool_tls(pool, &settings);
    out->name = check->host;
    return out->context ? 0 : -ENOMEM;
}

static void start_probe(struct upstream_peer *peer)
{
    const struct upstream_check *check = peer->group->upstream->check;
    struct upstream_probe *probe;
    struct upstream_transport transport = {.proxy_header = check->proxy_header};
    int error;

    if (peer->retired || shared_get(&peer->state->mode) == UPSTREAM_DOWN || is_check_in_progress(peer))
        return;
    probe = calloc(1, sizeof(*probe));
    if (!probe || set_probe_tls(peer->group->pool, check, &transport) < 0) {
        free(probe);
        return;
    }
    probe->peer = peer;
    error = upstream_connect(peer, &transport, &events, probe, check->timeout_ms, true, &probe->connection);
    if (error == 0) {
        list_init(&probe->link);
        list_push(&peer->group->probes, &probe->link);
        return;
    }
    free(probe);
    if (!upstream_is_local_error(error))
        set_checked(peer, false, "could not connect");
}

/* A worker that is not the leader checks within a second whether the leader has exited or is retired. */
static uint64_t next_check_ms(const struct upstream_group *group, bool leads)
{
    uint64_t interval_ms = group->upstream->check->interval_ms;

    return leads || interval_ms < LIMIT_CHECK_LEAD_MS ? interval_ms : LIMIT_CHECK_LEAD_MS;
}

static void check_timer_done(struct op *op, int result)
{
    struct upstream_group *group = container_of(op, struct upstream_group, check);
    struct upstream_pool *pool = group->pool;
    bool leads;

    if (pool->stopping || pool->retired || result < 0)
        return;
    leads = is_leader(pool);
    loop_timer(pool->loop, op, pool->loop->clock.monotonic_ms + next_check_ms(group, leads));
    if (!leads)
        return;
    for (struct list *link = group->peers.next; link != &group->peers; link = link->next)
        start_probe(container_of(link, struct upstream_peer, link));
}

void upstream_checks_start(struct upstream_group *group)
{
    struct upstream_pool *pool = group->pool;
    const struct upstream_check *check = group->upstream->check;

    list_init(&group->probes);
    group->check.done = check_timer_done;
    if (!check)
        return;
    if (pool->check_interval_ms == 0 || check->interval_ms < pool->check_interval_ms)
        pool->check_interval_ms = check->interval_ms;
    loop_timer(pool->loop, &group->check, pool->loop->clock.monotonic_ms);
}

void upstream_checks_stop(struct upstream_group *group)
{
    struct list *link;

    loop_cancel(group->pool->loop, &group->check);
    while ((link = list_pop(&group->probes)) != NULL) {
        struct upstream_probe *probe = container_of(link, struct upstream_probe, link);

        upstream_discard(probe->connection);
        probe_free(probe);
    }
}
