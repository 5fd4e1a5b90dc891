/*
 * The vector of a gathered send: pieces of the block alternate with parts of the file, in order; parts appended during
 * a send belong to the next one; each part holds a reference of its view until it is sent.
 */
#include "wire/gather.h"

#include "base/limits.h"

#include "../runner.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES = 200000 };

static struct loop loop;
static struct wire_shared shared;
static char block[64];
static char content[FILE_BYTES];
static int file;

static void prepare(void)
{
    char path[] = "/tmp/sluice-test-gather-XXXXXX";

    shared = (struct wire_shared){.loop = &loop};
    loop = (struct loop){0};
    memcpy(block, "abcdefghijklmnopqrstuvwxyz", 26);
    for (int i = 0; i < FILE_BYTES; i++)
        content[i] = (char)(i / 7);
    file = mkstemp(path);
    unlink(path);
    ck_assert_int_eq(write(file, content, FILE_BYTES), FILE_BYTES);
}

/* Compares the vector with a text of the block and pieces of the file, e.g. "ab0c": '0' + i stands for part i. */
static void expect(const struct gather *gather, const char *text, const char *const *parts, size_t length)
{
    int at = 0;

    while (*text) {
        size_t count = strcspn(text, "0123456789");

        if (count > 0) {
            ck_assert_uint_eq(gather->vector[at].iov_len, count);
            ck_assert_mem_eq(gather->vector[at++].iov_base, text, count);
            text += count;
            continue;
        }
        ck_assert_uint_eq(gather->vector[at].iov_len, length);
        ck_assert_mem_eq(gather->vector[at++].iov_base, parts[*text++ - '0'], length);
    }
    ck_assert_int_eq(gather->count_in_flight, at);
}

START_TEST(vectors_alternate_between_block_and_parts)
{
    const char *const parts[] = {content + 100, content + 1000, content + 5000, content + 70000};
    struct gather *gather = gather_create();
    struct file_view *view = NULL;

    prepare();
    ck_assert(file_view_cover(&shared, &view, file, 100, 50, FILE_BYTES - 100) == view->bytes);
    for (unsigned i = 0; i < 4; i++) {
        static const uint32_t after[] = {2, 2, 5, 9};

        gather_append(gather, after[i], view, view->bytes + (parts[i] - content) - 100, 50);
    }
    ck_assert_uint_eq(view->references, 5);
    gather_begin(gather, block, 1, 9);
    expect(gather, "b01cde2fghi3", parts, 50);
    gather_append(gather, 9, view, view->bytes, 50); /* during the send */
    ck_assert_uint_eq(gather_sent(&shared, gather), 8 + 4 * 50);
    ck_assert_uint_eq(gather->bytes_until, 9);
    ck_assert_uint_eq(view->references, 2);
    ck_assert_uint_eq(gather->length, 50);
    gather_begin(gather, block, 9, 12);
    expect(gather, "0jkl", parts, 50);
    ck_assert_uint_eq(gather_sent(&shared, gather), 53);
    gather_begin(gather, block, 12, 12);
    ck_assert_int_eq(gather->count_in_flight, 0);
    ck_assert_uint_eq(shared.file_views, 1);
    file_view_release(&shared, &view);
    ck_assert_uint_eq(shared.file_views, 0);
    gather_destroy(&shared, gather);
    close(file);
}
END_TEST

/* Bounded by number and by bytes; the parts of an unsent gather are released with it. */
START_TEST(gather_is_limited_by_parts_and_bytes)
{
    struct gather *gather = gather_create();
    struct file_view *view = NULL;

    prepare();
    ck_assert(gather_has_room(NULL, 1));
    ck_assert_ptr_nonnull(file_view_cover(&shared, &view, file, 0, 50, FILE_BYTES));
    for (unsigned i = 0; i < GATHER_PARTS; i++) {
        ck_assert(gather_has_room(gather, SIZE_MAX));
        ck_assert(gather_has_room(gather, 50 * i + 1));
        ck_assert(i == 0 || !gather_has_room(gather, 50 * i));
        gather_append(gather, 0, view, view->bytes, 50);
    }
    ck_assert(!gather_has_room(gather, SIZE_MAX));
    file_view_release(&shared, &view);
    ck_assert_uint_eq(shared.file_views, 1);
    gather_destroy(&shared, gather);
    ck_assert_uint_eq(shared.file_views, 0);
    gather_destroy(&shared, NULL);
    close(file);
}
END_TEST

/* Views: reused while they have the bytes, then longer; refused without a file, at a negative offset, at the limit. */
START_TEST(views_are_reused_while_they_have_the_bytes)
{
    struct file_view *view = NULL, *first;

    prepare();
    ck_assert(!file_view_has(NULL, file, 0, 1));
    ck_assert_mem_eq(file_view_cover(&shared, &view, file, 4097, 100, 20000), content + 4097, 20000);
    first = view;
    ck_assert(file_view_has(view, file, 4097, 20000));
    ck_assert(!file_view_has(view, file, 4097, 20001));
    ck_assert(!file_view_has(view, file, 4096, 1));
    ck_assert(!file_view_has(view, file, 24097, 1));
    ck_assert(!file_view_has(view, file + 1, 4097, 1));
    ck_assert_mem_eq(file_view_cover(&shared, &view, file, 24000, 97, 1000), content + 24000, 97);
    ck_assert_ptr_eq(view, first);
    ck_assert_mem_eq(file_view_cover(&shared, &view, file, 24000, 98, 170000), content + 24000, 98);
    ck_assert_uint_eq(view->length, 8 * 20000);
    ck_assert_uint_eq(shared.file_views, 1);

    loop.clock.monotonic_ms += LIMIT_FILE_VIEW_CHECK_MS; /* probed again */
    first = view;
    ck_assert_ptr_nonnull(file_view_cover(&shared, &view, file, 24000, 98, 100000));
    ck_assert_ptr_eq(view, first);
    ck_assert_uint_eq(view->checked_ms, loop.clock.monotonic_ms);

    ck_assert_ptr_null(file_view_cover(&shared, &view, -1, 0, 100, 1000));
    ck_assert_ptr_null(view);
    ck_assert_ptr_null(file_view_cover(&shared, &view, file, -1, 100, 1000));
    ck_assert_uint_eq(shared.file_views, 0);
    shared.file_views = LIMIT_FILE_VIEWS;
    ck_assert_ptr_null(file_view_cover(&shared, &view, file, 0, 100, 1000));
    ck_assert_uint_eq(shared.file_views, LIMIT_FILE_VIEWS);
    close(file);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, vectors_alternate_between_block_and_parts);
    tcase_add_test(tcase, gather_is_limited_by_parts_and_bytes);
    tcase_add_test(tcase, views_are_reused_while_they_have_the_bytes);
}

int main(void)
{
    return run_suite("gather", add_tests);
}
