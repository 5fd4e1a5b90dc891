#include "conf/template.h"

#include "../runner.h"

#include <errno.h>
#include <stdlib.h>

/* The object whose variables the tests evaluate: a host, and the number of calls of getters. */
struct fake {
    struct str host;
    unsigned calls;
};

static struct str get_host(const void *subject, struct str parameter, struct arena *arena)
{
    ((struct fake *)(uintptr_t)subject)->calls++;
    return ((const struct fake *)subject)->host;
}

static struct str get_arg(const void *subject, struct str parameter, struct arena *arena)
{
    return str_equal(parameter, STR("none")) ? (struct str){NULL, 0} : parameter;
}

static struct str get_arg_special(const void *subject, struct str parameter, struct arena *arena)
{
    return STR("special");
}

static struct str get_long_family(const void *subject, struct str parameter, struct arena *arena)
{
    return STR("long");
}

/* Variables that are evaluated on a part of this object: its host. */
static struct str get_host_itself(const void *subject, struct str parameter, struct arena *arena)
{
    return *(const struct str *)subject;
}

static const void *host_of(const void *subject)
{
    const struct fake *fake = subject;

    return fake->host.length ? &fake->host : NULL;
}

static const struct variable parts[] = {{"part", false, get_host_itself}};
static const struct variable_table parts_table = {parts, 1, NULL, host_of};
static const struct variable more[] = {{"arg_deep_", true, get_long_family}};
static const struct variable_table more_table = {more, 1, &parts_table};
static const struct variable own[] = {
    {"host", false, get_host},
    {"arg_", true, get_arg},
    {"arg_special", false, get_arg_special},
    {"request_uri", false, get_host},
    {"late", false, get_host, .late = true},
};
static const struct variable_table table = {own, 5, &more_table};

static const struct {
    const char *text;
    const char *value;
    bool constant;
} good[] = {
    {"", "", true},
    {"plain", "plain", true},
    {"$host", "example.org", false},
    {"${host}", "example.org", false},
    {"https://$host:8443/x", "https://example.org:8443/x", false},
    {"${host}name", "example.orgname", false},
    {"$host$host", "example.orgexample.org", false},
    {"$arg_a-$arg_none-$arg_special-$arg_deep_x", "a--special-long", false},
    {"$arg_none", "", false},
    {"$part:$host", "example.org:example.org", false},
    {"cost: $ 5 and 5$", "cost: $ 5 and 5$", true},
    {"^/a$", "^/a$", true},
    {"${", "${", true},
    {"${}", "${}", true},
    {"$$", "$", true},
    {"$$host", "$host", true},
    {"$$$host", "$example.org", false},
    {"${HOME}", "${HOME}", true},
    {"${HOME:-x}$host", "${HOME:-x}example.org", false},
    {"$-$.$/", "$-$.$/", true},
};

START_TEST(template_evaluates_to_its_value)
{
    struct arena arena;
    struct fake fake = {STR("example.org"), 0};
    const struct template *template = NULL;
    struct buffer out = {0};
    struct str error;
    struct str value;
    size_t at;

    arena_init(&arena, NULL, 0);
    ck_assert_int_eq(template_compile(&arena, str_from(good[_i].text), &table, &template, &at, &error), 0);
    ck_assert_int_eq(template_constant(template), good[_i].constant);
    value = template_eval(template, &fake, &arena);
    ck_assert_ptr_nonnull(value.data);
    ck_assert_msg(str_equal(value, str_from(good[_i].value)), "%s gave \"" STR_FMT "\"", good[_i].text,
                  STR_ARG(value));
    if (good[_i].constant)
        ck_assert(str_equal(template_text(template), str_from(good[_i].value)));
    ck_assert_int_eq(template_write(template, &fake, &arena, &out, NULL, STR("")), 0);
    ck_assert(str_equal(buffer_str(&out), str_from(good[_i].value)));
    buffer_finish(&out);
    arena_reset(&arena);
}
END_TEST

static const struct {
    const char *text;
    size_t at;
    const char *error;
} bad[] = {
    {"a$hots", 1, "unknown variable $hots; did you mean $host?"},
    {"$HOST", 0, "unknown variable $HOST; did you mean $host?"},
    {"${zzzzzzzzz}", 0, "unknown variable $zzzzzzzzz"},
    {"$host${host", 5, "the variable that begins here has no closing }"},
    {"${host!}", 0, "the variable that begins here has no closing }"},
    {"$arg_", 0, "unknown variable $arg_"},
    {"x$1", 1, "$1 is a capture, but there is no regular expression here"},
    {"$requst_uri", 0, "unknown variable $requst_uri; did you mean $request_uri?"},
};

START_TEST(invalid_templates_are_rejected_at_their_position)
{
    struct arena arena;
    const struct template *template = NULL;
    struct str error = {NULL, 0};
    size_t at = 99;

    arena_init(&arena, NULL, 0);
    ck_assert_int_eq(template_compile(&arena, str_from(bad[_i].text), &table, &template, &at, &error),
                     -EINVAL);
    ck_assert_ptr_null(template);
    ck_assert_uint_eq(at, bad[_i].at);
    ck_assert_msg(str_equal(error, str_from(bad[_i].error)), "got \"" STR_FMT "\"", STR_ARG(error));
    arena_reset(&arena);
}
END_TEST

START_TEST(constants_need_no_memory)
{
    struct arena arena;
    struct arena request;
    struct fake fake = {STR("h"), 0};
    const struct template *constant = NULL;
    const struct template *single = NULL;
    struct str error;
    size_t at;

    arena_init(&arena, NULL, 0);
    arena_init(&request, NULL, 0);
    ck_assert_int_eq(template_compile(&arena, STR("a$$b"), &table, &constant, &at, &error), 0);
    ck_assert_int_eq(template_compile(&arena, STR("$host"), &table, &single, &at, &error), 0);
    ck_assert(str_equal(template_eval(constant, &fake, &request), STR("a$b")));
    ck_assert_uint_eq(fake.calls, 0);
    ck_assert_ptr_eq(template_eval(single, &fake, &request).data, fake.host.data);
    ck_assert_uint_eq(fake.calls, 1);
    ck_assert_uint_eq(request.size, 0);
    arena_reset(&arena);
}
END_TEST

START_TEST(template_has_any_number_of_parts)
{
    char text[40 * 6 + 1] = "";
    struct arena arena;
    struct arena tight;
    struct fake fake = {STR("ab"), 0};
    const struct template *template = NULL;
    struct str error;
    size_t at;

    for (size_t i = 0; i < 40; i++)
        strcat(text, "$host.");
    arena_init(&arena, NULL, 0);
    arena_init(&tight, NULL, 1);
    ck_assert_int_eq(template_compile(&arena, str_from(text), &table, &template, &at, &error), 0);
    ck_assert_uint_eq(template_eval(template, &fake, &arena).length, 40 * 3);
    ck_assert_ptr_null(template_eval(template, &fake, &tight).data);
    ck_assert_int_eq(template_compile(&tight, STR("x"), &table, &template, &at, &error), -ENOMEM);
    arena_reset(&arena);
}
END_TEST

static const struct {
    const char *text, *written;
} settled_rows[] = {
    {"", ""},
    {"plain", "plain"},
    {"$host", "fir\\x22st"},
    {"$late", "second"},
    {"a $host b $late$late c $arg_none", "a fir\\x22st b secondsecond c -"},
    {"$late.$host", "second.fir\\x22st"},
};

/* If the part is absent, its variables are absent, and no getter is called. */
START_TEST(part_without_a_value_is_a_variable)
{
    struct fake fake = {.host = STR("")};
    const struct template *template;
    struct arena arena;
    struct str error;
    size_t at;
    bool variable;

    arena_init(&arena, NULL, 0);
    ck_assert_int_eq(template_compile(&arena, STR("$part"), &table, &template, &at, &error), 0);
    ck_assert_ptr_null(template_part(template, 0, &fake, &arena, &variable).data);
    ck_assert(variable);
    ck_assert_uint_eq(template_eval(template, &fake, &arena).length, 0);
    arena_reset(&arena);
}
END_TEST

/* template_finish evaluates all variables except late ones, which the later call of template_write evaluates. */
START_TEST(finish_keeps_only_late_variables)
{
    struct fake fake = {STR("fir\"st"), 0};
    struct arena arena;
    const struct template *template;
    struct template *settled;
    struct buffer out;
    struct str error;
    size_t at;

    arena_init(&arena, NULL, 0);
    buffer_init(&out, 0);
    ck_assert_int_eq(template_compile(&arena, str_from(settled_rows[_i].text), &table, &template, &at, &error), 0);
    settled = template_finish(template, &fake, &arena, template_escape_log, STR("-"));
    ck_assert_ptr_nonnull(settled);
    arena_reset(&arena);
    fake.host = STR("second");
    ck_assert_int_eq(template_write(settled, &fake, &arena, &out, template_escape_log, STR("-")), 0);
    ck_assert(str_equal(buffer_str(&out), str_from(settled_rows[_i].written)));
    free(settled);
    buffer_finish(&out);
    arena_reset(&arena);
}
END_TEST

START_TEST(template_write_escapes)
{
    struct arena arena;
    struct fake fake = {STR("a\"b"), 0};
    const struct template *template = NULL;
    struct buffer out = {0};
    struct buffer small = {.max = 6};
    struct str error;
    size_t at;

    arena_init(&arena, NULL, 0);
    ck_assert_int_eq(template_compile(&arena, STR("\"$host\" $arg_none"), &table, &template, &at, &error), 0);
    ck_assert_int_eq(template_write(template, &fake, &arena, &out, template_escape_log, STR("-")), 0);
    ck_assert_int_eq(buffer_append(&out, STR("\n")), 0);
    ck_assert_int_eq(template_write(template, &fake, &arena, &out, template_escape_json, STR("")), 0);
    ck_assert(str_equal(buffer_str(&out), STR("\"a\\x22b\" -\n\"a\\\"b\" ")));
    ck_assert_int_eq(buffer_append(&small, STR("x")), 0);
    ck_assert_int_eq(template_write(template, &fake, &arena, &small, NULL, STR("")), -ENOBUFS);
    ck_assert(str_equal(buffer_str(&small), STR("x")));
    buffer_finish(&small);
    buffer_finish(&out);
    arena_reset(&arena);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, template_evaluates_to_its_value, 0, (int)(sizeof(good) / sizeof(good[0])));
    tcase_add_loop_test(tcase, invalid_templates_are_rejected_at_their_position, 0,
                        (int)(sizeof(bad) / sizeof(bad[0])));
    tcase_add_test(tcase, constants_need_no_memory);
    tcase_add_test(tcase, template_has_any_number_of_parts);
    tcase_add_test(tcase, template_write_escapes);
    tcase_add_test(tcase, part_without_a_value_is_a_variable);
    tcase_add_loop_test(tcase, finish_keeps_only_late_variables, 0,
                        (int)(sizeof(settled_rows) / sizeof(settled_rows[0])));
}

int main(void)
{
    return run_suite("template", add_tests);
}
