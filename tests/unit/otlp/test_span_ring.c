#include "otlp/span_ring.h"

#include "../runner.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

static struct otlp_counters counters;

static struct span_zone *open_zone(unsigned workers, uint64_t capacity, uint64_t wake_at)
{
    struct span_zone *zone;

    counters = (struct otlp_counters){0};
    ck_assert_int_eq(span_zone_open(workers, capacity, wake_at, &counters, &zone), 0);
    return zone;
}

static bool put(struct span_zone *zone, unsigned worker, uint64_t number)
{
    struct span *span = span_ring_reserve(zone, worker);

    if (!span)
        return false;
    span->start_ns = number;
    span_ring_commit(zone, worker);
    return true;
}

/* The number of the next span; UINT64_MAX: none. */
static uint64_t take(struct span_zone *zone)
{
    struct span span;
    bool corrupt = false;
    bool taken = span_zone_take(zone, &span, &corrupt);

    ck_assert(!corrupt);
    return taken ? span.start_ns : UINT64_MAX;
}

static bool is_woken(const struct span_zone *zone)
{
    struct pollfd entry = {.fd = span_zone_wake_fd(zone), .events = POLLIN};
    uint64_t wakes;

    if (poll(&entry, 1, 0) != 1)
        return false;
    ck_assert_int_eq(read(entry.fd, &wakes, sizeof(wakes)), sizeof(wakes));
    return true;
}

START_TEST(order_is_kept_when_positions_wrap)
{
    struct span_zone *zone = open_zone(1, 3, 3);

    for (uint64_t i = 0; i < 20; i += 2) {
        ck_assert(put(zone, 0, i) && put(zone, 0, i + 1));
        ck_assert_uint_eq(take(zone), i);
        ck_assert_uint_eq(take(zone), i + 1);
    }
    ck_assert_uint_eq(take(zone), UINT64_MAX);
    span_zone_close(zone);
}
END_TEST

START_TEST(a_full_ring_drops_and_counts)
{
    struct span_zone *zone = open_zone(2, 2, 2);

    ck_assert(put(zone, 0, 1) && put(zone, 0, 2));
    ck_assert(!put(zone, 0, 3) && !put(zone, 0, 4));
    ck_assert_uint_eq(counters.dropped_full, 2);
    ck_assert(put(zone, 1, 5)); /* the ring of another worker */
    ck_assert_uint_eq(span_zone_waiting(zone), 3);
    ck_assert_uint_eq(take(zone), 1);
    ck_assert(put(zone, 0, 6));
    ck_assert_uint_eq(counters.dropped_full, 2);
    span_zone_close(zone);
}
END_TEST

START_TEST(rings_are_read_in_turn)
{
    struct span_zone *zone = open_zone(3, 4, 4);

    ck_assert(put(zone, 0, 1) && put(zone, 0, 2) && put(zone, 2, 3) && put(zone, 2, 4));
    ck_assert_uint_eq(take(zone), 1);
    ck_assert_uint_eq(take(zone), 3);
    ck_assert_uint_eq(take(zone), 2);
    ck_assert_uint_eq(take(zone), 4);
    ck_assert_uint_eq(take(zone), UINT64_MAX);
    span_zone_close(zone);
}
END_TEST

START_TEST(a_reserved_span_is_not_visible)
{
    struct span_zone *zone = open_zone(1, 2, 1);
    struct span *span = span_ring_reserve(zone, 0);

    span->start_ns = 1;
    ck_assert_uint_eq(take(zone), UINT64_MAX);
    ck_assert_ptr_eq(span_ring_reserve(zone, 0), span); /* a worker that died has not published it */
    ck_assert_uint_eq(span->start_ns, 0);
    span_ring_commit(zone, 0);
    ck_assert_uint_eq(take(zone), 0);
    span_zone_close(zone);
}
END_TEST

START_TEST(the_exporter_is_woken_by_a_batch)
{
    struct span_zone *zone = open_zone(1, 8, 2);

    ck_assert(put(zone, 0, 1) && !is_woken(zone));
    ck_assert(put(zone, 0, 2) && is_woken(zone));
    ck_assert(put(zone, 0, 3) && !is_woken(zone));
    ck_assert(put(zone, 0, 4) && is_woken(zone));
    span_zone_close(zone);
}
END_TEST

START_TEST(another_process_fills_a_ring)
{
    struct span_zone *zone = open_zone(2, 4, 4);
    pid_t pid = fork();

    if (pid == 0)
        _exit(put(zone, 1, 7) && put(zone, 1, 8) ? 0 : 1);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_uint_eq(take(zone), 7);
    ck_assert_uint_eq(take(zone), 8);
    span_zone_close(zone);
}
END_TEST

/* The first word of the ring's memory that is not in use by `taken`: found by its value. */
static uint64_t *find_head(struct span_zone *zone, uint64_t value)
{
    char *base = (char *)span_ring_reserve(zone, 0);
    uint64_t *word;

    /* The positions precede the spans: 64 bytes of `taken`, 64 each of head and tail. */
    word = (uint64_t *)(void *)(base - 2 * 64 - value * sizeof(struct span));
    ck_assert_uint_eq(*word, value);
    return word;
}

START_TEST(overwritten_positions_are_survived)
{
    static const uint64_t written[] = {UINT64_MAX, UINT64_MAX / 2, 6, 1};

    for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
        struct span_zone *zone = open_zone(1, 4, 4);
        bool corrupt = false;
        struct span span;
        uint64_t *head;

        ck_assert(put(zone, 0, 1) && put(zone, 0, 2));
        head = find_head(zone, 2);
        ck_assert_uint_eq(take(zone), 1);
        ck_assert_uint_eq(take(zone), 2);
        *head = written[i] + (written[i] == 6); /* impossible: more than 4 after the tail, or before it */
        ck_assert_uint_le(span_zone_waiting(zone), 4);
        ck_assert(!span_zone_take(zone, &span, &corrupt) && corrupt);
        ck_assert_uint_eq(counters.dropped_failed, 4);
        ck_assert(put(zone, 0, 9)); /* the ring is usable again */
        ck_assert_uint_eq(take(zone), 9);
        span_zone_close(zone);
    }
}
END_TEST

START_TEST(taken_spans_are_limited)
{
    struct span_zone *zone = open_zone(1, 4, 4);

    ck_assert_uint_eq(span_zone_set_taken(zone, 3), 0);
    ck_assert_uint_eq(span_zone_set_taken(zone, UINT64_MAX), 3);
    ck_assert_uint_eq(span_zone_set_taken(zone, 0), LIMIT_OTLP_BATCH);
    span_zone_close(zone);
}
END_TEST

START_TEST(sizes_are_checked)
{
    struct span_zone *zone = NULL;

    ck_assert_int_lt(span_zone_open(1024, UINT64_MAX / 2, 1, &counters, &zone), 0);
    ck_assert_ptr_null(zone);
    span_zone_close(NULL);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {order_is_kept_when_positions_wrap, a_full_ring_drops_and_counts,
                                  rings_are_read_in_turn, a_reserved_span_is_not_visible,
                                  the_exporter_is_woken_by_a_batch, another_process_fills_a_ring,
                                  overwritten_positions_are_survived, taken_spans_are_limited, sizes_are_checked, NULL};

    return run_tests("span_ring", tests);
}
