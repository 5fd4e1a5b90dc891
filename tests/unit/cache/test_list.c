#include "cache/cache_list.h"

#include "store_fixture.h"

#include <fcntl.h>
#include <stdio.h>

static struct buffer listed;        /* "KEY BODY_LENGTH STATUS\n" of each entry; STATUS -1: no metadata */
static int ended_with;
static unsigned ends;

static void ended(struct cache_page *page, int result)
{
    ended_with = result;
    ends++;
    ck_assert_ptr_null(page->task);
    for (size_t i = 0; i < page->count; i++) {
        const struct cache_listed *entry = &page->entries[i];

        ck_assert_uint_le(entry->idle_s, 60);
        ck_assert_int_eq(buffer_printf(&listed, STR_FMT " %u %d\n", STR_ARG(entry->key), (unsigned)entry->body_length,
                                       entry->has_metadata ? (int)entry->metadata.status : -1), 0);
    }
}

static void open_all(void)
{
    ends = 0;
    open_loaded();
}

static void close_all(void)
{
    buffer_finish(&listed);
    close_loaded();
}

/* Lists a page of at most `max` entries, after those of earlier calls. Returns the cursor for the next one. */
static uint32_t list(struct str prefix, uint32_t cursor, size_t max, size_t max_text)
{
    struct cache_page page = {.ended = ended, .max = max, .max_text = max_text, .cursor = cursor};
    unsigned before = ends;

    ck_assert_int_eq(cache_list(store, &page, prefix), 0);
    ck_assert_uint_eq(ends, before);
    for (unsigned i = 0; i < 2000 && ends == before; i++)
        ck_assert_int_ge(loop_run_iteration(&loop, loop.clock.monotonic_ms + 5), 0);
    ck_assert_uint_eq(ends, before + 1);
    ck_assert_int_eq(ended_with, 0);
    ck_assert_uint_le(page.count, max);
    return page.cursor;
}

static unsigned count_lines(void)
{
    unsigned count = 0;

    for (size_t i = 0; i < listed.length; i++)
        count += listed.data[i] == '\n';
    return count;
}

static bool has_line(const char *line)
{
    char text[64];

    snprintf(text, sizeof(text), "\n%s\n", line);
    return str_search(buffer_str(&listed), str_from(text)) >= 0 || str_starts(buffer_str(&listed), str_from(text + 1));
}

static void store_with_status(const char *key, int status, struct str body)
{
    struct stored_metadata metadata = {.status = status, .lifetime_s = 60};
    char head[sizeof(metadata) + 1] = {0};
    struct cache_fill *fill = begin_fill(key);

    memcpy(head, &metadata, sizeof(metadata));
    cache_fill_add(fill, body);
    cache_fill_end(fill, str_of(head, sizeof(metadata)));
    finish_tasks();
}

START_TEST(keys_and_metadata_are_listed)
{
    open_all();
    ck_assert_uint_eq(list(STR(""), 0, 10, 1000), 0);
    ck_assert_uint_eq(listed.length, 0);
    store_with_status("/a", 200, STR("body"));
    store_with_status("/vary", 0, STR(""));
    store_with_status("/wrong", 17, STR("12"));
    store_response("/short", "head", STR("1"));
    ck_assert_uint_eq(list(STR(""), 0, 10, 1000), 0);
    ck_assert_uint_eq(count_lines(), 4);
    ck_assert(has_line("/a 4 200"));
    ck_assert(has_line("/vary 0 0"));
    ck_assert(has_line("/wrong 2 -1"));
    ck_assert(has_line("/short 1 -1"));
    close_all();
}
END_TEST

/* More files than one step examines. Each is on exactly one page, whatever ends the pages. */
START_TEST(pages_continue_at_the_cursor)
{
    static const struct {
        size_t max, max_text;
        unsigned pages;
    } cases[] = {{1000, 100000, 1}, {100, 100000, 1}, {99, 100000, 2}, {64, 100000, 2}, {1, 100000, 100},
                 {1000, 1, 100}, {1000, 60, 10}};
    char key[32];

    open_all();
    for (unsigned i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "/key%u", 10 + i);
        store_response(key, "head", STR("body"));
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t cursor = 0;
        unsigned pages = 0;

        listed.length = 0;
        do {
            cursor = list(STR(""), cursor, cases[i].max, cases[i].max_text);
            pages++;
        } while (cursor && pages < 200);
        ck_assert_uint_eq(count_lines(), 100);
        ck_assert_uint_ge(pages, cases[i].pages);
        ck_assert_uint_le(pages, cases[i].pages + 1); /* the last page may be empty */
        for (unsigned k = 0; k < 100; k++) {
            snprintf(key, sizeof(key), "/key%u 4 -1", 10 + k);
            ck_assert_msg(has_line(key), "%s", key);
        }
    }
    close_all();
}
END_TEST

START_TEST(a_prefix_selects_keys)
{
    open_all();
    store_response("/a/1", "head", STR("body"));
    store_response("/a/2\n17\nx", "head", STR("body"));
    store_response("/a", "head", STR("body"));
    store_response("/b/a/", "head", STR("body"));
    ck_assert_uint_eq(list(STR("/a/"), 0, 10, 1000), 0);
    ck_assert_uint_eq(count_lines(), 4); /* one key has two line breaks */
    ck_assert(has_line("/a/1 4 -1"));
    ck_assert(has_line("/a/2\n17\nx 4 -1"));
    listed.length = 0;
    ck_assert_uint_eq(list(STR("/a/1 and more"), 0, 10, 1000), 0);
    ck_assert_uint_eq(listed.length, 0);
    close_all();
}
END_TEST

START_TEST(any_cursor_is_accepted)
{
    static const uint32_t cursors[] = {1, 100, 1000000, UINT32_MAX - 1, UINT32_MAX};

    open_all();
    store_response("/a", "head", STR("body"));
    for (size_t i = 0; i < sizeof(cursors) / sizeof(cursors[0]); i++)
        ck_assert_uint_eq(list(STR("/nosuch"), cursors[i], 10, 1000), 0);
    ck_assert_uint_eq(list(STR(""), UINT32_MAX, 10, 1000), 0);
    ck_assert_uint_eq(listed.length, 0);
    close_all();
}
END_TEST

START_TEST(damaged_and_missing_files_are_left_out)
{
    static const char *const keys[] = {"/empty", "/missing"};
    struct cache_entry *entry;
    char name[CACHE_NAME];

    open_all();
    store_response("/good", "head", STR("body"));
    for (size_t i = 0; i < 2; i++) {
        int fd;

        store_response(keys[i], "head", STR("body"));
        entry = look_up(keys[i]);
        cache_file_name(&fixture.directory, &entry->id, name);
        cache_entry_unref(entry);
        fd = openat(fixture.directory.fd, name, O_WRONLY | O_TRUNC);
        ck_assert_int_ge(fd, 0);
        close(fd);
        if (i == 1)
            ck_assert_int_eq(unlinkat(fixture.directory.fd, name, 0), 0);
    }
    ck_assert_uint_eq(list(STR(""), 0, 10, 1000), 0);
    ck_assert_uint_eq(count_lines(), 1);
    ck_assert(has_line("/good 4 -1"));
    check_is("/good", "head", STR("body"));
    ck_assert(!was_logged("cache"));
    close_all();
}
END_TEST

/* The index is in memory that other workers can write. */
START_TEST(sizes_in_the_index_are_checked)
{
    static const uint64_t sizes[] = {0, 1, 100, UINT32_MAX, UINT64_MAX - 1, UINT64_MAX};
    struct cache_victims victims = {0};
    struct cache_view view;
    struct cache_hash hash;

    open_all();
    store_response("/good", "head", STR("body"));
    store_response("/forged", "head", STR("body"));
    cache_hash_key(STR("/forged"), &hash);
    ck_assert(cache_zone_find(conf.zone, &hash, false, 0, &view, &victims));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ck_assert(cache_zone_grow(conf.zone, view.node, view.sequence, sizes[i]));
        listed.length = 0;
        ck_assert_uint_eq(list(STR(""), 0, 10, 1000), 0);
        ck_assert_uint_eq(count_lines(), 1);
        ck_assert(has_line("/good 4 -1"));
    }
    close_all();
}
END_TEST

static void ended_and_freed(struct cache_page *page, int result)
{
    ends++;
    memset(page, 0x5a, sizeof(*page));
}

START_TEST(the_owner_may_free_the_page)
{
    struct cache_page page = {.ended = ended_and_freed, .max = 10, .max_text = 1000};
    struct cache_page freed;

    open_all();
    store_response("/a", "head", STR("body"));
    ck_assert_int_eq(cache_list(store, &page, STR("")), 0);
    finish_tasks();
    ck_assert_uint_eq(ends, 1);
    memset(&freed, 0x5a, sizeof(freed));
    ck_assert_mem_eq(&page, &freed, sizeof(page));
    close_all();
}
END_TEST

START_TEST(a_listing_is_cancelled)
{
    struct cache_page page = {.ended = ended, .max = 10, .max_text = 1000};

    open_all();
    store_response("/a", "head", STR("body"));
    cache_list_cancel(&page);
    ck_assert_int_eq(cache_list(store, &page, STR("")), 0);
    cache_list_cancel(&page);
    cache_list_cancel(&page);
    finish_tasks();
    ck_assert_uint_eq(ends, 0);
    ck_assert_int_eq(cache_list(store, &page, STR("")), 0);
    cache_list_cancel(&page);
    close_all(); /* the store ends while the step runs */
}
END_TEST

int main(void)
{
    const TTest *tests[] = {keys_and_metadata_are_listed, pages_continue_at_the_cursor, a_prefix_selects_keys,
                            any_cursor_is_accepted, damaged_and_missing_files_are_left_out,
                            sizes_in_the_index_are_checked, the_owner_may_free_the_page,
                            a_listing_is_cancelled};

    return cache_fixture_run("cache_list", tests, COUNT(tests));
}
