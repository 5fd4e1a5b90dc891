/*
 * Passive health checks. A failed peer is not used during a pause; then one request retries it. Each failed retry
 * doubles the pause. A recovered peer begins with a low weight (slow_start). All workers share the state.
 */
#include "upstream/upstream_group.h"
#include "upstream/upstream_mode.h"

#include "base/saturate.h"

#include <errno.h>

static uint64_t peer_now_ms(const struct upstream_peer *peer)
{
    return peer->group->pool->loop->clock.monotonic_ms;
}

/* True if the peer has reached max_fails and is not the only one of its group. */
static bool has_reached_max_fails(const struct upstream_peer *peer)
{
    return peer->group->count > 1 && peer->server->max_fails &&
           shared_get(&peer->state->fails) >= peer->server->max_fails;
}

static bool is_paused(const struct upstream_peer *peer)
{
    return has_reached_max_fails(peer) &&
           u64_sub_sat(peer_now_ms(peer), shared_get(&peer->state->failed_ms)) < shared_get(&peer->state->pause_ms);
}

bool upstream_peer_available(const struct upstream_peer *peer, bool bound)
{
    const struct upstream_server *server = peer->server;
    uint64_t mode = shared_get(&peer->state->mode);

    return !peer->retired && (mode == UPSTREAM_UP || (bound && mode == UPSTREAM_DRAINING)) &&
           shared_get(&peer->state->checked) != CHECKED_BAD &&
           (server->max_conns == 0 || shared_get(&peer->state->active) < server->max_conns) && !is_paused(peer);
}

/* One request of all workers retries the peer per pause: the compare-and-swap of failed_ms selects it. */
bool upstream_peer_try(struct upstream_peer *peer)
{
    uint64_t failed_ms = shared_get(&peer->state->failed_ms);

    if (!has_reached_max_fails(peer))
        return true;
    if (is_paused(peer) || !shared_change(&peer->state->failed_ms, failed_ms, peer_now_ms(peer)))
        return false;
    shared_set(&peer->state->retrying, 1);
    return true;
}

uint64_t upstream_peer_weight(const struct upstream_peer *peer)
{
    uint64_t whole = u64_sub_sat(upstream_read_weight(peer->state), peer->lost_weight) * UPSTREAM_WEIGHT_UNIT;
    uint64_t recovered_ms = shared_get(&peer->state->recovered_ms);
    uint64_t slow_ms = peer->server->slow_start_ms;
    uint64_t since_ms = u64_sub_sat(peer_now_ms(peer), recovered_ms);

    if (slow_ms == 0 || recovered_ms == 0 || since_ms >= slow_ms)
        return whole;
    whole = (uint64_t)((double)whole * (double)since_ms / (double)slow_ms);
    return whole > 0 ? whole : 1;
}

/* `sluice ctl` may have set a weight below the lost one. */
void upstream_peer_regain_weight(struct upstream_peer *peer)
{
    uint64_t weight = upstream_read_weight(peer->state);

    if (peer->lost_weight > weight)
        peer->lost_weight = weight;
    if (peer->lost_weight > 0)
        peer->lost_weight--;
}

void upstream_peer_recovered(struct upstream_peer *peer)
{
    shared_set(&peer->state->fails, 0);
    shared_set(&peer->state->retrying, 0);
    shared_set(&peer->state->paused, 0);
    shared_set(&peer->state->recovered_ms, peer_now_ms(peer));
}

static void pause_peer(struct upstream_peer *peer, uint64_t pause_ms)
{
    shared_set(&peer->state->pause_ms, pause_ms);
    shared_set(&peer->state->paused, peer->group->count > 1);
    if (peer->group->count > 1)
        log_write(peer->group->pool->log, LOG_WARN,
                  "upstream server %s failed %llu times and is not used for %llu ms", peer->name,
                  (unsigned long long)shared_get(&peer->state->fails), (unsigned long long)pause_ms);
}

/* The double of the current pause, at most LIMIT_UPSTREAM_PAUSE_MS or a longer fail_timeout. */
static uint64_t longer_pause_ms(const struct upstream_peer *peer)
{
    uint64_t pause_ms = shared_get(&peer->state->pause_ms) * 2;

    if (pause_ms <= LIMIT_UPSTREAM_PAUSE_MS)
        return pause_ms;
    return peer->server->fail_timeout_ms > LIMIT_UPSTREAM_PAUSE_MS ? peer->server->fail_timeout_ms
                                                                  : LIMIT_UPSTREAM_PAUSE_MS;
}

static void lose_weight(struct upstream_peer *peer)
{
    uint64_t weight = upstream_read_weight(peer->state);

    peer->lost_weight += weight / peer->server->max_fails;
    if (peer->lost_weight > weight)
        peer->lost_weight = weight;
}

bool upstream_is_local_error(int error)
{
    return error == -EBUSY || error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

void upstream_peer_failed(struct upstream_peer *peer)
{
    const struct upstream_server *server = peer->server;
    struct upstream_shared *state = peer->state;
    uint64_t now = peer_now_ms(peer);
    bool retrying = shared_swap(&state->retrying, 0);
    uint64_t fails;

    shared_add(&state->failures, 1);
    if (u64_sub_sat(now, shared_get(&state->failed_ms)) > server->fail_timeout_ms &&
        shared_get(&state->fails) < server->max_fails)
        shared_set(&state->fails, 0);
    fails = shared_add(&state->fails, 1) + 1;
    if (server->max_fails == 0)
        return;
    lose_weight(peer);
    if (fails <= server->max_fails || retrying) /* results of requests begun before the pause are ignored */
        shared_set(&state->failed_ms, now);
    if (fails == server->max_fails)
        pause_peer(peer, server->fail_timeout_ms);
    else if (retrying)
        pause_peer(peer, longer_pause_ms(peer));
}

void upstream_peer_succeeded(struct upstream_peer *peer)
{
    uint64_t fails = shared_get(&peer->state->fails);

    if (fails == 0)
        return;
    if (peer->server->max_fails == 0 || fails < peer->server->max_fails) {
        shared_set(&peer->state->fails, 0);
        return;
    }
    upstream_peer_recovered(peer);
    if (peer->group->count > 1)
        log_write(peer->group->pool->log, LOG_NOTICE, "upstream server %s is available again", peer->name);
}

/* Updates a moving average, in which the newest response has a weight of one eighth. */
static void update_average(uint64_t *average_us, uint64_t us)
{
    uint64_t before = shared_get(average_us);

    shared_set(average_us, before ? before - before / 8 + us / 8 : us > 0 ? us : 1);
}

void upstream_peer_count_time(struct upstream_peer *peer, uint64_t header_us, uint64_t total_us)
{
    if (header_us != UINT64_MAX)
        update_average(&peer->state->header_us, header_us);
    if (total_us == UINT64_MAX)
        return;
    update_average(&peer->state->total_us, total_us);
    (void)shared_add(&peer->state->latency.counts[latency_bucket(total_us)], 1);
    (void)shared_add(&peer->state->latency.sum_us, total_us);
}

bool upstream_peer_acquire(struct upstream_peer *peer)
{
    struct upstream_pool *pool = peer->group->pool;
    uint64_t before = shared_add(&peer->state->active, 1);

    if (peer->server->max_conns && before >= peer->server->max_conns) {
        shared_add(&peer->state->active, -(uint64_t)1);
        return false;
    }
    if (peer->zone_index >= 0)
        upstream_zone_count(pool->zone, pool->worker, peer->zone_index, 1);
    peer->active++;
    return true;
}

void upstream_peer_release(struct upstream_peer *peer)
{
    struct upstream_pool *pool = peer->group->pool;

    if (peer->zone_index >= 0)
        upstream_zone_count(pool->zone, pool->worker, peer->zone_index, -1);
    shared_add(&peer->state->active, -(uint64_t)1);
    peer->active--;
}
