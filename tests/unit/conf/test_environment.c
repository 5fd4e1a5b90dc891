#include "conf/environment.h"

#include "../runner.h"

#include <errno.h>
#include <stdlib.h>

static const struct {
    const char *text;
    const char *value;
} good[] = {
    {"plain", "plain"},
    {"", ""},
    {"$host ${uri} $HOME", "$host ${uri} $HOME"},
    {"${SLUICE_SET}", "value"},
    {"a${SLUICE_SET}b${SLUICE_SET}", "avaluebvalue"},
    {"${SLUICE_EMPTY}", ""},
    {"${SLUICE_UNSET:-8080}", "8080"},
    {"${SLUICE_UNSET:-}", ""},
    {"${SLUICE_EMPTY:-x}", "x"},
    {"${SLUICE_SET:-x}", "value"},
    {"${SLUICE_SET:?needed}", "value"},
    {"${SLUICE_UNSET:-a:?b}", "a:?b"},
    {"$${SLUICE_SET}", "${SLUICE_SET}"},
    {"$${SLUICE_SET:-x}y", "${SLUICE_SET:-x}y"},
    {"$$${SLUICE_SET}", "$${SLUICE_SET}"},
    {"${Mixed}", "${Mixed}"},
    {"${_UNDER}", "${_UNDER}"},
    {"${SLUICE_SET!}", "${SLUICE_SET!}"},
    {"^/x{3}$", "^/x{3}$"},
    {"${", "${"},
    {"${}", "${}"},
    {"${SLUICE_DOLLAR}", "$host ${SLUICE_SET}"},
};

START_TEST(references_are_replaced_by_their_values)
{
    struct arena arena;
    struct str value = {NULL, 0};
    struct str error;
    struct str hint;
    size_t at;

    setenv("SLUICE_SET", "value", 1);
    setenv("SLUICE_EMPTY", "", 1);
    setenv("SLUICE_DOLLAR", "$host ${SLUICE_SET}", 1);
    unsetenv("SLUICE_UNSET");
    arena_init(&arena, NULL, 0);
    ck_assert_int_eq(environment_expand(&arena, str_from(good[_i].text), &value, &at, &error, &hint), 0);
    ck_assert_msg(str_equal(value, str_from(good[_i].value)), "%s gave \"" STR_FMT "\"", good[_i].text,
                  STR_ARG(value));
    arena_reset(&arena);
}
END_TEST

static const struct {
    const char *text;
    size_t at;
    const char *error;
    const char *hint;
} bad[] = {
    {"a${SLUICE_UNSET}", 1, "the environment variable SLUICE_UNSET is not set",
     "set it, or give a default: ${SLUICE_UNSET:-default}"},
    {"${SLUICE_UNSET:?say where}", 0, "the environment variable SLUICE_UNSET is not set: say where", ""},
    {"${SLUICE_UNSET:?}", 0, "the environment variable SLUICE_UNSET is not set",
     "set it, or give a default: ${SLUICE_UNSET:-default}"},
    {"${SLUICE_SET", 0, "${SLUICE_SET has no closing }", "write ${SLUICE_SET} or ${SLUICE_SET:-default}"},
    {"xy${SLUICE_SET:-a", 2, "${SLUICE_SET has no closing }",
     "write ${SLUICE_SET} or ${SLUICE_SET:-default}"},
};

START_TEST(invalid_references_are_rejected_with_a_hint)
{
    struct arena arena;
    struct str value = {NULL, 0};
    struct str error = {NULL, 0};
    struct str hint = {NULL, 0};
    size_t at = 99;

    unsetenv("SLUICE_UNSET");
    arena_init(&arena, NULL, 0);
    ck_assert_int_eq(environment_expand(&arena, str_from(bad[_i].text), &value, &at, &error, &hint), -EINVAL);
    ck_assert_uint_eq(at, bad[_i].at);
    ck_assert_msg(str_equal(error, str_from(bad[_i].error)), "got \"" STR_FMT "\"", STR_ARG(error));
    ck_assert_msg(str_equal(hint, str_from(bad[_i].hint)), "got \"" STR_FMT "\"", STR_ARG(hint));
    arena_reset(&arena);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, references_are_replaced_by_their_values, 0, (int)(sizeof(good) / sizeof(good[0])));
    tcase_add_loop_test(tcase, invalid_references_are_rejected_with_a_hint, 0, (int)(sizeof(bad) / sizeof(bad[0])));
}

int main(void)
{
    return run_suite("environment", add_tests);
}
