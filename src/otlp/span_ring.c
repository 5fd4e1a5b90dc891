/*
 * Single-producer, single-consumer rings. head and tail only grow; the place of position n is n modulo the capacity.
 */
#include "otlp/span_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

/* In shared memory, on cache lines of their own; atomic. */
struct ring {
    _Alignas(64) uint64_t head;     /* written by the worker: the position of the next span */
    _Alignas(64) uint64_t tail;     /* written by the exporter: the position of the oldest span */
};

struct shared_rings {
    _Alignas(64) uint64_t taken;    /* span_zone_set_taken */
    struct ring rings[];
};

/* Private memory of each process. */
struct span_zone {
    unsigned workers, next;         /* next: the ring that is read first */
    uint64_t capacity, wake_at;
    struct otlp_counters *counters;
    struct shared_rings *shared;
    struct span *spans;             /* in the same mapping: `capacity` for each worker */
    size_t size;
    int wake_fd;
};

static size_t spans_offset(unsigned workers)
{
    return (sizeof(struct shared_rings) + workers * sizeof(struct ring) + 63) & ~(size_t)63;
}

/* Pages are not reserved: a ring takes memory as it is filled for the first time. */
static int map_rings(struct span_zone *zone)
{
    uint64_t bytes;

    if (__builtin_mul_overflow(zone->capacity, zone->workers * (uint64_t)sizeof(struct span), &bytes) ||
        bytes > SIZE_MAX / 2)
        return -ENOMEM;
    zone->size = spans_offset(zone->workers) + (size_t)bytes;
    zone->shared = mmap(NULL, zone->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zone->shared == MAP_FAILED)
        return -errno;
    zone->spans = (struct span *)(void *)((char *)zone->shared + spans_offset(zone->workers));
    return 0;
}

int span_zone_open(unsigned workers, uint64_t capacity, uint64_t wake_at, struct otlp_counters *counters,
                   struct span_zone **out_zone)
{
    struct span_zone *zone = calloc(1, sizeof(*zone));
    int error;

    if (!zone)
        return -ENOMEM;
    zone->workers = workers;
    zone->capacity = capacity;
    zone->wake_at = wake_at;
    zone->counters = counters;
    zone->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    error = zone->wake_fd < 0 ? -errno : map_rings(zone);
    if (error < 0) {
        if (zone->wake_fd >= 0)
            close(zone->wake_fd);
        free(zone);
        return error;
    }
    *out_zone = zone;
    return 0;
}

void span_zone_close(struct span_zone *zone)
{
    if (!zone)
        return;
    munmap(zone->shared, zone->size);
    close(zone->wake_fd);
    free(zone);
}

int span_zone_wake_fd(const struct span_zone *zone)
{
    return zone->wake_fd;
}

struct otlp_counters *span_zone_counters(const struct span_zone *zone)
{
    return zone->counters;
}

static struct span *span_at(const struct span_zone *zone, unsigned worker, uint64_t position)
{
    return &zone->spans[worker * zone->capacity + position % zone->capacity];
}

struct span *span_ring_reserve(struct span_zone *zone, unsigned worker)
{
    struct ring *ring = &zone->shared->rings[worker];
    uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
    struct span *span = span_at(zone, worker, head);

    if (head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) >= zone->capacity) {
        otlp_count(&zone->counters->dropped_full, 1);
        return NULL;
    }
    memset(span, 0, offsetof(struct span, items));
    return span;
}

void span_ring_commit(struct span_zone *zone, unsigned worker)
{
    struct ring *ring = &zone->shared->rings[worker];
    uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED) + 1;
    const uint64_t one = 1;

    __atomic_store_n(&ring->head, head, __ATOMIC_RELEASE);
    /* Not for each span: an exporter that is sending takes the waiting spans afterwards without being woken. */
    if ((head - __atomic_load_n(&ring->tail, __ATOMIC_RELAXED)) % zone->wake_at == 0 &&
        write(zone->wake_fd, &one, sizeof(one)) < 0)
        return; /* EAGAIN: it is readable */
}

/* The spans in a ring; more than the capacity: its positions were overwritten. */
static uint64_t ring_waiting(const struct ring *ring, uint64_t *out_tail)
{
    *out_tail = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
    return __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) - *out_tail;
}

uint64_t span_zone_waiting(const struct span_zone *zone)
{
    uint64_t sum = 0, tail;

    for (unsigned i = 0; i < zone->workers; i++) {
        uint64_t waiting = ring_waiting(&zone->shared->rings[i], &tail);

        sum += waiting <= zone->capacity ? waiting : zone->capacity;
    }
    return sum;
}

/* Empties a ring. The number of its spans is not known: its capacity is counted. */
static void discard_ring(struct span_zone *zone, struct ring *ring, uint64_t tail, uint64_t waiting)
{
    __atomic_store_n(&ring->tail, tail + waiting, __ATOMIC_RELEASE);
    otlp_count(&zone->counters->dropped_failed, zone->capacity);
}

bool span_zone_take(struct span_zone *zone, struct span *out_span, bool *out_corrupt)
{
    for (unsigned i = 0; i < zone->workers; i++) {
        unsigned worker = (zone->next + i) % zone->workers;
        struct ring *ring = &zone->shared->rings[worker];
        uint64_t tail, waiting = ring_waiting(ring, &tail);

        if (waiting > zone->capacity) {
            discard_ring(zone, ring, tail, waiting);
            *out_corrupt = true;
        } else if (waiting > 0) {
            memcpy(out_span, span_at(zone, worker, tail), sizeof(*out_span));
            __atomic_store_n(&ring->tail, tail + 1, __ATOMIC_RELEASE);
            zone->next = (worker + 1) % zone->workers;
            return true;
        }
    }
    return false;
}

uint64_t span_zone_set_taken(struct span_zone *zone, uint64_t spans)
{
    uint64_t before = __atomic_exchange_n(&zone->shared->taken, spans, __ATOMIC_RELAXED);

    return before < LIMIT_OTLP_BATCH ? before : LIMIT_OTLP_BATCH;
}
