/*
 * The one timer of a connection. What is waited for decides how long; the
 * deadline moves lazily, so that a request costs no timer operation. Nothing is
 * timed while a module works on an answer: modules keep their own time.
 */
#include "server/journey_steps.h"

#include "base/limits.h"

#define LOOK_MS 1000

enum phase {
    PHASE_HANDSHAKE,
    PHASE_FIRST,
    PHASE_IDLE,
    PHASE_HEAD,
    PHASE_BODY,
    PHASE_WAITING,
    PHASE_SENDING,
    PHASE_LINGERING
};

static enum phase phase_of(struct journey *journey)
{
    if (wire_lingering(&journey->wire))
        return wire_unacknowledged(&journey->wire) ? PHASE_SENDING : PHASE_LINGERING;
    if (!journey->session)
        return journey->wire.state == WIRE_HANDSHAKE ? PHASE_HANDSHAKE : PHASE_SENDING;
    if (!wire_drained(&journey->wire))
        return PHASE_SENDING;
    switch (journey->session->protocol->phase(journey->session)) {
    case SESSION_IDLE:
        return journey->requests ? PHASE_IDLE : PHASE_FIRST;
    case SESSION_HEAD:
        return PHASE_HEAD;
    case SESSION_BODY:
        return PHASE_BODY;
    case SESSION_WAITING:
    case SESSION_SENDING: /* but nothing is on its way: the answer itself is slow */
        return PHASE_WAITING;
    case SESSION_OVER:
        break;
    }
    return PHASE_SENDING;
}

static uint64_t patience_ms(const struct journey *journey, enum phase phase)
{
    const struct core_site *site = journey->location->site;

    switch (phase) {
    case PHASE_FIRST:
        /* A connection that somebody keeps for later shall not hold up the end. */
        if (journey->worker->draining && !journey->worker->retiring)
            return journey->location->wire.lingering_ms;
        return site->client_header_timeout_ms;
    case PHASE_HANDSHAKE:
    case PHASE_HEAD:
        return site->client_header_timeout_ms;
    case PHASE_IDLE:
        return site->keepalive_timeout_ms;
    case PHASE_BODY:
        return site->client_body_timeout_ms;
    case PHASE_SENDING:
        return site->send_timeout_ms;
    case PHASE_LINGERING:
        return journey->location->wire.lingering_ms;
    case PHASE_WAITING:
        break;
    }
    return UINT64_MAX;
}

/*
 * Between two reads or two writes is counted from the last one; everything else from its beginning. Reads do
 * not count between writes: TLS has records to say that no session hears of, without end.
 */
static bool movement_counts(enum phase phase)
{
    return phase == PHASE_BODY || phase == PHASE_SENDING || phase == PHASE_LINGERING;
}

static uint64_t progress_of(const struct wire *wire, enum phase phase)
{
    return phase == PHASE_SENDING ? wire_bytes_sent(wire) : wire_bytes_received(wire);
}

static uint64_t *gauge(struct journey *journey, enum phase phase)
{
    static const uint8_t states[] = {
        [PHASE_HANDSHAKE] = CONNECTION_HANDSHAKE, [PHASE_FIRST] = CONNECTION_WAITING,
        [PHASE_IDLE] = CONNECTION_WAITING,        [PHASE_HEAD] = CONNECTION_READING,
        [PHASE_BODY] = CONNECTION_READING,        [PHASE_WAITING] = CONNECTION_WRITING,
        [PHASE_SENDING] = CONNECTION_WRITING,     [PHASE_LINGERING] = CONNECTION_WRITING,
    };

    return &journey->worker->counters->connections[states[phase]];
}

static bool is_paced(enum phase phase)
{
    return phase == PHASE_BODY || phase == PHASE_SENDING;
}

static void begin_window(struct journey *journey, enum phase phase, bool exact)
{
    journey->pace.mark = exact ? wire_bytes_confirmed(&journey->wire) : progress_of(&journey->wire, phase);
    journey->pace.phase = (uint8_t)phase;
    journey->pace.exact = exact;
    journey->pace.slow = false;
    journey->pace.ms = 0;
}

/*
 * A window is over. The kernel takes much at once of what a client then gets slowly: who seems too slow is
 * looked at for another window, in which what its machine confirms is asked of TCP.
 */
static void end_window(struct journey *journey, enum phase phase)
{
    uint64_t now = journey->pace.exact ? wire_bytes_confirmed(&journey->wire) : progress_of(&journey->wire, phase);
    uint64_t needed = journey->location->site->client_min_rate * journey->pace.ms / 1000;

    if (now >= journey->pace.mark + needed)
        begin_window(journey, phase, false);
    else if (phase == PHASE_SENDING && !journey->pace.exact)
        begin_window(journey, phase, true);
    else
        journey->pace.slow = true;
}

/* Only the time in which the client is waited for counts, and all of it of one request's body, or of one answer. */
static void measure_pace(struct journey *journey, enum phase phase, uint64_t now)
{
    if (is_paced((enum phase)journey->phase) && journey->phase == journey->pace.phase)
        journey->pace.ms += (uint32_t)now - journey->pace.looked_ms;
    journey->pace.looked_ms = (uint32_t)now;
    if (journey->location->site->client_min_rate == 0 || !is_paced(phase))
        journey->pace.slow = false;
    else if (phase != journey->pace.phase || journey->requests != journey->requests_seen)
        begin_window(journey, phase, false);
    else if (journey->pace.ms >= LIMIT_SLOW_WINDOW_MS)
        end_window(journey, phase);
}

static void say_slow(struct journey *journey)
{
    log_write(journey->worker->log, LOG_INFO,
              "*%llu the client %s less than %llu bytes a second (client_min_rate) for %u s: the connection is closed",
              (unsigned long long)journey->number, journey->phase == PHASE_BODY ? "sends" : "takes",
              (unsigned long long)journey->location->site->client_min_rate, LIMIT_SLOW_WINDOW_MS / 1000);
}

/* Each wait for more of what is dropped anyway has its limit, and all of them together. */
static uint64_t lingering_deadline(const struct journey *journey, uint64_t patience)
{
    uint64_t now = journey->worker->loop.clock.monotonic_ms;
    uint64_t began = now - (uint32_t)((uint32_t)now - journey->lingering_since_ms);
    uint64_t last = began + journey->location->site->lingering_time_ms;
    uint64_t next = journey->waiting_since_ms + patience;

    return next < last ? next : last;
}

/* Notes what is waited for now, and since when. Returns the deadline. */
static uint64_t deadline_of(struct journey *journey)
{
    uint64_t now = journey->worker->loop.clock.monotonic_ms;
    enum phase phase = phase_of(journey);
    uint64_t progress = progress_of(&journey->wire, phase);
    uint64_t patience;

    measure_pace(journey, phase, now);
    if (phase != journey->phase) {
        --*gauge(journey, journey->phase);
        ++*gauge(journey, phase);
        if (phase == PHASE_LINGERING)
            journey->lingering_since_ms = (uint32_t)now;
    }
    if (phase != journey->phase || journey->requests != journey->requests_seen ||
        (movement_counts(phase) && progress != journey->progress)) {
        journey->phase = (uint8_t)phase;
        journey->requests_seen = journey->requests;
        journey->progress = progress;
        journey->waiting_since_ms = now;
    }
    patience = patience_ms(journey, phase);
    if (phase == PHASE_LINGERING)
        return lingering_deadline(journey, patience);
    if (journey->pace.slow)
        return now;
    return patience > UINT64_MAX - journey->waiting_since_ms ? UINT64_MAX
                                                             : journey->waiting_since_ms + patience;
}

static void deadline_passed(struct journey *journey)
{
    switch ((enum phase)journey->phase) {
    case PHASE_HEAD:
    case PHASE_BODY:
        journey->session->protocol->signal(journey->session, SESSION_TIMEOUT);
        if (journey->location->wire.reset_timed_out)
            wire_close(&journey->wire, WIRE_END_TIMEOUT);
        else
            journey_pump(journey); /* the session has 408 to say to it */
        break;
    case PHASE_FIRST:
    case PHASE_IDLE:
        journey->session->protocol->signal(journey->session, SESSION_TIMEOUT);
        journey_pump(journey);
        break;
    case PHASE_HANDSHAKE:
    case PHASE_SENDING:
        wire_close(&journey->wire, WIRE_END_TIMEOUT);
        break;
    case PHASE_LINGERING: /* our side has ended in order long ago */
        wire_close(&journey->wire, WIRE_END_ABORT);
        break;
    case PHASE_WAITING:
        break;
    }
}

static void timer_done(struct op *op, int result)
{
    struct journey *journey = container_of(op, struct journey, timer);

    if (journey->closed) {
        journey_give(journey);
        return;
    }
    if (deadline_of(journey) <= journey->worker->loop.clock.monotonic_ms) {
        if (journey->pace.slow)
            say_slow(journey);
        deadline_passed(journey);
    }
    if (op_idle(op))
        journey_clock_look(journey);
}

void journey_clock_answers(struct journey *journey)
{
    enum phase phase = (enum phase)journey->phase;

    /* The journey of a request that no client waits for is counted nowhere, and has no session. */
    if (!journey->session || (phase != PHASE_FIRST && phase != PHASE_IDLE && phase != PHASE_HEAD))
        return;
    --*gauge(journey, phase);
    ++*gauge(journey, PHASE_WAITING);
    journey->phase = PHASE_WAITING;
}

void journey_clock_start(struct journey *journey)
{
    journey->phase = (uint8_t)phase_of(journey);
    journey->waiting_since_ms = journey->worker->loop.clock.monotonic_ms;
    ++*gauge(journey, journey->phase);
    journey->timer.done = timer_done;
    journey_clock_look(journey);
}

/* Nobody tells when bytes move: so it is looked for, often enough that an end comes little later than it
 * should. */
static uint64_t look_soon(const struct journey *journey, uint64_t deadline)
{
    uint64_t soon = journey->location->wire.lingering_ms;

    if (soon < LOOK_MS)
        soon = LOOK_MS;
    soon += journey->worker->loop.clock.monotonic_ms;
    return deadline < soon ? deadline : soon;
}

void journey_clock_look(struct journey *journey)
{
    uint64_t deadline = deadline_of(journey);

    if (journey->closed)
        return;
    if (journey->wire.state == WIRE_DRAINING || is_paced((enum phase)journey->phase))
        deadline = look_soon(journey, deadline);
    if (op_idle(&journey->timer))
        loop_timer(&journey->worker->loop, &journey->timer, deadline);
    else
        loop_timer_move(&journey->worker->loop, &journey->timer, deadline);
}

void journey_clock_stop(struct journey *journey)
{
    --*gauge(journey, journey->phase);
    journey->closed = true;
    if (op_idle(&journey->timer))
        journey_give(journey);
    else
        loop_cancel(&journey->worker->loop, &journey->timer);
}
