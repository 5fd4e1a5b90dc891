/*
 * Selects the next peer: smooth weighted round robin, least connections, least time, the better of two random peers, or
 * by a key. Backups are used only if no other peer is available.
 */
#include "upstream/upstream_group.h"
#include "upstream/upstream_mode.h"

#include <errno.h>
#include <math.h>
#include <sys/random.h>

static uint64_t group_now_ms(const struct upstream_group *group)
{
    return group->pool->loop->clock.monotonic_ms;
}

static bool was_tried(const struct upstream_choice *choice, const struct upstream_peer *peer)
{
    for (unsigned i = 0; i < choice->tries; i++) {
        if (choice->tried[i] == peer->number)
            return true;
    }
    return choice->tries == LIMIT_UPSTREAM_TRIES;
}

static bool is_eligible(const struct upstream_peer *peer, const struct upstream_choice *choice, bool backup)
{
    return peer->backup == backup && !was_tried(choice, peer) && upstream_peer_available(peer, false);
}

/* True if it is the peer of the client's session, and available. */
static bool is_bound(const struct upstream_peer *peer, const struct upstream_choice *choice)
{
    return str_equal(choice->route, str_from(peer->route)) && !was_tried(choice, peer) &&
           upstream_peer_available(peer, true);
}

/* The load relative to the weight; for least_time multiplied by the response time. */
static double load_of(const struct upstream_peer *peer)
{
    const struct upstream_shared *state = peer->state;
    double active = (double)shared_get(&state->active);
    double weight = (double)upstream_peer_weight(peer) + 1e-9; /* 0 after failures */

    switch (peer->group->upstream->balance) {
    case BALANCE_LEAST_TIME_HEADER:
        return (double)shared_get(&state->header_us) * (active + 1) / weight;
    case BALANCE_LEAST_TIME_LAST_BYTE:
        return (double)shared_get(&state->total_us) * (active + 1) / weight;
    case BALANCE_ROUND_ROBIN:
    case BALANCE_LEAST_CONN:
    case BALANCE_IP_HASH:
    case BALANCE_HASH:
    case BALANCE_RANDOM:
        break;
    }
    return active / weight;
}

/*
 * Smooth weighted round robin: the share of each peer grows by its weight, and that of the selected peer is reduced by
 * the sum of weights. Peers with a higher load than `max` are skipped.
 */
static struct upstream_peer *choose_round_robin(struct upstream_group *group, const struct upstream_choice *choice,
                                          bool backup, double max)
{
    struct upstream_peer *best = NULL;
    int64_t total = 0;

    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);
        int64_t weight;

        if (!is_eligible(peer, choice, backup) || load_of(peer) > max)
            continue;
        weight = (int64_t)upstream_peer_weight(peer);
        peer->current_weight += weight;
        total += weight;
        if (peer->lost_weight > 0)
            upstream_peer_regain_weight(peer);
        if (!best || peer->current_weight > best->current_weight)
            best = peer;
    }
    if (best)
        best->current_weight -= total;
    return best;
}

/*
 * The peer with the least load; round robin among equal ones. Other workers change the counters meanwhile, so that the
 * second pass may find no peer with the minimum of the first.
 */
static struct upstream_peer *choose_least_loaded(struct upstream_group *group, const struct upstream_choice *choice,
                                        bool backup)
{
    struct upstream_peer *best = NULL;
    struct upstream_peer *next;
    double min = HUGE_VAL;

    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);
        double load = load_of(peer);

        if (is_eligible(peer, choice, backup) && (!best || load < min)) {
            best = peer;
            min = load;
        }
    }
    next = best ? choose_round_robin(group, choice, backup, min) : NULL;
    return next ? next : best;
}

/* A random peer by weight, except `other`. */
static struct upstream_peer *random_by_weight(struct upstream_group *group, const struct upstream_choice *choice,
                                            bool backup, const struct upstream_peer *other)
{
    struct upstream_peer *selected = NULL;
    uint64_t total = 0;

    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);
        uint64_t weight = upstream_read_weight(peer->state);
        uint64_t random_state = 0;

        if (peer == other || !is_eligible(peer, choice, backup))
            continue;
        total += weight;
        if (getrandom(&random_state, sizeof(random_state), GRND_NONBLOCK) < 0)
            random_state = group_now_ms(group) * 0x9e3779b97f4a7c15;
        if (random_state % total < weight)
            selected = peer;
    }
    return selected;
}

static struct upstream_peer *choose_better_of_two(struct upstream_group *group, const struct upstream_choice *choice,
                                           bool backup)
{
    struct upstream_peer *one = random_by_weight(group, choice, backup, NULL);
    struct upstream_peer *two = one ? random_by_weight(group, choice, backup, one) : NULL;

    return two && load_of(two) < load_of(one) ? two : one;
}

/* The first three octets of an IPv4 address; other addresses are unchanged. */
static struct str network_of(struct str address)
{
    ssize_t dot = str_rfind(address, '.');

    return dot > 0 && str_find(address, ':') < 0 ? str_slice(address, 0, (size_t)dot) : address;
}

/*
 * Weighted rendezvous hashing: selects the peer with the highest score for the key. A peer that is added or removed
 * changes the assignment of its own keys only.
 */
static struct upstream_peer *choose_by_key(struct upstream_group *group, const struct upstream_choice *choice,
                                    bool backup)
{
    bool ip = group->upstream->balance == BALANCE_IP_HASH;
    struct str key = ip ? network_of(choice->key) : choice->key;
    struct upstream_peer *best = NULL;
    double highest = 0;

    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);
        double score;

        if (!is_eligible(peer, choice, backup))
            continue;
        score = ((double)(upstream_hash(key, str_from(peer->name)) >> 11) + 0.5) / 9007199254740992.0;
        score = (double)upstream_read_weight(peer->state) / -log(score);
        if (!best || score > highest) {
            best = peer;
            highest = score;
        }
    }
    return best;
}

static struct upstream_peer *choose_peer(struct upstream_group *group, const struct upstream_choice *choice,
                                         bool backup)
{
    switch (group->upstream->balance) {
    case BALANCE_ROUND_ROBIN:
        break;
    case BALANCE_LEAST_CONN:
    case BALANCE_LEAST_TIME_HEADER:
    case BALANCE_LEAST_TIME_LAST_BYTE:
        return choose_least_loaded(group, choice, backup);
    case BALANCE_RANDOM:
        return choose_better_of_two(group, choice, backup);
    case BALANCE_IP_HASH:
    case BALANCE_HASH:
        if (str_empty(choice->key)) /* an absent cookie, for example; nginx uses round robin, too */
            break;
        return choose_by_key(group, choice, backup);
    }
    return choose_round_robin(group, choice, backup, HUGE_VAL);
}

/* True if a name has no answer yet. */
static bool is_resolving(const struct upstream_group *group)
{
    for (const struct upstream_name *name = group->names; name; name = name->next) {
        if (!name->resolved)
            return true;
    }
    return false;
}

/* The peer of the client's session, if it is available. */
static struct upstream_peer *choose_by_route(struct upstream_group *group, const struct upstream_choice *choice)
{
    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        if (is_bound(peer, choice))
            return peer;
    }
    return NULL;
}

static struct upstream_peer *choose_any(struct upstream_group *group, const struct upstream_choice *choice)
{
    struct upstream_peer *peer = str_empty(choice->route) ? NULL : choose_by_route(group, choice);

    if (!peer)
        peer = choose_peer(group, choice, false);
    return peer ? peer : choose_peer(group, choice, true);
}

struct upstream_peer *upstream_choose(struct upstream_group *group, struct upstream_choice *choice,
                                      int *out_error)
{
    struct upstream_peer *peer;

    upstream_group_follow(group);
    while ((peer = choose_any(group, choice)) != NULL) {
        choice->tried[choice->tries++] = peer->number;
        if (!upstream_peer_try(peer)) /* another worker retries it */
            continue;
        shared_add(&peer->state->requests, 1);
        return peer;
    }
    *out_error = is_resolving(group) ? -EAGAIN : group->count ? -EBUSY : -ENOENT;
    return NULL;
}

bool upstream_has_another(const struct upstream_group *group, const struct upstream_choice *choice)
{
    for (const struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        const struct upstream_peer *peer = container_of(link, const struct upstream_peer, link);

        if (is_eligible(peer, choice, peer->backup) || is_bound(peer, choice))
            return true;
    }
    return false;
}

void upstream_wait(struct upstream_group *group, struct upstream_waiter *waiter)
{
    list_init(&waiter->link);
    list_push(&group->waiting, &waiter->link);
}

void upstream_wait_end(struct upstream_waiter *waiter)
{
    if (waiter->link.next)
        list_remove(&waiter->link);
}
