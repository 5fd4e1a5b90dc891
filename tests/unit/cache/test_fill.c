#include "store_fixture.h"

#include <errno.h>
#include <stdio.h>

/*
 * Stores `between`, preceded and followed by parts of the body of `from`, as "spliced", and compares the result with
 * `body`.
 */
static void check_splice(const char *from, struct str body, uint64_t first, struct str between, uint64_t end)
{
    struct cache_entry *entry = look_up(from);
    struct cache_fill *made = begin_fill("spliced");
    struct buffer whole = {0};

    ck_assert_ptr_nonnull(entry);
    if (first > 0)
        cache_fill_prepend(made, entry, 0, first);
    if (end > 0)
        cache_fill_append(made, entry, body.length - end, end);
    cache_entry_unref(entry);
    ck_assert(cache_store_discard(store, str_from(from))); /* the entry's file stays open */
    for (size_t at = 0; at < between.length; at += 30000)
        cache_fill_add(made, str_slice(between, at, at + 30000));
    cache_fill_end(made, STR("head"));
    finish_tasks();
    ck_assert_int_eq(buffer_append(&whole, str_slice(body, 0, (size_t)first)), 0);
    ck_assert_int_eq(buffer_append(&whole, between), 0);
    ck_assert_int_eq(buffer_append(&whole, str_skip(body, body.length - (size_t)end)), 0);
    check_is("spliced", "head", buffer_str(&whole));
    ck_assert_uint_eq(cache_fixture_count(&fixture), 1);
    buffer_finish(&whole);
}

START_TEST(fill_splices_stored_and_new_bytes)
{
    static const size_t sizes[] = {1, 1000, LIMIT_FILE_CACHE_CONTENT, LIMIT_FILE_CACHE_CONTENT + 1, LIMIT_CACHE_COPY,
                                   2 * LIMIT_CACHE_COPY + 17};
    static char old[2 * LIMIT_CACHE_COPY + 17], new[200000];

    for (size_t i = 0; i < sizeof(old); i++)
        old[i] = (char)(i * 7 / 3);
    memset(new, 'n', sizeof(new));
    cache_fixture_open(&fixture);
    open_store();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct str body = str_of(old, sizes[i]);

        store_response("old", "its head", body);
        check_splice("old", body, sizes[i], str_of(new, sizeof(new)), 0);
        store_response("old", "its head", body);
        check_splice("old", body, 0, str_of(new, 1), sizes[i]);
        store_response("old", "its head", body);
        check_splice("old", body, sizes[i] / 2, str_of(new, sizeof(new)), sizes[i] / 2);
    }
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

START_TEST(failed_splice_stores_nothing)
{
    static char old[2 * LIMIT_CACHE_COPY];
    struct cache_entry *entry;
    struct cache_fill *made;

    cache_fixture_open(&fixture);
    open_store();
    store_response("old", "its head", str_of(old, sizeof(old)));
    entry = look_up("old");
    made = begin_fill("given up");
    cache_fill_prepend(made, entry, 0, sizeof(old));
    cache_fill_discard(made); /* while a part of the other body is being copied */
    finish_tasks();
    ck_assert_uint_eq(cache_fixture_count(&fixture), 1);

    made = begin_fill("too short");
    cache_fill_append(made, entry, 0, sizeof(old));
    made->after.at = 2 * sizeof(old); /* after the end of the file, as if the file had been truncated */
    cache_fill_add(made, STR("new"));
    cache_fill_end(made, STR("head"));
    finish_tasks();
    ck_assert_ptr_null(look_up("too short"));
    ck_assert(was_logged("without being stored"));
    ck_assert_uint_eq(cache_fixture_count(&fixture), 1);
    cache_entry_unref(entry);
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

static unsigned fills_ended;

static void fill_ended(struct cache_fill *fill)
{
    fills_ended++;
}

static void discard_fill(void *owner)
{
    cache_fill_discard(owner);
}

static void end_fill(void *owner)
{
    cache_fill_end(owner, STR("head"));
}

START_TEST(fill_ends_when_it_is_writable)
{
    static char piece[LIMIT_CACHE_QUEUED + LIMIT_CACHE_WRITE];
    void (*const ends[])(void *owner) = {discard_fill, end_fill};

    cache_fixture_open(&fixture);
    open_store();
    for (unsigned i = 0; i < COUNT(ends); i++) {
        struct cache_fill *made = begin_fill("a");

        fills_ended = 0;
        made->owner = made;
        made->writable = ends[i];
        made->ended = fill_ended;
        cache_fill_add(made, str_of(piece, LIMIT_CACHE_WRITE));
        cache_fill_add(made, str_of(piece, LIMIT_CACHE_QUEUED));
        ck_assert(cache_fill_must_wait(made));
        finish_tasks();
        ck_assert_uint_eq(fills_ended, 1);
        ck_assert_uint_eq(cache_fixture_count(&fixture), i);
    }
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

START_TEST(fill_ends_under_another_key)
{
    static char body[LIMIT_CACHE_WRITE * 2];
    struct cache_totals totals;
    struct cache_fill *made;

    cache_fixture_open(&fixture);
    open_store();
    for (unsigned i = 0; i < 40; i++) { /* the directories of some of the 40 keys do not exist yet */
        char key[20];

        snprintf(key, sizeof(key), "other %u", i);
        made = begin_fill("one");
        cache_fill_add(made, i % 2 ? STR("short") : str_of(body, sizeof(body)));
        if (i % 4)
            finish_tasks();
        cache_fill_end_as(made, str_from(key), STR("head"));
        finish_tasks();
        check_is(key, "head", i % 2 ? STR("short") : str_of(body, sizeof(body)));
    }
    ck_assert_ptr_null(look_up("one"));
    made = begin_fill("one");
    cache_fill_add(made, STR("short"));
    made->error = -ENOSPC;
    cache_fill_end_as(made, STR("failed"), STR("head"));
    finish_tasks();
    ck_assert_ptr_null(look_up("failed"));
    ck_assert_uint_eq(cache_fixture_count(&fixture), 40);
    cache_zone_totals(conf.zone, &totals);
    ck_assert_uint_eq(totals.files, 40);
    close_store();

    open_store(); /* the loader indexes each file under the key that the file contains */
    for (int i = 0; i < 100; i++) {
        turn_for(100);
        cache_zone_totals(conf.zone, &totals);
        if (totals.files == 40)
            break;
    }
    finish_tasks();
    cache_zone_totals(conf.zone, &totals);
    ck_assert_uint_eq(totals.files, 40);
    check_is("other 0", "head", str_of(body, sizeof(body)));
    check_is("other 39", "head", STR("short"));
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

START_TEST(peek_finds_an_entry_without_a_fetch_until_discarded)
{
    struct cache_lookup lookup = {.found = found};
    struct cache_totals totals;
    bool pending;

    cache_fixture_open(&fixture);
    open_store();
    ck_assert_ptr_null(cache_store_peek(store, &lookup, STR("a"), &pending));
    ck_assert(!pending);
    ck_assert(!cache_store_discard(store, STR("a")));
    cache_zone_totals(conf.zone, &totals);
    ck_assert_uint_eq(totals.entries, 0); /* a lookup that finds nothing creates no entry */
    store_response("a", "head", STR("body"));
    answered = false;
    ck_assert_ptr_null(cache_store_peek(store, &lookup, STR("a"), &pending));
    ck_assert(pending);
    finish_tasks();
    ck_assert(answered && last);
    cache_entry_unref(last);
    last = cache_store_peek(store, &lookup, STR("a"), &pending);
    ck_assert(last && !pending);
    cache_entry_unref(last);
    ck_assert(cache_store_discard(store, STR("a")));
    ck_assert(!cache_store_discard(store, STR("a")));
    ck_assert_ptr_null(cache_store_peek(store, &lookup, STR("a"), &pending));
    ck_assert(!pending);
    store_response("a", "head", STR("body")); /* unlike a purged key, it can be stored again at once */
    check_is("a", "head", STR("body"));
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        fill_splices_stored_and_new_bytes, failed_splice_stores_nothing, fill_ends_when_it_is_writable,
        fill_ends_under_another_key,
        peek_finds_an_entry_without_a_fetch_until_discarded,
    };

    return cache_fixture_run("fill", tests, COUNT(tests));
}
