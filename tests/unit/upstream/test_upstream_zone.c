/* The entries of upstream servers in shared memory. */
#include "upstream/upstream_pool.h"

#include "../http/suite.h"
#include "../overwrite.h"
#include "scripted.h"

#include <errno.h>
#include <stdio.h>

#define WORKERS 2

static struct upstream_zone *zone;

static int claim(unsigned worker, uint64_t key, const char *group, const char *name)
{
    const struct upstream_claim peer = {.key = key, .group = str_from(group), .name = str_from(name), .weight = 1};

    return upstream_zone_claim(zone, worker, &peer);
}

START_TEST(peer_slots_are_shared_and_released)
{
    char name[16];
    int first;

    zone = upstream_zone_create(WORKERS);
    first = claim(0, 1, "g", "a");
    ck_assert_int_ge(first, 0);
    ck_assert_int_eq(claim(1, 1, "g", "a"), first);
    ck_assert_int_ne(claim(0, 2, "h", "a"), first);
    for (int i = 0; i < LIMIT_UPSTREAM_PEERS - 2; i++) {
        snprintf(name, sizeof(name), "%d", i);
        ck_assert_int_ge(claim(0, 3, "g", name), 0);
    }
    ck_assert_int_eq(claim(0, 4, "g", "one more"), -ENOSPC);
    upstream_zone_release(zone, 0, first);
    ck_assert_int_eq(claim(0, 4, "g", "one more"), -ENOSPC);
    shared_set(&upstream_zone_at(zone, first)->fails, 7);
    upstream_zone_release(zone, 1, first);
    ck_assert_int_eq(claim(0, 4, "g", "one more"), first);
    ck_assert_uint_eq(upstream_zone_at(zone, first)->fails, 0);
    upstream_zone_destroy(zone);
}
END_TEST

/* Claims, counts and releases the entries of a few peers. */
static void use_zone(void)
{
    int indexes[8];

    for (unsigned i = 0; i < 8; i++) {
        struct upstream_claim claim = {.key = i, .group = STR("group"), .name = STR("10.0.0.1:80"), .weight = 1 + i};

        indexes[i] = upstream_zone_claim(zone, i % WORKERS, &claim);
        ck_assert_int_lt(indexes[i], LIMIT_UPSTREAM_PEERS);
        if (indexes[i] >= 0)
            upstream_zone_count(zone, i % WORKERS, indexes[i], 1);
    }
    (void)upstream_zone_acquire_leadership(zone, 1, 1000, 100);
    for (unsigned i = 0; i < 8; i += 2) {
        if (indexes[i] >= 0)
            upstream_zone_release(zone, i % WORKERS, indexes[i]);
    }
    upstream_zone_abandon(zone, 0);
    upstream_zone_abandon(zone, 1);
}

START_TEST(other_process_writes_meanwhile)
{
    zone = upstream_zone_create(WORKERS);
    use_while_other_process_writes(use_zone, 1);
    use_zone();
    upstream_zone_destroy(zone);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {peer_slots_are_shared_and_released, other_process_writes_meanwhile};

    return suite_run("upstream_zone", tests, COUNT(tests));
}
