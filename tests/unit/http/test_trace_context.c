#include "http/trace_context.h"

#include "base/limits.h"
#include "suite.h"

#include <stdio.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"
#define PARENT "-" TRACE "-" SPAN

static struct arena arena;
static struct headers headers;

static void set_fields(const char *name, const char *const *values, size_t count)
{
    arena_reset(&arena);
    headers = (struct headers){0};
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(headers_add(&headers, &arena, str_from(name), str_from(values[i])), 0);
}

static bool read_parent(const char *value, struct trace_context *out)
{
    set_fields("Traceparent", &value, 1);
    return traceparent_read(&headers, out);
}

static const struct {
    const char *value;
    bool sampled;
} valid[] = {
    {"00" PARENT "-00", false},
    {"00" PARENT "-01", true},
    {"00" PARENT "-02", false},
    {"00" PARENT "-ff", true},
    {"00-00000000000000000000000000000001-0000000000000001-01", true},
    {"01" PARENT "-01", true},
    {"cc" PARENT "-00-what-the-future-will-be-like", false},
    {"fe" PARENT "-01-", true},
};

START_TEST(valid_parents_are_read)
{
    struct trace_context context = {0};
    char text[TRACEPARENT_LENGTH];

    ck_assert_msg(read_parent(valid[_i].value, &context), "%s", valid[_i].value);
    ck_assert(str_equal(context.trace_id, str_of(valid[_i].value + 3, 32)));
    ck_assert(str_equal(context.span_id, str_of(valid[_i].value + 36, 16)));
    ck_assert(context.sampled == valid[_i].sampled);
    traceparent_write(&context, text);
    ck_assert(memcmp(text, "00", 2) == 0 && memcmp(text + 2, valid[_i].value + 2, 51) == 0);
    ck_assert(memcmp(text + 53, valid[_i].sampled ? "01" : "00", 2) == 0);
}
END_TEST

static const char *const invalid[] = {
    "",
    "-",
    "00",
    "00-",
    "00-" TRACE,
    "00-" TRACE "-",
    "00" PARENT,
    "00" PARENT "-",
    "00" PARENT "-0",
    "00" PARENT "-001",
    "00" PARENT "-01-",
    "00" PARENT "-01-more",
    "00" PARENT "-01 ",
    "00" PARENT "-01,00" PARENT "-01",
    "00" PARENT "-0x",
    "00" PARENT "-0A",
    "00" PARENT ".01",
    "00" PARENT "_01",
    "0" PARENT "-01",
    "000" PARENT "-01",
    "0x" PARENT "-01",
    "ff" PARENT "-01",
    "FE" PARENT "-01",
    "01" PARENT "-01.more",
    "01" PARENT "-0",
    "01" PARENT,
    "00-00000000000000000000000000000000-" SPAN "-01",
    "00-" TRACE "-0000000000000000-01",
    "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
    "00-" TRACE "-B7AD6B7169203331-01",
    "00-" TRACE "0-" SPAN "-01",
    "00-0af7651916cd43dd8448eb211c80319-" SPAN "-01",
    "00-" TRACE "-b7ad6b716920333-01",
    "00-" TRACE "-" SPAN "1-01",
    "00-0af7651916cd43dd8448eb211c80319g-" SPAN "-01",
    "00-" TRACE "-b7ad6b716920333g-01",
    "00--" SPAN "-01",
    " 00" PARENT "-01",
};

START_TEST(invalid_parents_are_rejected)
{
    struct trace_context context = {.sampled = true};

    ck_assert_msg(!read_parent(invalid[_i], &context), "%s", invalid[_i]);
    ck_assert(context.sampled && !context.trace_id.data);
}
END_TEST

START_TEST(only_one_parent_is_read)
{
    static const char *const twice[] = {"00" PARENT "-01", "00" PARENT "-01"};
    struct trace_context context;

    set_fields("traceparent", twice, 0);
    ck_assert(!traceparent_read(&headers, &context));
    set_fields("traceparent", twice, 2);
    ck_assert(!traceparent_read(&headers, &context));
    set_fields("traceparent", twice, 1);
    ck_assert(traceparent_read(&headers, &context));
}
END_TEST

#define FIFTY "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee"
#define L240  FIFTY FIFTY FIFTY FIFTY "0123456789012345678901234567890123456789"

/* `joined` is the value that is forwarded; empty: none. */
static const struct {
    const char *values[3];
    const char *joined;
} states[] = {
    {{"congo=t61rcWkgMzE"}, "congo=t61rcWkgMzE"},
    {{"rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"}, "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"},
    {{"a=1", "b=2", "c=3"}, "a=1,b=2,c=3"},
    {{"a=1 , b=2\t,\tc=3"}, "a=1 , b=2\t,\tc=3"},
    {{"a=1,,b=2", ""}, "a=1,,b=2,"},
    {{"a= 1 2"}, "a= 1 2"},
    {{"a=!\"#$%&'()*+-./:;<>?@[\\]^_`{|}~"}, "a=!\"#$%&'()*+-./:;<>?@[\\]^_`{|}~"},
    {{"a0_-*/=1"}, "a0_-*/=1"},
    {{"0tenant_-*/@system_-*/=1"}, "0tenant_-*/@system_-*/=1"},
    {{"a@abcdefghijklmn=1"}, "a@abcdefghijklmn=1"},
    {{L240 "@b=1"}, L240 "@b=1"},
    {{"0" L240 "@b=1"}, "0" L240 "@b=1"},
    {{"a" L240 "012345678901234=1"}, "a" L240 "012345678901234=1"},
    {{"a=" L240 "0123456789012345"}, "a=" L240 "0123456789012345"},
    {{""}, ""},
    {{" , ", ","}, ""},
    {{"a"}, ""},
    {{"a="}, ""},
    {{"a= "}, ""},
    {{"=1"}, ""},
    {{"a=1=2"}, ""},
    {{"a =1"}, ""},
    {{"A=1"}, ""},
    {{"0=1"}, ""},
    {{"a.b=1"}, ""},
    {{"a@=1"}, ""},
    {{"@a=1"}, ""},
    {{"a@0=1"}, ""},
    {{"a@@b=1"}, ""},
    {{"a@b@c=1"}, ""},
    {{"a@abcdefghijklmno=1"}, ""},
    {{"a=1\t2"}, ""},
    {{"a=\xc3\xa4"}, ""},
    {{"a=1;b"}, "a=1;b"},
    {{"01" L240 "@b=1"}, ""},
    {{"a" L240 "0123456789012345=1"}, ""},
    {{"a=" L240 "01234567890123456"}, ""},
    {{"a=1,a=2"}, ""},
    {{"a=1", "b=2", "a=1"}, ""},
};

START_TEST(states_are_joined_and_checked)
{
    struct str state;
    size_t count = 0;

    while (count < 3 && states[_i].values[count])
        count++;
    set_fields("TraceState", states[_i].values, count);
    ck_assert_int_eq(tracestate_read(&headers, &arena, &state), 0);
    ck_assert_msg(str_equal(state, str_from(states[_i].joined)), "\"" STR_FMT "\" of \"%s\"", STR_ARG(state),
                  states[_i].values[0]);
}
END_TEST

START_TEST(members_are_limited)
{
    struct str state;
    char key[LIMIT_TRACESTATE_MEMBERS + 1][8];

    arena_reset(&arena);
    headers = (struct headers){0};
    ck_assert_int_eq(tracestate_read(&headers, &arena, &state), 0);
    ck_assert(str_empty(state) && state.data);
    for (size_t i = 0; i <= LIMIT_TRACESTATE_MEMBERS; i++) {
        ck_assert_int_eq(tracestate_read(&headers, &arena, &state), 0);
        ck_assert(str_empty(state) == (i == 0));
        snprintf(key[i], sizeof(key[i]), "k%zu=v", i);
        ck_assert_int_eq(headers_add(&headers, &arena, STR("tracestate"), str_from(key[i])), 0);
    }
    ck_assert_int_eq(tracestate_read(&headers, &arena, &state), 0);
    ck_assert(str_empty(state));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {only_one_parent_is_read, members_are_limited};
    const struct suite_loop loops[] = {{valid_parents_are_read, COUNT(valid)},
                                       {invalid_parents_are_rejected, COUNT(invalid)},
                                       {states_are_joined_and_checked, COUNT(states)}};
    int failed = suite_run_loops("trace_context", tests, COUNT(tests), loops, COUNT(loops));

    arena_reset(&arena);
    return failed;
}
