/*
 * Which peer is asked next: smooth weighted round robin, fewest connections, two
 * draws, or by a key. Peers that have failed are left alone for a while, backups
 * come only where nobody else can.
 */
#include "upstream/upstream_group.h"

#include <errno.h>
#include <math.h>
#include <sys/random.h>

static uint64_t now_ms(const struct upstream_group *group)
{
    return group->pool->loop->clock.monotonic_ms;
}

static uint64_t mark_of(const struct upstream_peer *peer)
{
    return 1ull << (peer->number % 64);
}

/* After fail_timeout one request may try whether it is back. */
static bool is_resting(const struct upstream_peer *peer)
{
    const struct upstream_server *server = peer->server;

    return peer->group->count > 1 && server->max_fails && peer->fails >= server->max_fails &&
           now_ms(peer->group) - peer->failed_ms < server->fail_timeout_ms;
}

static bool may_be_asked(const struct upstream_peer *peer, const struct upstream_choice *choice, bool backup)
{
    const struct upstream_server *server = peer->server;

    return !peer->gone && peer->backup == backup && !server->down && !(choice->tried & mark_of(peer)) &&
           (server->max_conns == 0 || peer->active < server->max_conns) && !is_resting(peer);
}

/* Each grows by its weight, and who is chosen falls back by the sum: so turns are spread out evenly. */
static struct upstream_peer *next_in_turn(struct upstream_group *group, const struct upstream_choice *choice,
                                          bool backup)
{
    struct upstream_peer *best = NULL;
    int64_t total = 0;

    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        if (!may_be_asked(peer, choice, backup))
            continue;
        peer->share += (int64_t)peer->effective_weight;
        total += (int64_t)peer->effective_weight;
        if (peer->effective_weight < peer->weight)
            peer->effective_weight++;
        if (!best || peer->share > best->share)
            best = peer;
    }
    if (best)
        best->share -= total;
    return best;
}

/* active / weight, compared without dividing. */
static bool has_less_to_do(const struct upstream_peer *a, const struct upstream_peer *b)
{
    return a->active * b->weight < b->active * a->weight;
}

/* Those that are equally idle take turns. */
static struct upstream_peer *least_busy(struct upstream_group *group, const struct upstream_choice *choice,
                                        bool backup)
{
    struct upstream_choice narrowed = *choice;
    struct upstream_peer *best = NULL;

    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        if (may_be_asked(peer, choice, backup) && (!best || has_less_to_do(peer, best)))
            best = peer;
    }
    for (struct list *link = group->peers.next; best && link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        if (has_less_to_do(best, peer))
            narrowed.tried |= mark_of(peer);
    }
    return best ? next_in_turn(group, &narrowed, backup) : NULL;
}

/* A random one by weight; `other` is not drawn again. */
static struct upstream_peer *draw(struct upstream_group *group, const struct upstream_choice *choice,
                                  bool backup, const struct upstream_peer *other)
{
    struct upstream_peer *drawn = NULL;
    uint64_t total = 0;

    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);
        uint64_t dice = 0;

        if (peer == other || !may_be_asked(peer, choice, backup))
            continue;
        total += peer->weight;
        if (getrandom(&dice, sizeof(dice), GRND_NONBLOCK) < 0)
            dice = now_ms(group) * 0x9e3779b97f4a7c15;
        if (dice % total < peer->weight)
            drawn = peer;
    }
    return drawn;
}

static struct upstream_peer *better_of_two(struct upstream_group *group, const struct upstream_choice *choice,
                                           bool backup)
{
    struct upstream_peer *one = draw(group, choice, backup, NULL);
    struct upstream_peer *two = one ? draw(group, choice, backup, one) : NULL;

    return two && has_less_to_do(two, one) ? two : one;
}

/* FNV-1a, stirred. The same in every worker and after every start. */
static uint64_t hash_of(struct str key, struct str server)
{
    uint64_t hash = 0xcbf29ce484222325;

    for (size_t i = 0; i < key.length; i++)
        hash = (hash ^ (unsigned char)key.data[i]) * 0x100000001b3;
    hash = (hash ^ 0xff) * 0x100000001b3;
    for (size_t i = 0; i < server.length; i++)
        hash = (hash ^ (unsigned char)server.data[i]) * 0x100000001b3;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
    return hash ^ hash >> 31;
}

/* The first three numbers of an IPv4 address; anything else as it is. */
static struct str network_of(struct str address)
{
    ssize_t dot = str_rfind(address, '.');

    return dot > 0 && str_find(address, ':') < 0 ? str_slice(address, 0, (size_t)dot) : address;
}

/*
 * Every peer draws a lot for the key, and the highest wins (rendezvous hashing, by weight): a peer that comes
 * or goes moves its own keys alone.
 */
static struct upstream_peer *by_key(struct upstream_group *group, const struct upstream_choice *choice,
                                    bool backup)
{
    bool ip = group->upstream->balance == BALANCE_IP_HASH;
    struct str key = ip ? network_of(choice->key) : choice->key;
    struct upstream_peer *best = NULL;
    double highest = 0;

    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);
        double lot;

        if (!may_be_asked(peer, choice, backup))
            continue;
        lot = ((double)(hash_of(key, str_from(peer->name)) >> 11) + 0.5) / 9007199254740992.0;
        lot = (double)peer->weight / -log(lot);
        if (!best || lot > highest) {
            best = peer;
            highest = lot;
        }
    }
    return best;
}

static struct upstream_peer *choose(struct upstream_group *group, const struct upstream_choice *choice,
                                    bool backup)
{
    switch (group->upstream->balance) {
    case BALANCE_ROUND_ROBIN:
        break;
    case BALANCE_LEAST_CONN:
        return least_busy(group, choice, backup);
    case BALANCE_RANDOM:
        return better_of_two(group, choice, backup);
    case BALANCE_IP_HASH:
    case BALANCE_HASH:
        return by_key(group, choice, backup);
    }
    return next_in_turn(group, choice, backup);
}

/* Names that nobody has an answer for yet. */
static bool is_resolving(const struct upstream_group *group)
{
    for (const struct upstream_name *name = group->names; name; name = name->next) {
        if (!name->asked)
            return true;
    }
    return false;
}

struct upstream_peer *upstream_choose(struct upstream_group *group, struct upstream_choice *choice,
                                      int *out_error)
{
    struct upstream_peer *peer = choose(group, choice, false);

    if (!peer)
        peer = choose(group, choice, true);
    if (!peer) {
        *out_error = is_resolving(group) ? -EAGAIN : group->count ? -EBUSY : -ENOENT;
        return NULL;
    }
    choice->tried |= mark_of(peer);
    if (peer->server->max_fails && peer->fails >= peer->server->max_fails) /* one try a pause */
        peer->failed_ms = now_ms(group);
    return peer;
}

bool upstream_has_another(const struct upstream_group *group, const struct upstream_choice *choice)
{
    for (const struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        const struct upstream_peer *peer = container_of(link, const struct upstream_peer, link);

        if (may_be_asked(peer, choice, peer->backup))
            return true;
    }
    return false;
}

void upstream_peer_failed(struct upstream_peer *peer)
{
    const struct upstream_server *server = peer->server;
    uint64_t now = now_ms(peer->group);

    if (now - peer->failed_ms > server->fail_timeout_ms && peer->fails < server->max_fails)
        peer->fails = 0;
    peer->fails++;
    peer->failed_ms = now;
    if (server->max_fails) {
        uint64_t loss = peer->weight / server->max_fails;

        peer->effective_weight = loss < peer->effective_weight ? peer->effective_weight - loss : 0;
    }
    if (server->max_fails && peer->fails == server->max_fails && peer->group->count > 1)
        log_write(peer->group->pool->log, LOG_WARN,
                  "upstream server %s failed %llu times and is left alone for %llu ms", peer->name,
                  (unsigned long long)peer->fails, (unsigned long long)server->fail_timeout_ms);
}

void upstream_peer_worked(struct upstream_peer *peer)
{
    peer->fails = 0;
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
