/*
 * The formatter: its layout; the formatted text does not change when it is formatted again; a source remains unchanged
 * if a new layout would change its meaning.
 */
#include "conf/format.h"

#include "../runner.h"

#include <errno.h>

static const struct {
    const char *name, *before, *after;
} layouts[] = {
    {"nothing", "", ""},
    {"comments alone", "\n\n# a\n\n\n# b\n\n", "# a\n\n# b\n"},
    {"blanks", "a:   1   \nb:\t2\n", "a: 1\nb: 2\n"},
    {"line ends", "a: 1\r\nb: 2\r\n", "a: 1\nb: 2\n"},
    {"no end of line", "a: 1", "a: 1\n"},
    {"levels", "http:\n      server:\n         - listen:   80\n           root: www\n",
     "http:\n  server:\n    - listen: 80\n      root: www\n"},
    {"a list in the column of its key",
     "http:\n  server:\n  - listen: 80\n    root: www\n  - listen: 81\n  sendfile: on\n",
     "http:\n  server:\n    - listen: 80\n      root: www\n    - listen: 81\n  sendfile: on\n"},
    {"a list at the top", "- a\n-   b: 1\n    c: 2\n-\n  d: 3\n", "- a\n- b: 1\n  c: 2\n-\n  d: 3\n"},
    {"lists in lists", "a:\n -  - b\n    - c\n", "a:\n  - - b\n    - c\n"},
    {"brackets", "a: [ b ,c,  'd' ]\ne: { f:   1 , 'g':2,}\nh: [ ]\ni: { }\n",
     "a: [b, c, 'd']\ne: {f: 1, 'g': 2,}\nh: []\ni: {}\n"},
    {"brackets over lines", "a:\n    b: [\n      c,\n      d\n    ]\n    e: {f: 1,\n        g: 2}\n",
     "a:\n  b: [\n    c,\n    d\n  ]\n  e: {f: 1,\n      g: 2}\n"},
    {"brackets too far out", "a:\n  b: [\nc,\n]\n", "a:\n  b: [\n    c,\n  ]\n"},
    {"comments in brackets", "a:\n    b: [ # one\n      c, # two\n      # three\n      d]\n",
     "a:\n  b: [ # one\n    c, # two\n    # three\n    d]\n"},
    {"a comment goes with its block",
     "a:\n    # of b\n    b: 1\n    # the end of a\n# of c\nc: 2\n  # the end\n",
     "a:\n  # of b\n  b: 1\n  # the end of a\n# of c\nc: 2\n# the end\n"},
    {"a comment left of its block stays out", "a:\n    b: 1\n#   c: 2\n    d: 3\n",
     "a:\n  b: 1\n#   c: 2\n  d: 3\n"},
    {"comments behind words", "a: 1# no\nb: 2   # two\nccc: 3 # three\n",
     "a: 1# no\nb: 2   # two\nccc: 3 # three\n"},
    {"comments move with their line", "a:\n    b: 1    # one\n    c: 22   # two\n",
     "a:\n  b: 1    # one\n  c: 22   # two\n"},
    {"a comment is pushed on", "a:\n    b: [1,2,3,4] # x\n", "a:\n  b: [1, 2, 3, 4] # x\n"},
    {"a comment that goes on below", "a:\n    b: 1  # one\n          # more\n    c: 2\n",
     "a:\n  b: 1  # one\n        # more\n  c: 2\n"},
    {"a comment behind a key", "a:   # why\n    b: 1\n", "a:   # why\n  b: 1\n"},
    {"empty lines", "\n\na: 1\n\n\n\nb: 2\n \n  \nc: 3\n\n", "a: 1\n\nb: 2\n\nc: 3\n"},
    {"texts over lines",
     "a:\n    b: one\n      two\n    c: \"three\n      four\\\n      five\"\n    d: 'six\n\n      seven'\n",
     "a:\n  b: one\n    two\n  c: \"three\n    four\\\n    five\"\n  d: 'six\n\n    seven'\n"},
    {"a literal", "a:\n    b: |\n        one\n          two\n\n        three\n\n    c: 1\n",
     "a:\n  b: |\n    one\n      two\n\n    three\n\n  c: 1\n"},
    {"a literal with its own indentation", "a:\n    b: |2-  # why\n        one\n    c: 1\n",
     "a:\n  b: |2-  # why\n      one\n  c: 1\n"},
    {"a literal that keeps its end", "a:\n    b: |+\n      one\n\n\n    c: >\n      two\n      three\n",
     "a:\n  b: |+\n    one\n\n\n  c: >\n    two\n    three\n"},
    {"a literal of one empty line that it keeps", "a:\n    b: >+\n\n", "a:\n  b: >+\n\n"},
    {"... of one with blanks", "a:\n    b: >+\n  \n", "a:\n  b: >+\n\n"},
    {"... of two", "a: |+\n\n\nb: c\n", "a: |+\n\n\nb: c\n"},
    {"... of one before a key", "a: |+\n\nb: c\n", "a: |+\n\nb: c\n"},
    {"... of none", "a: |+\nb: c\n", "a: |+\nb: c\n"},
    {"a literal without an end of line", "a: |\n    one", "a: |\n  one"},
    {"a comment behind a literal", "a: |\n    one\n  # of b\nb: 1\n", "a: |\n  one\n# of b\nb: 1\n"},
    {"anchors, tags, merges", "x: &x   {a: 1}\ny: !include   b.yaml\nz:\n    <<:   *x\n    w: [ *x ]\n",
     "x: &x {a: 1}\ny: !include b.yaml\nz:\n  <<: *x\n  w: [*x]\n"},
    {"an anchor before a block", "a: &a\n    b: 1\nc:\n    &c\n    d: 1\n",
     "a: &a\n  b: 1\nc:\n  &c\n  d: 1\n"},
    {"a value below its key", "a:\n      'b'\n", "a:\n  'b'\n"},
    {"keys without values", "a:\nb:\n  c:\n  d: 1\n", "a:\nb:\n  c:\n  d: 1\n"},
    {"keys with a sign", "?   a\n:   b\n? c\n", "? a\n: b\n? c\n"},
    {"a document's signs", "%YAML 1.1\n---\na:   1\n...\n", "%YAML 1.1\n---\na: 1\n...\n"},
    {"characters of more than a byte", "ä:\n    ö: [ ü ] # €\n    'ß':   \"日本\"   # x\n",
     "ä:\n  ö: [ü]   # €\n  'ß': \"日本\"     # x\n"},
};

static struct arena arena;

static int format(struct str text, struct buffer *out, struct buffer *diagnostics)
{
    struct conf_errors errors = {.arena = &arena};
    int error = conf_format(&arena, STR("t.yaml"), text, &errors, out);

    ck_assert_int_eq(conf_errors_print(&errors, diagnostics), 0);
    ck_assert_int_eq(error, errors.failed ? -EINVAL : 0);
    return error;
}

START_TEST(formatting_gives_the_layout_and_repeats_it)
{
    struct buffer once = {0}, twice = {0}, diagnostics = {0};
    struct str after = str_from(layouts[_i].after);

    arena_init(&arena, NULL, 0);
    ck_assert_msg(format(str_from(layouts[_i].before), &once, &diagnostics) == 0, "%s:\n" STR_FMT, layouts[_i].name,
                  STR_ARG(buffer_str(&diagnostics)));
    ck_assert_msg(str_equal(buffer_str(&once), after), "%s:\n" STR_FMT "\nwanted:\n%s", layouts[_i].name,
                  STR_ARG(buffer_str(&once)), layouts[_i].after);
    ck_assert_int_eq(format(after, &twice, &diagnostics), 0);
    ck_assert_msg(str_equal(buffer_str(&twice), after), "%s, again:\n" STR_FMT, layouts[_i].name,
                  STR_ARG(buffer_str(&twice)));
    buffer_finish(&once);
    buffer_finish(&twice);
    buffer_finish(&diagnostics);
    arena_reset(&arena);
}
END_TEST

static const struct {
    const char *text, *diagnostics;
} left_alone[] = {
    {"a: [1\nb: 2\n", "t.yaml:1:4: error: this '[' is never closed"},
    {"a: 1\n\tb: 2\n", "t.yaml:2:1: error: a tab is used for indentation"},
    {"a: \"x\n", "t.yaml:1:4: error: this quote is never closed"},
    {"a: \xff\n", "t.yaml:1:4: error: byte 0xFF is not valid UTF-8"},
    {"a: \x01\n", "t.yaml:1:4: error: the control character U+0001 is not allowed in YAML"},
};

START_TEST(invalid_sources_are_rejected)
{
    struct buffer out = {0}, diagnostics = {0};

    arena_init(&arena, NULL, 0);
    ck_assert_int_eq(format(str_from(left_alone[_i].text), &out, &diagnostics), -EINVAL);
    ck_assert_uint_eq(out.length, 0);
    ck_assert_msg(str_starts(buffer_str(&diagnostics), str_from(left_alone[_i].diagnostics)), STR_FMT,
                  STR_ARG(buffer_str(&diagnostics)));
    buffer_finish(&diagnostics);
    arena_reset(&arena);
}
END_TEST

START_TEST(deep_sources_are_rejected)
{
    char text[4096] = "";
    struct buffer out = {0}, diagnostics = {0};

    for (size_t i = 0; i < 200; i++)
        strcat(text, "- ");
    arena_init(&arena, NULL, 0);
    ck_assert_int_eq(format(str_from(text), &out, &diagnostics), -EINVAL);
    ck_assert(str_search(buffer_str(&diagnostics), STR("nested more than 32 levels deep")) >= 0);
    ck_assert_uint_eq(out.length, 0);
    buffer_finish(&diagnostics);
    arena_reset(&arena);
}
END_TEST

/* The comparison that the formatter makes before it overwrites a file. */
static const struct {
    const char *before, *after;
    bool same;
} pairs[] = {
    {"a: [1, 2] # x\n", "a:   [1,2]    # x\n", true},
    {"a: b\n", "a: c\n", false},
    {"a: b\n", "a: 'b'\n", false},
    {"a: [b]\n", "a:\n  - b\n", false},
    {"a: &x b\n", "a: &y b\n", false},
    {"a: !t b\n", "a: !u b\n", false},
    {"a: &x b\nc: *x\n", "a: &x b\nc: x\n", false},
    {"a: b\n", "a: b\nc: d\n", false},
    {"a: b # x\n", "a: b\n", false},
    {"a: b # x\n", "a: b # y\n", false},
    {"# x\n# y\na: b\n", "# y\n# x\na: b\n", false},
    {"a: | # x\n  b\n", "a: |\n  b\n", false},
    {"a: | # x\n  b\n", "a: |   # x\n    b\n", true},
    {"a: |\n  # b\n", "a: |\n   # b\n", true},
    {"a: [\n", "a: [\n", false},
};

START_TEST(meaning_is_compared)
{
    ck_assert_msg(format_same(str_from(pairs[_i].before), str_from(pairs[_i].after)) == pairs[_i].same, "%s",
                  pairs[_i].before);
    ck_assert(format_same(str_from(pairs[_i].after), str_from(pairs[_i].before)) == pairs[_i].same);
}
END_TEST

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, formatting_gives_the_layout_and_repeats_it, 0, COUNT(layouts));
    tcase_add_loop_test(tcase, invalid_sources_are_rejected, 0, COUNT(left_alone));
    tcase_add_loop_test(tcase, meaning_is_compared, 0, COUNT(pairs));
    tcase_add_test(tcase, deep_sources_are_rejected);
}

int main(void)
{
    return run_suite("format", add_tests);
}
