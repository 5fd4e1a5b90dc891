/* Zones of status_zone: names, rows of workers, and the zones of a former configuration. */
#include "base/status_zone.h"

#include "../overwrite.h"
#include "../runner.h"
#include "base/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct arena arena;

static void setup(void)
{
    arena_init(&arena, NULL, 0);
}

static void teardown(void)
{
    arena_reset(&arena);
}

static struct status_zone *add(struct status_zones *zones, enum status_zone_kind kind, const char *name)
{
    struct status_zone *zone = NULL;

    ck_assert_int_eq(status_zones_add(zones, &arena, kind, str_from(name), &zone), 0);
    ck_assert_ptr_nonnull(zone);
    return zone;
}

static void count(const struct status_zone *zone, unsigned slot, int status)
{
    status_zone_count(zone, slot,
                      &(struct status_zone_request){.status = status, .took_us = 2000, .sent = 10, .received = 3});
}

static uint64_t requests(const struct status_zone *zone, unsigned slots)
{
    struct status_zone_counts sum;

    status_zone_sum(zone, slots, &sum);
    return latency_count(&sum.latency);
}

START_TEST(zones_are_found_by_kind_and_name)
{
    struct status_zones zones = {0};
    struct status_zone *server = add(&zones, STATUS_ZONE_SERVER, "a");

    ck_assert_ptr_ne(add(&zones, STATUS_ZONE_LOCATION, "a"), server);
    ck_assert_ptr_ne(add(&zones, STATUS_ZONE_SERVER, "A"), server);
    ck_assert_ptr_eq(add(&zones, STATUS_ZONE_SERVER, "a"), server);
    ck_assert_uint_eq(zones.count, 3);
}
END_TEST

START_TEST(number_of_zones_is_limited)
{
    struct status_zones zones = {0};
    struct status_zone *zone = NULL;

    for (int i = 0; i < LIMIT_STATUS_ZONES; i++) {
        struct str name = arena_printf(&arena, "zone %d", i);

        ck_assert_int_eq(status_zones_add(&zones, &arena, STATUS_ZONE_SERVER, name, &zone), 0);
    }
    zone = NULL;
    ck_assert_int_eq(status_zones_add(&zones, &arena, STATUS_ZONE_SERVER, STR("one more"), &zone), -ENOSPC);
    ck_assert_ptr_null(zone);
    ck_assert_ptr_eq(add(&zones, STATUS_ZONE_SERVER, "zone 1023"), zones.items[1023]);
}
END_TEST

START_TEST(sum_has_the_rows_of_all_workers)
{
    static const int statuses[] = {200, 204, 101, 302, 404, 503, 0, 99, 600, -1};
    static const uint64_t classes[STATUS_ZONE_CLASSES] = {4, 1, 2, 1, 1, 1};
    struct status_zones zones = {0};
    const struct status_zone *zone = add(&zones, STATUS_ZONE_SERVER, "a");
    const struct status_zone *other = add(&zones, STATUS_ZONE_SERVER, "b");
    struct status_zone_counts sum;

    ck_assert_int_eq(status_zones_open(&zones, NULL, 3), 0);
    for (unsigned i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        count(zone, i % 3, statuses[i]);
    status_zone_sum(zone, 3, &sum);
    ck_assert_uint_eq(latency_count(&sum.latency), 10);
    ck_assert_uint_eq(sum.latency.counts[1], 10);
    ck_assert_uint_eq(sum.latency.sum_us, 20000);
    ck_assert_uint_eq(sum.sent, 100);
    ck_assert_uint_eq(sum.received, 30);
    ck_assert_mem_eq(sum.classes, classes, sizeof(classes));
    ck_assert_uint_eq(requests(other, 3), 0);
    ck_assert_uint_eq(requests(zone, 1), 4);
    ck_assert_uint_eq(requests(zone, UINT32_MAX), 10);
    status_zones_close(&zones);
}
END_TEST

START_TEST(nothing_is_counted_without_a_row)
{
    struct status_zones zones = {0};
    const struct status_zone *zone = add(&zones, STATUS_ZONE_SERVER, "a");

    count(NULL, 0, 200);
    count(zone, 0, 200);
    ck_assert_uint_eq(requests(zone, 1), 0);
    ck_assert_int_eq(status_zones_open(&zones, NULL, 2), 0);
    count(zone, 2, 200);
    count(zone, UINT32_MAX, 200);
    ck_assert_uint_eq(requests(zone, UINT32_MAX), 0);
    status_zones_close(&zones);
    count(zone, 0, 200);
    ck_assert_uint_eq(requests(zone, 2), 0);
}
END_TEST

START_TEST(zones_of_the_former_configuration_continue)
{
    struct status_zones before = {0}, now = {0}, later = {0};
    const struct status_zone *kept = add(&before, STATUS_ZONE_SERVER, "kept");
    const struct status_zone *gone = add(&before, STATUS_ZONE_SERVER, "gone");
    const struct status_zone *again, *new_kind;

    ck_assert_int_eq(status_zones_open(&before, NULL, 2), 0);
    count(kept, 0, 200);
    count(gone, 0, 200);
    new_kind = add(&now, STATUS_ZONE_LOCATION, "kept");
    again = add(&now, STATUS_ZONE_SERVER, "kept");
    ck_assert_int_eq(status_zones_open(&now, &before, 2), 0);
    count(kept, 0, 200); /* by a worker that ends */
    count(again, 1, 200);
    ck_assert_uint_eq(requests(again, 2), 3);
    ck_assert_uint_eq(requests(new_kind, 2), 0);
    status_zones_close(&before);
    ck_assert_uint_eq(requests(again, 2), 3);
    again = add(&later, STATUS_ZONE_SERVER, "gone");
    ck_assert_int_eq(status_zones_open(&later, &now, 2), 0);
    ck_assert_uint_eq(requests(again, 2), 0);
    status_zones_close(&later);
    status_zones_close(&now);
}
END_TEST

START_TEST(counts_of_processes_are_added)
{
    struct status_zones zones = {0};
    const struct status_zone *zone = add(&zones, STATUS_ZONE_LOCATION, "a");

    ck_assert_int_eq(status_zones_open(&zones, NULL, 2), 0);
    for (unsigned i = 0; i < 4; i++) { /* the last two replace the first two */
        pid_t child = fork();
        int status;

        if (child == 0) {
            for (unsigned k = 0; k < 1000; k++)
                count(zone, i % 2, 200);
            _exit(0);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_uint_eq(requests(zone, 2), 4000);
    status_zones_close(&zones);
}
END_TEST

/* A worker writes any values: the master carries over and closes, other workers count and print. */
START_TEST(forged_counts_select_no_memory)
{
    struct status_zones zones = {0}, now = {0};
    const struct status_zone *zone = add(&zones, STATUS_ZONE_SERVER, "a");

    ck_assert_int_eq(status_zones_open(&zones, NULL, 2), 0);
    overwrite_shared_memory(_i ? 0xff : 0);
    zone = add(&now, STATUS_ZONE_SERVER, "a");
    ck_assert_int_eq(status_zones_open(&now, &zones, 2), 0);
    count(zone, 0, 200);
    count(zone, 1, 200);
    count(zone, 2, 200);
    (void)requests(zone, UINT32_MAX);
    status_zones_close(&zones);
    status_zones_close(&now);
}
END_TEST

static uint64_t active(const struct status_zone *zone)
{
    struct status_zone_counts sum;

    status_zone_sum(zone, UINT32_MAX, &sum);
    return sum.active;
}

START_TEST(open_connections_are_active)
{
    struct status_zones zones = {0};
    const struct status_zone *zone = add(&zones, STATUS_ZONE_STREAM, "a");
    const struct status_zone *other = add(&zones, STATUS_ZONE_STREAM, "b");

    status_zones_abandon(&zones, 0); /* not open */
    status_zone_enter(zone, 0);
    ck_assert_int_eq(status_zones_open(&zones, NULL, 2), 0);
    status_zone_enter(NULL, 0);
    status_zone_enter(zone, 2);
    ck_assert_uint_eq(active(zone), 0);
    for (int i = 0; i < 3; i++)
        status_zone_enter(zone, 0);
    status_zone_enter(zone, 1);
    status_zone_enter(other, 0);
    status_zone_leave(zone, 0);
    status_zone_leave(zone, 2);
    status_zone_leave(NULL, 0);
    count(zone, 0, 200);
    ck_assert_uint_eq(active(zone), 3);
    status_zones_abandon(&zones, 2);
    status_zones_abandon(&zones, 0);
    ck_assert_uint_eq(active(zone), 1);
    ck_assert_uint_eq(active(other), 0);
    ck_assert_uint_eq(requests(zone, 2), 1);
    status_zone_leave(zone, 0);
    ck_assert_uint_eq(active(zone), 1);
    status_zones_close(&zones);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, zones_are_found_by_kind_and_name);
    tcase_add_test(tcase, number_of_zones_is_limited);
    tcase_add_test(tcase, sum_has_the_rows_of_all_workers);
    tcase_add_test(tcase, nothing_is_counted_without_a_row);
    tcase_add_test(tcase, zones_of_the_former_configuration_continue);
    tcase_add_test(tcase, counts_of_processes_are_added);
    tcase_add_test(tcase, open_connections_are_active);
    tcase_add_loop_test(tcase, forged_counts_select_no_memory, 0, 2);
}

int main(void)
{
    return run_suite("status_zone", add_tests);
}
