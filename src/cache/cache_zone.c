/*
 * A hash table of chains over a fixed array of nodes, and a list by use. The nodes alone are the truth: chains,
 * list and sums can be made of them at any time. A node is used by a store to its time; the list learns of it when
 * the node's turn to go has come, and gives it another.
 */
#include "cache/cache_zone.h"

#include "base/limits.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define NOBODY     0u               /* places are counted from 1 */
#define EVICT_LOOK 1024             /* nodes looked at under one lock */

struct node {
    struct cache_hash hash;
    uint64_t sequence;              /* this and `size`: read without the lock */
    uint64_t size;
    uint64_t lease;                 /* whose token; 0: nobody's */
    uint64_t lease_ms;
    uint32_t next;                  /* in its chain, or among the free */
    uint32_t newer, older;
    uint32_t used_s;                /* atomic: written without the lock */
    uint32_t placed_s;              /* used_s when it was put in front */
    uint32_t uses;
    uint32_t known;                 /* the node is in use: written last, and first taken back */
};

struct cache_zone {
    size_t size;
    unsigned sharers;               /* generations that have it, but for the first; the master's */
    pthread_mutex_t lock;
    uint64_t sequence;
    uint64_t leader;                /* its lease's end, and who it is below */
    uint64_t walks, walked;
    uint32_t node_count, chain_count;
    uint32_t unused;                /* the free nodes */
    uint32_t newest, oldest;
    struct cache_totals totals;
    uint32_t *chains;               /* these two point behind it: the mapping stands at one address in all workers */
    struct node *nodes;
};

static bool make_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;
    bool good;

    if (pthread_mutexattr_init(&attributes) != 0)
        return false;
    good = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
           pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
           pthread_mutex_init(lock, &attributes) == 0;
    pthread_mutexattr_destroy(&attributes);
    return good;
}

static struct node *at(struct cache_zone *zone, uint32_t place)
{
    return &zone->nodes[place - 1];
}

static uint32_t *chain_of(struct cache_zone *zone, const struct cache_hash *hash)
{
    uint32_t number;

    memcpy(&number, hash->bytes, sizeof(number));
    return &zone->chains[number % zone->chain_count];
}

static void unlink_use(struct cache_zone *zone, struct node *node)
{
    *(node->newer ? &at(zone, node->newer)->older : &zone->newest) = node->older;
    *(node->older ? &at(zone, node->older)->newer : &zone->oldest) = node->newer;
}

static void put_in_front(struct cache_zone *zone, uint32_t place)
{
    struct node *node = at(zone, place);

    node->placed_s = __atomic_load_n(&node->used_s, __ATOMIC_RELAXED);
    node->newer = NOBODY;
    node->older = zone->newest;
    *(zone->newest ? &at(zone, zone->newest)->newer : &zone->oldest) = place;
    zone->newest = place;
}

static void put_in_chain(struct cache_zone *zone, uint32_t place)
{
    uint32_t *chain = chain_of(zone, &at(zone, place)->hash);

    at(zone, place)->next = *chain;
    *chain = place;
}

static void count(struct cache_zone *zone, const struct node *node)
{
    zone->totals.entries++;
    zone->totals.files += node->sequence != 0;
    zone->totals.bytes += node->size;
}

/* Chains, list and sums anew: whoever died under the lock may have left any of them half done. */
static void rebuild(struct cache_zone *zone)
{
    memset(zone->chains, 0, zone->chain_count * sizeof(*zone->chains));
    zone->newest = zone->oldest = zone->unused = NOBODY;
    zone->totals = (struct cache_totals){0};
    for (uint32_t place = zone->node_count; place >= 1; place--) {
        struct node *node = at(zone, place);

        if (!node->known) {
            node->next = zone->unused;
            zone->unused = place;
            continue;
        }
        if (node->sequence == 0)
            node->size = 0;
        put_in_chain(zone, place);
        put_in_front(zone, place);
        count(zone, node);
    }
}

static void take_lock(struct cache_zone *zone)
{
    if (pthread_mutex_lock(&zone->lock) == EOWNERDEAD) {
        rebuild(zone);
        pthread_mutex_consistent(&zone->lock);
    }
}

static void give_lock(struct cache_zone *zone)
{
    pthread_mutex_unlock(&zone->lock);
}

struct cache_zone *cache_zone_create(size_t size, uint64_t first)
{
    struct cache_zone *zone;
    size_t nodes;

    if (size < sizeof(*zone) + 16 * (sizeof(struct node) + sizeof(uint32_t)))
        return NULL;
    nodes = (size - sizeof(*zone)) / (sizeof(struct node) + sizeof(uint32_t));
    if (nodes > UINT32_MAX / 2)
        nodes = UINT32_MAX / 2;
    zone = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (zone == MAP_FAILED)
        return NULL;
    if (!make_lock(&zone->lock)) {
        munmap(zone, size);
        return NULL;
    }
    zone->size = size;
    zone->sequence = first;
    zone->walks = 1;
    zone->node_count = zone->chain_count = (uint32_t)nodes;
    zone->nodes = (struct node *)(void *)(zone + 1);
    zone->chains = (uint32_t *)(void *)(zone->nodes + nodes);
    rebuild(zone);
    return zone;
}

struct cache_zone *cache_zone_share(struct cache_zone *zone)
{
    zone->sharers++;
    return zone;
}

void cache_zone_destroy(struct cache_zone *zone)
{
    if (zone && zone->sharers-- == 0)
        munmap(zone, zone->size);
}

static uint32_t look_up(struct cache_zone *zone, const struct cache_hash *hash)
{
    uint32_t place = *chain_of(zone, hash);

    while (place && memcmp(&at(zone, place)->hash, hash, sizeof(*hash)) != 0)
        place = at(zone, place)->next;
    return place;
}

static void give_up_file(struct cache_zone *zone, struct node *node, struct cache_victims *victims)
{
    if (node->sequence == 0)
        return;
    victims->ids[victims->count++] = (struct cache_id){node->hash, node->sequence};
    zone->totals.files--;
    zone->totals.bytes -= node->size;
    __atomic_store_n(&node->sequence, 0, __ATOMIC_RELEASE);
    node->size = 0;
}

static void forget(struct cache_zone *zone, uint32_t place, struct cache_victims *victims)
{
    struct node *node = at(zone, place);
    uint32_t *link = chain_of(zone, &node->hash);

    give_up_file(zone, node, victims);
    node->known = 0;
    while (*link != place)
        link = &at(zone, *link)->next;
    *link = node->next;
    unlink_use(zone, node);
    zone->totals.entries--;
    node->next = zone->unused;
    zone->unused = place;
}

static bool is_leased(const struct node *node, uint64_t now_ms)
{
    return node->lease != 0 && node->lease_ms > now_ms;
}

/* The oldest node has another turn where it was used since it was placed, and that not before `inactive_s`; else it
 * goes. False: it stays. */
static bool age_oldest(struct cache_zone *zone, uint32_t inactive_s, uint64_t now_ms, struct cache_victims *victims)
{
    uint32_t place = zone->oldest;
    struct node *node = at(zone, place);
    uint32_t used_s = __atomic_load_n(&node->used_s, __ATOMIC_RELAXED);

    if ((used_s > node->placed_s && used_s >= inactive_s) || is_leased(node, now_ms)) {
        unlink_use(zone, node);
        put_in_front(zone, place);
        return false;
    }
    forget(zone, place, victims);
    return true;
}

/* A free node, where need be the oldest one's. NOBODY: all are being fetched. */
static uint32_t take_free(struct cache_zone *zone, struct cache_victims *victims)
{
    uint32_t place = zone->unused;

    for (unsigned looked = 0; !place && looked < EVICT_LOOK; looked++) {
        if (zone->oldest && age_oldest(zone, 0, 0, victims))
            place = zone->unused;
    }
    if (place)
        zone->unused = at(zone, place)->next;
    return place;
}

static uint32_t take_in(struct cache_zone *zone, const struct cache_hash *hash, uint32_t now_s,
                        struct cache_victims *victims)
{
    uint32_t place = look_up(zone, hash);

    if (place)
        return place;
    place = take_free(zone, victims);
    if (!place)
        return NOBODY;
    *at(zone, place) = (struct node){.hash = *hash, .used_s = now_s};
    put_in_chain(zone, place);
    put_in_front(zone, place);
    zone->totals.entries++;
    __atomic_store_n(&at(zone, place)->known, 1, __ATOMIC_RELEASE);
    return place;
}

static void use(struct node *node, uint32_t now_s)
{
    if (__atomic_load_n(&node->used_s, __ATOMIC_RELAXED) != now_s)
        __atomic_store_n(&node->used_s, now_s, __ATOMIC_RELAXED);
}

bool cache_zone_find(struct cache_zone *zone, const struct cache_hash *hash, bool used, uint32_t now_s,
                     struct cache_view *out, struct cache_victims *victims)
{
    uint32_t place;

    take_lock(zone);
    place = used ? take_in(zone, hash, now_s, victims) : look_up(zone, hash);
    if (place) {
        struct node *node = at(zone, place);

        if (used) {
            use(node, now_s);
            node->uses += node->uses < UINT32_MAX;
        }
        *out = (struct cache_view){place, node->sequence, node->size, node->uses};
    }
    give_lock(zone);
    return place != NOBODY;
}

bool cache_zone_current(struct cache_zone *zone, uint32_t place, uint64_t sequence, uint64_t size, uint32_t now_s)
{
    struct node *node = at(zone, place);

    if (__atomic_load_n(&node->sequence, __ATOMIC_ACQUIRE) != sequence ||
        __atomic_load_n(&node->size, __ATOMIC_RELAXED) != size)
        return false;
    use(node, now_s);
    return true;
}

uint64_t cache_zone_sequence(struct cache_zone *zone)
{
    return __atomic_add_fetch(&zone->sequence, 1, __ATOMIC_RELAXED);
}

static void set_file(struct cache_zone *zone, struct node *node, uint64_t sequence, uint64_t size)
{
    __atomic_store_n(&node->size, size, __ATOMIC_RELAXED);
    zone->totals.files++;
    zone->totals.bytes += size;
    __atomic_store_n(&node->sequence, sequence, __ATOMIC_RELEASE);
}

int cache_zone_publish(struct cache_zone *zone, const struct cache_id *id, uint64_t size, uint32_t now_s,
                       struct cache_victims *victims)
{
    uint32_t place;

    take_lock(zone);
    place = take_in(zone, &id->hash, now_s, victims);
    if (place) {
        if (at(zone, place)->sequence != id->sequence) { /* else the walk has found it already */
            give_up_file(zone, at(zone, place), victims);
            set_file(zone, at(zone, place), id->sequence, size);
        }
        use(at(zone, place), now_s);
    }
    give_lock(zone);
    return place ? 0 : -ENOSPC;
}

int cache_zone_adopt(struct cache_zone *zone, const struct cache_id *id, uint64_t size, uint32_t now_s,
                     struct cache_victims *victims)
{
    struct node *node;
    uint32_t place;

    take_lock(zone);
    place = take_in(zone, &id->hash, now_s, victims);
    node = place ? at(zone, place) : NULL;
    if (node && node->sequence < id->sequence) {
        give_up_file(zone, node, victims);
        set_file(zone, node, id->sequence, size);
    } else if (node && node->sequence > id->sequence) {
        victims->ids[victims->count++] = *id;
    }
    give_lock(zone);
    return place ? 0 : -ENOSPC;
}

bool cache_zone_grow(struct cache_zone *zone, uint32_t place, uint64_t sequence, uint64_t size)
{
    struct node *node = at(zone, place);
    bool current;

    take_lock(zone);
    current = node->known && node->sequence == sequence;
    if (current) {
        zone->totals.bytes += size - node->size;
        __atomic_store_n(&node->size, size, __ATOMIC_RELAXED);
    }
    give_lock(zone);
    return current;
}

bool cache_zone_remove(struct cache_zone *zone, const struct cache_hash *hash, uint64_t sequence,
                       struct cache_victims *victims)
{
    unsigned before = victims->count;
    uint32_t place;

    take_lock(zone);
    place = look_up(zone, hash);
    if (place && (sequence == 0 || at(zone, place)->sequence == sequence))
        give_up_file(zone, at(zone, place), victims);
    give_lock(zone);
    return victims->count > before;
}

bool cache_zone_lease(struct cache_zone *zone, const struct cache_hash *hash, uint64_t token, uint64_t now_ms,
                      uint64_t until_ms, struct cache_victims *victims)
{
    bool taken = true; /* where there is no room to note it, everybody may */
    uint32_t place;

    take_lock(zone);
    place = take_in(zone, hash, (uint32_t)(now_ms / 1000), victims);
    if (place) {
        struct node *node = at(zone, place);

        taken = node->lease == token || !is_leased(node, now_ms);
        if (taken) {
            node->lease = token;
            node->lease_ms = until_ms;
        }
    }
    give_lock(zone);
    return taken;
}

void cache_zone_release(struct cache_zone *zone, const struct cache_hash *hash, uint64_t token)
{
    uint32_t place;

    take_lock(zone);
    place = look_up(zone, hash);
    if (place && at(zone, place)->lease == token)
        at(zone, place)->lease = 0;
    give_lock(zone);
}

bool cache_zone_leased(struct cache_zone *zone, const struct cache_hash *hash, uint64_t now_ms)
{
    uint32_t place;
    bool leased;

    take_lock(zone);
    place = look_up(zone, hash);
    leased = place && is_leased(at(zone, place), now_ms);
    give_lock(zone);
    return leased;
}

void cache_zone_abandon(struct cache_zone *zone, unsigned worker)
{
    take_lock(zone);
    for (uint32_t place = 1; place <= zone->node_count; place++) {
        if (at(zone, place)->lease != 0 && at(zone, place)->lease % LIMIT_WORKERS == worker)
            at(zone, place)->lease = 0;
    }
    if (zone->leader % LIMIT_WORKERS == worker)
        __atomic_store_n(&zone->leader, 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&zone->walks, 1, __ATOMIC_RELAXED);
    give_lock(zone);
}

bool cache_zone_evict(struct cache_zone *zone, uint32_t inactive_s, uint64_t max_bytes, uint64_t now_ms,
                      struct cache_victims *victims)
{
    bool more = true;

    take_lock(zone);
    for (unsigned looked = 0; looked < EVICT_LOOK && victims->count < CACHE_VICTIMS; looked++) {
        more = zone->oldest && (zone->totals.bytes > max_bytes ||
                                __atomic_load_n(&at(zone, zone->oldest)->used_s, __ATOMIC_RELAXED) < inactive_s);
        if (!more)
            break;
        (void)age_oldest(zone, inactive_s, now_ms, victims);
    }
    give_lock(zone);
    return more;
}

void cache_zone_totals(struct cache_zone *zone, struct cache_totals *out)
{
    take_lock(zone);
    *out = zone->totals;
    give_lock(zone);
}

/* The lease's end and the worker are one number, so that both change at once. */
bool cache_zone_lead(struct cache_zone *zone, unsigned worker, uint64_t now_ms, uint64_t lease_ms)
{
    uint64_t seen = __atomic_load_n(&zone->leader, __ATOMIC_RELAXED);
    bool ours = seen % LIMIT_WORKERS == worker && seen != 0;

    if (!ours && seen / LIMIT_WORKERS > now_ms)
        return false;
    return __atomic_compare_exchange_n(&zone->leader, &seen, (now_ms + lease_ms) * LIMIT_WORKERS + worker, false,
                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

uint64_t cache_zone_walks(const struct cache_zone *zone)
{
    return __atomic_load_n(&zone->walks, __ATOMIC_RELAXED);
}

void cache_zone_walked(struct cache_zone *zone, uint64_t walk)
{
    __atomic_store_n(&zone->walked, walk, __ATOMIC_RELAXED);
}

bool cache_zone_unwalked(const struct cache_zone *zone, uint64_t walk)
{
    return __atomic_load_n(&zone->walked, __ATOMIC_RELAXED) < walk;
}

bool cache_zone_loaded(const struct cache_zone *zone)
{
    return !cache_zone_unwalked(zone, 1);
}
