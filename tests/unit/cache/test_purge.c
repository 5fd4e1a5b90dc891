#include "cache/cache_purge.h"

#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static int ended_with;
static unsigned ends;

static void ended(struct cache_prefix_purge *purge, int result)
{
    ended_with = result;
    ends++;
}

/* Returns the number of removed entries. The result is in `ended_with`. */
static uint64_t run_purge(struct str prefix)
{
    struct cache_prefix_purge purge = {.ended = ended};
    unsigned before = ends;

    ck_assert_int_eq(cache_purge_prefix(store, &purge, prefix), 0);
    ck_assert_uint_eq(ends, before);
    for (unsigned i = 0; i < 2000 && ends == before; i++)
        ck_assert_int_ge(loop_run_iteration(&loop, loop.clock.monotonic_ms + 5), 0);
    ck_assert_uint_eq(ends, before + 1);
    ck_assert_ptr_null(purge.task);
    return purge.removed;
}

static uint64_t purge_prefix(struct str prefix)
{
    uint64_t removed = run_purge(prefix);

    ck_assert_int_eq(ended_with, 0);
    return removed;
}

START_TEST(a_key_is_purged_with_slices_and_an_incomplete_response)
{
    open_loaded();
    store_response("a", "head", STR("body"));
    store_response("a\nslices", "head", STR("body"));
    store_response("a\npartial", "head", STR("body"));
    store_response("ab", "head", STR("body"));
    ck_assert_uint_eq(cache_purge_key(store, STR("a")), 3);
    ck_assert_uint_eq(cache_purge_key(store, STR("a")), 0);
    ck_assert_uint_eq(cache_purge_key(store, STR("")), 0);
    finish_tasks();
    ck_assert_ptr_null(look_up("a"));
    ck_assert_ptr_null(look_up("a\nslices"));
    ck_assert_ptr_null(look_up("a\npartial"));
    check_is("ab", "head", STR("body"));
    ck_assert_uint_eq(cache_fixture_count(&fixture), 1);
    close_loaded();
}
END_TEST

/* More files than one step examines. */
START_TEST(a_prefix_is_purged)
{
    char key[32];

    open_loaded();
    for (unsigned i = 0; i < 40; i++) {
        snprintf(key, sizeof(key), "/a/%u", i);
        store_response(key, "head", STR("body"));
        snprintf(key, sizeof(key), "/b/%u", i);
        store_response(key, "head", STR("body"));
    }
    store_response("/a", "head", STR("body"));
    check_is("/a/1", "head", STR("body")); /* has an open entry */
    ck_assert_uint_eq(purge_prefix(STR("/a/")), 40);
    ck_assert_ptr_null(look_up("/a/1"));
    ck_assert_ptr_null(look_up("/a/39"));
    check_is("/a", "head", STR("body"));
    check_is("/b/0", "head", STR("body"));
    check_is("/b/39", "head", STR("body"));
    ck_assert_uint_eq(cache_fixture_count(&fixture), 41);
    ck_assert_uint_eq(purge_prefix(STR("/a/")), 0);
    store_response("/a/1", "head", STR("newer"));
    check_is("/a/1", "head", STR("newer"));
    ck_assert_uint_eq(purge_prefix(STR("")), 42);
    ck_assert_uint_eq(cache_fixture_count(&fixture), 0);
    ck_assert_uint_eq(purge_prefix(STR("")), 0);
    close_loaded();
}
END_TEST

START_TEST(updated_and_damaged_files_are_examined)
{
    struct cache_entry *entry;
    struct cache_hash hash;
    char name[CACHE_NAME];
    int fd;

    open_loaded();
    store_response("/updated", "head", STR("body"));
    entry = look_up("/updated");
    cache_hash_key(STR("/updated"), &hash);
    cache_store_update(store, entry, STR("a longer head"), &hash, 0, NULL);
    cache_entry_unref(entry);
    store_response("/damaged", "head", STR("body"));
    entry = look_up("/damaged");
    cache_file_name(&fixture.directory, &entry->id, name);
    cache_entry_unref(entry);
    finish_tasks();
    fd = openat(fixture.directory.fd, name, O_WRONLY | O_TRUNC);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_uint_eq(purge_prefix(STR("/")), 1);
    ck_assert(!was_logged("damaged"));
    ck_assert_ptr_null(look_up("/updated"));
    ck_assert_uint_eq(cache_fixture_count(&fixture), 1);
    close_loaded();
}
END_TEST

START_TEST(purge_without_descriptors_fails)
{
    open_loaded();
    store_response("/a", "head", STR("body"));
    finish_tasks();
    use_descriptors(0);
    ck_assert_uint_eq(run_purge(STR("/")), 0);
    ck_assert_int_eq(ended_with, -EMFILE);
    release_descriptors();
    ck_assert_uint_eq(purge_prefix(STR("/")), 1);
    close_loaded();
}
END_TEST

/* The key of a fetch is not known to the purge: it must not store a response that was requested before. */
START_TEST(fetches_from_before_the_purge_store_nothing)
{
    struct cache_fill *before, *other, *after;

    open_loaded();
    before = begin_fill("/a/1");
    other = begin_fill("/b");
    ck_assert_uint_eq(purge_prefix(STR("/a/")), 0);
    after = begin_fill("/a/2");
    cache_fill_add(before, STR("body"));
    cache_fill_end(before, STR("head"));
    cache_fill_end(other, STR("head"));
    cache_fill_add(after, STR("body"));
    cache_fill_end(after, STR("head"));
    finish_tasks();
    ck_assert_ptr_null(look_up("/a/1"));
    ck_assert_ptr_null(look_up("/b"));
    check_is("/a/2", "head", STR("body"));
    ck_assert_uint_eq(cache_fixture_count(&fixture), 1);
    close_loaded();
}
END_TEST

/* A file that is stored while the purge runs is newer, and stays. */
START_TEST(newer_files_stay)
{
    struct cache_file files[CACHE_VICTIMS];
    uint32_t cursor = 0;
    uint64_t since;
    bool more;

    open_loaded();
    store_response("old", "head", STR("body"));
    since = cache_zone_refuse_fetches(conf.zone);
    store_response("new", "head", STR("body"));
    ck_assert_uint_eq(cache_zone_files(conf.zone, &cursor, since, files, &more), 1);
    ck_assert(cache_zone_purge_file(conf.zone, &files[0].id, since));
    ck_assert(!cache_zone_purge_file(conf.zone, &files[0].id, since));
    cursor = UINT32_MAX;
    ck_assert_uint_eq(cache_zone_files(conf.zone, &cursor, since, files, &more), 0);
    ck_assert(!more);
    finish_tasks();
    ck_assert_ptr_null(look_up("old"));
    check_is("new", "head", STR("body"));
    close_loaded();
}
END_TEST

START_TEST(cancelled_or_rejected)
{
    struct cache_prefix_purge purge = {.ended = ended};

    cache_fixture_open(&fixture);
    open_store();
    ends = 0;
    ck_assert_int_eq(cache_purge_prefix(store, &purge, STR("/")), -EAGAIN);
    ck_assert_ptr_null(purge.task);
    for (unsigned i = 0; i < 1000 && !cache_zone_loaded(conf.zone); i++)
        turn_for(5);
    store_response("/a", "head", STR("body"));
    ck_assert_int_eq(cache_purge_prefix(store, &purge, STR("/")), 0);
    cache_purge_cancel(&purge);
    cache_purge_cancel(&purge);
    finish_tasks();
    ck_assert_uint_eq(ends, 0);
    close_loaded();
}
END_TEST

int main(void)
{
    const TTest *tests[] = {a_key_is_purged_with_slices_and_an_incomplete_response, a_prefix_is_purged,
                            updated_and_damaged_files_are_examined,
                            purge_without_descriptors_fails, fetches_from_before_the_purge_store_nothing,
                            newer_files_stay, cancelled_or_rejected};

    return cache_fixture_run("cache_purge", tests, COUNT(tests));
}
