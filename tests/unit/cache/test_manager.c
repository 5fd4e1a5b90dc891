/* The scans of the directory by the cache manager. */
#include "store_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

START_TEST(files_of_other_levels_are_deleted)
{
    static const unsigned levels[][CACHE_LEVELS] = {{1, 2}, {2}, {2, 2, 1}, {1, 2, 1}, {1}, {2, 1}};

    cache_fixture_open(&fixture);
    ck_assert_int_eq(mkdirat(fixture.directory.fd, "old", 0700), 0);
    close(openat(fixture.directory.fd, "old/00000000000000000000000000000000.0000000000001234", O_CREAT | O_WRONLY,
                 0600));
    for (size_t i = 0; i < COUNT(levels); i++) {
        memcpy(fixture.directory.levels, levels[i], sizeof(levels[i]));
        open_store();
        for (unsigned turns = 0; turns < 1000 && !cache_zone_loaded(conf.zone); turns++)
            turn_for(5);
        ck_assert(cache_zone_loaded(conf.zone));
        ck_assert_ptr_null(look_up("a"));
        ck_assert_uint_eq(cache_fixture_count(&fixture), 1);
        store_response("a", "head", STR("body"));
        check_is("a", "head", STR("body"));
        close_store();
    }
    cache_fixture_close(&fixture);
}
END_TEST

/* The directory of another cache may be named like a subdirectory of the scanned one. */
START_TEST(files_of_nested_caches_are_kept)
{
    cache_fixture_open(&fixture);
    ck_assert_int_eq(mkdirat(fixture.directory.fd, "b", 0700), 0);
    ck_assert_int_eq(mkdirat(fixture.directory.fd, "b/c", 0700), 0);
    ck_assert_int_eq(mkdirat(fixture.directory.fd, "b/c/dd", 0700), 0);
    close(openat(fixture.directory.fd, "b/c/dd/00000000000000000000000000000ddc.0000000000001234", O_CREAT | O_WRONLY,
                 0600));
    open_store();
    for (unsigned i = 0; i < 1000 && !cache_zone_loaded(conf.zone); i++)
        turn_for(5);
    ck_assert(cache_zone_loaded(conf.zone));
    ck_assert_uint_eq(cache_fixture_count(&fixture), 1);
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

/* Descriptors are needed for the helper threads, the directory, two levels of subdirectories, and a file. */
START_TEST(scan_without_descriptors_is_repeated)
{
    cache_fixture_open(&fixture);
    open_store();
    store_response("a", "head", STR("body"));
    close_store();
    for (unsigned count = 0; count <= 5; count++) {
        open_store();
        use_descriptors(count);
        for (unsigned i = 0; i < 1000 && !cache_zone_loaded(conf.zone) && !was_logged("is incomplete"); i++)
            run_manager();
        ck_assert_int_eq(cache_zone_loaded(conf.zone), count == 5);
        ck_assert_int_eq(was_logged("the scan of the directory is incomplete"), count < 5);
        release_descriptors();
        for (unsigned i = 0; i < 1000 && !cache_zone_loaded(conf.zone); i++)
            run_manager();
        check_is("a", "head", STR("body"));
        close_store();
    }
    cache_fixture_close(&fixture);
}
END_TEST

/* A step that evicts files is followed by the next one after manager_sleep. */
START_TEST(incomplete_scan_is_logged_once_per_second)
{
    struct cache_victims victims = {0};
    struct cache_totals totals;
    uint64_t began_ms;
    char key[16];

    cache_fixture_open(&fixture);
    open_store();
    for (unsigned i = 0; i < 5 * CACHE_VICTIMS; i++) {
        struct cache_id id = {.sequence = cache_zone_sequence(conf.zone)};

        snprintf(key, sizeof(key), "key %u", i);
        cache_hash_key(str_from(key), &id.hash);
        ck_assert_int_eq(cache_zone_publish(conf.zone, &id, 10, &(struct cache_origin){id.hash, id.sequence}, 1,
                                            &victims), 0);
    }
    conf.max_size = 0;
    began_ms = loop.clock.monotonic_ms;
    use_descriptors(0);
    do {
        turn_for(1);
        cache_zone_totals(conf.zone, &totals);
    } while (totals.files > 0);
    ck_assert(was_logged("the scan of the directory is incomplete"));
    ck_assert_uint_le(logged_lines(), 1 + (loop.clock.monotonic_ms - began_ms) / LIMIT_LOG_INTERVAL_MS);
    release_descriptors();
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

/* Makes a temporary file of a process that has ended. Returns its descriptor. */
static int make_unfinished_file(void)
{
    int fd;

    ck_assert_int_eq(mkdirat(fixture.directory.fd, "0", 0700), 0);
    ck_assert_int_eq(mkdirat(fixture.directory.fd, "0/00", 0700), 0);
    fd = openat(fixture.directory.fd, "0/00/00000000000000000000000000000000.0000000000001234.tmp",
                O_CREAT | O_WRONLY, 0600);
    ck_assert_int_ge(fd, 0);
    return fd;
}

/* The directories can be opened, but not the file. */
START_TEST(unfinished_file_is_deleted_once_it_can_be_opened)
{
    cache_fixture_open(&fixture);
    close(make_unfinished_file());
    open_store();
    use_descriptors(4);
    for (unsigned i = 0; i < 1000 && !cache_zone_loaded(conf.zone) && !was_logged("is incomplete"); i++)
        run_manager();
    ck_assert(was_logged("the scan of the directory is incomplete"));
    release_descriptors();
    for (unsigned i = 0; i < 1000 && !cache_zone_loaded(conf.zone); i++)
        run_manager();
    ck_assert_uint_eq(cache_fixture_count(&fixture), 0);
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

/* The kernel may release the lock of a killed process after the first scan. */
START_TEST(locked_temporary_file_is_deleted_later)
{
    int fd;

    cache_fixture_open(&fixture);
    fd = make_unfinished_file();
    ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    open_store();
    for (unsigned i = 0; i < 1000 && !cache_zone_loaded(conf.zone); i++)
        turn_for(5);
    ck_assert(cache_zone_loaded(conf.zone));
    ck_assert_uint_eq(cache_fixture_count(&fixture), 1);
    close(fd);
    for (unsigned i = 0; i < 1000 && cache_fixture_count(&fixture) > 0; i++)
        run_manager();
    ck_assert_uint_eq(cache_fixture_count(&fixture), 0);
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

/* The scan that repeats the first one can open the directories, but not the file. */
START_TEST(repeated_scan_without_descriptors_is_repeated)
{
    int fd;

    cache_fixture_open(&fixture);
    fd = make_unfinished_file();
    ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    open_store();
    for (unsigned i = 0; i < 1000 && !cache_zone_loaded(conf.zone); i++)
        turn_for(5);
    ck_assert(cache_zone_loaded(conf.zone));
    close(fd);
    use_descriptors(3);
    for (unsigned i = 0; i < 1000 && !was_logged("is incomplete"); i++)
        run_manager();
    ck_assert(was_logged("the scan of the directory is incomplete"));
    release_descriptors();
    for (unsigned i = 0; i < 1000 && cache_fixture_count(&fixture) > 0; i++)
        run_manager();
    ck_assert_uint_eq(cache_fixture_count(&fixture), 0);
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        files_of_other_levels_are_deleted, files_of_nested_caches_are_kept, scan_without_descriptors_is_repeated,
        incomplete_scan_is_logged_once_per_second, unfinished_file_is_deleted_once_it_can_be_opened,
        locked_temporary_file_is_deleted_later, repeated_scan_without_descriptors_is_repeated,
    };

    return cache_fixture_run("manager", tests, COUNT(tests));
}
