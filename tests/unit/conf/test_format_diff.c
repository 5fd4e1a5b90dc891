/*
 * What formatting changes, told as a diff: what it looks like, and that whoever applies it has the other text.
 */
#include "conf/format.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *before, *after, *diff;
} diffs[] = {
    {"", "", ""},
    {"a: 1\n", "a: 1\n", ""},
    {"a:   1\n", "a: 1\n", "--- f.orig\n+++ f\n@@ -1,1 +1,1 @@\n-a:   1\n+a: 1\n"},
    {"a: 1", "a: 1\n", "--- f.orig\n+++ f\n@@ -1,1 +1,1 @@\n-a: 1\n\\ No newline at end of file\n+a: 1\n"},
    {"\n", "", "--- f.orig\n+++ f\n@@ -1,1 +0,0 @@\n-\n"},
    {"", "a\n", "--- f.orig\n+++ f\n@@ -0,0 +1,1 @@\n+a\n"},
    {"a:\n    b: 1\n    c: 2\n", "a:\n  b: 1\n  c: 2\n",
     "--- f.orig\n+++ f\n@@ -1,3 +1,3 @@\n a:\n-    b: 1\n-    c: 2\n+  b: 1\n+  c: 2\n"},
    {"1\n2\n3\n4\n5 \n6\n7\n8\n9\n", "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
     "--- f.orig\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5 \n+5\n 6\n 7\n 8\n"},
    {"1 \n2\n3\n4\n5\n6\n7\n8 \n", "1\n2\n3\n4\n5\n6\n7\n8\n",
     "--- f.orig\n+++ f\n@@ -1,8 +1,8 @@\n-1 \n+1\n 2\n 3\n 4\n 5\n 6\n 7\n-8 \n+8\n"},
    {"1 \n2\n3\n4\n5\n6\n7\n8\n9 \n", "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
     "--- f.orig\n+++ f\n@@ -1,4 +1,4 @@\n-1 \n+1\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9 \n+9\n"},
    {"a\n\n\n\nb\n", "a\n\nb\n", "--- f.orig\n+++ f\n@@ -1,5 +1,3 @@\n a\n \n-\n-\n b\n"},
};

START_TEST(looks_like_this)
{
    struct buffer out = {0};

    ck_assert_int_eq(format_diff(STR("f"), str_from(diffs[_i].before), str_from(diffs[_i].after), &out), 0);
    ck_assert_int_eq(buffer_append(&out, str_of("", 1)), 0);
    ck_assert_str_eq(out.data, diffs[_i].diff);
    buffer_finish(&out);
}
END_TEST

/* One line of the text, with its end, appended. */
static void put(struct buffer *out, struct str line, bool ended)
{
    ck_assert_int_eq(buffer_append(out, line), 0);
    if (ended)
        ck_assert_int_eq(buffer_append(out, STR("\n")), 0);
}

/* Strict: what a hunk says of the text before must be there, where it says. */
static void apply(struct str before, struct str diff, struct buffer *out)
{
    struct str rest = before;
    size_t at = 1;

    (void)str_cut(&diff, '\n');
    (void)str_cut(&diff, '\n');
    while (diff.length) {
        struct str line = str_cut(&diff, '\n');
        bool unended = str_starts(diff, STR("\\"));

        if (unended)
            (void)str_cut(&diff, '\n');
        if (line.data[0] == '@') {
            size_t from = strtoul(line.data + 4, NULL, 10);
            bool empty = strtoul(strchr(line.data, ',') + 1, NULL, 10) == 0;

            for (; at < from + empty; at++)
                put(out, str_cut(&rest, '\n'), true);
            continue;
        }
        if (line.data[0] != '+') {
            ck_assert_int_eq(unended, str_find(rest, '\n') < 0);
            ck_assert(str_equal(str_cut(&rest, '\n'), str_skip(line, 1)));
            at++;
        }
        if (line.data[0] != '-')
            put(out, str_skip(line, 1), !unended);
    }
    if (rest.length)
        ck_assert_int_eq(buffer_append(out, rest), 0);
}

static size_t make(char *into, unsigned seed, size_t most)
{
    static const char *const lines[] = {"\n",   "a:\n", "  a: \n", "b: [1,2]\n", "b: [ 1, 2 ]\n",
                                        "\r\n", "c\n",  " c\n",   "d",          "# e\n"};
    size_t length = 0;

    for (size_t i = 0; i < most; i++) {
        const char *line = lines[(seed = seed * 1103515245 + 12345) >> 16 & 0xff ? (seed >> 20) % 10 : 0];

        memcpy(into + length, line, strlen(line));
        length += strlen(line);
    }
    return length;
}

/* Any two texts, however far apart. */
START_TEST(leads_to_the_other)
{
    char before[4000], after[4000];

    for (unsigned seed = 0; seed < 400; seed++) {
        struct str from = str_of(before, make(before, seed, seed % 200));
        struct str to = str_of(after, make(after, seed % 3 ? seed + 7 : seed, (seed * 13) % 200));
        struct buffer diff = {0}, made = {0};

        ck_assert_int_eq(format_diff(STR("f"), from, to, &diff), 0);
        ck_assert_int_eq(diff.length == 0, str_equal(from, to));
        if (diff.length) {
            apply(from, buffer_str(&diff), &made);
            ck_assert_msg(str_equal(buffer_str(&made), to), "seed %u:\n" STR_FMT, seed, STR_ARG(buffer_str(&diff)));
        }
        buffer_finish(&made);
        buffer_finish(&diff);
    }
}
END_TEST

START_TEST(no_room)
{
    struct buffer out = {.max = 20};

    ck_assert_int_eq(format_diff(STR("f"), STR("a:  1\n"), STR("a: 1\n"), &out), -ENOBUFS);
    buffer_finish(&out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conf_format_diff");
    TCase *cases = tcase_create("conf_format_diff");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(cases, looks_like_this, 0, sizeof(diffs) / sizeof(diffs[0]));
    tcase_add_test(cases, leads_to_the_other);
    tcase_add_test(cases, no_room);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
