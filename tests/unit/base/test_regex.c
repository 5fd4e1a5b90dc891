#include "base/regex.h"

#include "base/limits.h"

#include "../runner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct regex *compiled(const char *pattern, bool nocase)
{
    struct regex *regex = NULL;
    char message[REGEX_MESSAGE] = "";
    size_t at = 0;

    ck_assert_msg(regex_compile(str_from(pattern), nocase, &regex, &at, message) == 0, "%s: %s", pattern, message);
    return regex;
}

static const struct {
    const char *pattern;
    bool nocase;
    const char *subject;
    int result;
} cases[] = {
    {"^/a", false, "/abc", 1},
    {"^/a", false, "/Abc", 0},
    {"^/a", true, "/Abc", 1},
    {"\\.php$", false, "/x.php", 1},
    {"\\.php$", false, "/x.php/", 0},
    {"\\.php$", false, "/x.php\n", 0},
    {"", false, "", 1},
    {"^$", false, "", 1},
    {"^.$", false, "\303\244", 0},
    {"(*UTF)^.$", false, "\303\244", 1},
    {"(*UTF)^.$", false, "\303", -EILSEQ},
    {"a(?=b)", false, "ab", 1},
    {"a(?!b)", false, "ab", 0},
};

START_TEST(subject_matches_its_pattern)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct regex *regex = compiled(cases[i].pattern, cases[i].nocase);

        ck_assert_msg(regex_match(regex, str_from(cases[i].subject)) == cases[i].result, "%s",
                      cases[i].pattern);
        regex_destroy(regex);
    }
}
END_TEST

static const struct {
    const char *pattern;
    size_t at;
    const char *message;
} mistakes[] = {
    {"^/(a", 4, "missing closing parenthesis"},
    {"[a-", 3, "missing terminating ] for character class"},
    {"a**b", 3, NULL},
    {"x(?<1a>b)", 5, NULL},
    {"a\\C", 3, NULL},
    {"(?<n>a)(?<n>b)", 10, NULL},
};

START_TEST(invalid_patterns_are_rejected)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct regex *regex = NULL;
        char message[REGEX_MESSAGE] = "";
        size_t at = 99;
        int error = regex_compile(str_from(mistakes[i].pattern), false, &regex, &at, message);

        ck_assert_msg(error == -EINVAL, "%s", mistakes[i].pattern);
        ck_assert_ptr_null(regex);
        ck_assert_msg(at <= strlen(mistakes[i].pattern), "%s: %zu", mistakes[i].pattern, at);
        if (!mistakes[i].message)
            continue;
        ck_assert_uint_eq(at, mistakes[i].at);
        ck_assert_str_eq(message, mistakes[i].message);
    }
}
END_TEST

START_TEST(pattern_length_is_limited)
{
    char *pattern = malloc(LIMIT_REGEX_PATTERN + 1);
    struct regex *regex = NULL;
    char message[REGEX_MESSAGE];
    size_t at;

    ck_assert_ptr_nonnull(pattern);
    memset(pattern, 'a', LIMIT_REGEX_PATTERN + 1);
    ck_assert_int_eq(regex_compile(str_of(pattern, LIMIT_REGEX_PATTERN + 1), false, &regex, &at, message),
                     -EINVAL);
    ck_assert_int_eq(regex_compile(str_of(pattern, LIMIT_REGEX_PATTERN), false, &regex, &at, message), 0);
    regex_destroy(regex);
    free(pattern);
}
END_TEST

START_TEST(groups_are_found_by_number_and_name)
{
    struct regex *regex = compiled("^/(?<first>\\w+)(/(x)?)?(.*)$", false);
    struct str subject = STR("/abc/tail");
    struct str name;
    unsigned number = 0;

    ck_assert_uint_eq(regex_group_count(regex), 4);
    ck_assert_int_eq(regex_match(regex, subject), 1);
    ck_assert(str_equal(regex_group(regex, subject, 0), subject));
    ck_assert(str_equal(regex_group(regex, subject, 1), STR("abc")));
    ck_assert(str_equal(regex_group(regex, subject, 2), STR("/")));
    ck_assert_ptr_null(regex_group(regex, subject, 3).data);
    ck_assert(str_equal(regex_group(regex, subject, 4), STR("tail")));
    ck_assert_ptr_null(regex_group(regex, subject, 5).data);
    ck_assert(regex_name(regex, 0, &name, &number));
    ck_assert(str_equal(name, STR("first")));
    ck_assert_uint_eq(number, 1);
    ck_assert(!regex_name(regex, 1, &name, &number));
    regex_destroy(regex);
}
END_TEST

/* Without the match limit, the nested repetition would take time exponential in the length of the subject. */
START_TEST(exponential_backtracking_fails)
{
    struct regex *regex = compiled("^(a+)+$", false);

    ck_assert_int_eq(
        regex_match(regex,
                    STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab")),
        -E2BIG);
    ck_assert_int_eq(regex_match(regex, STR("aaa")), 1);
    regex_destroy(regex);
}
END_TEST

/* A subject as long as a request head may be. The match must not fail for lack of JIT stack. */
START_TEST(subject_of_8_kib_is_matched)
{
    static char text[8192];
    struct regex *regex = compiled("^(?:a|b)*$", false);

    memset(text, 'a', sizeof(text));
    ck_assert_int_eq(regex_match(regex, str_of(text, sizeof(text))), 1);
    text[sizeof(text) - 1] = 'c';
    ck_assert_int_eq(regex_match(regex, str_of(text, sizeof(text))), 0);
    regex_destroy(regex);
    regex_destroy(NULL);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, subject_matches_its_pattern);
    tcase_add_test(tcase, invalid_patterns_are_rejected);
    tcase_add_test(tcase, pattern_length_is_limited);
    tcase_add_test(tcase, groups_are_found_by_number_and_name);
    tcase_add_test(tcase, exponential_backtracking_fails);
    tcase_add_test(tcase, subject_of_8_kib_is_matched);
}

int main(void)
{
    return run_suite("regex", add_tests);
}
