#include "control/json_object.h"

#include "../runner.h"

#include <errno.h>
#include <stdio.h>

static struct arena arena;

static int parse(const char *text, struct json_object *out, struct json_fault *out_fault)
{
    arena_reset(&arena);
    arena_init(&arena, NULL, 0);
    return json_object_parse(&arena, str_from(text), out, out_fault);
}

START_TEST(members_are_read)
{
    struct json_object object;
    struct json_fault fault;

    ck_assert_int_eq(parse(" { \"a\" : \"x\" ,\r\n\t\"b\":-12.5e+3, \"c\": true,\"d\":false,\"\":null } \n", &object,
                           &fault), 0);
    ck_assert_uint_eq(object.count, 5);
    ck_assert(str_equal(object.members[0].name, STR("a")) && object.members[0].kind == JSON_TEXT);
    ck_assert(str_equal(object.members[0].text, STR("x")));
    ck_assert(str_equal(object.members[1].text, STR("-12.5e+3")) && object.members[1].kind == JSON_NUMBER);
    ck_assert(str_equal(object.members[2].text, STR("true")) && object.members[2].kind == JSON_SWITCH);
    ck_assert(str_equal(object.members[3].text, STR("false")) && object.members[3].kind == JSON_SWITCH);
    ck_assert(str_empty(object.members[4].name) && object.members[4].kind == JSON_NULL);
    ck_assert_int_eq(parse("{}", &object, &fault), 0);
    ck_assert_uint_eq(object.count, 0);
}
END_TEST

START_TEST(texts_are_decoded)
{
    struct json_object object;
    struct json_fault fault;

    ck_assert_int_eq(parse("{\"a\": \"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e4\\u20AC\\ud83d\\ude00\"}", &object,
                           &fault), 0);
    ck_assert(str_equal(object.members[0].text, STR("\"\\/\b\f\n\r\tA\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80")));
    ck_assert_int_eq(parse("{\"a\": \"\xc3\xa4\"}", &object, &fault), 0);
    ck_assert(str_equal(object.members[0].text, STR("\xc3\xa4")));
}
END_TEST

START_TEST(faults_have_a_place)
{
    static const struct {
        const char *text;
        const char *reason;
        size_t at;
    } cases[] = {
        {"[]", "{ is expected", 1},
        {"", "{ is expected", 1},
        {"{", "a name in quotation marks is expected", 2},
        {"{a: 1}", "a name in quotation marks is expected", 2},
        {"{\"a\" 1}", "a colon is expected", 6},
        {"{\"a\": }", "a text in quotation marks, a number, true or false is expected", 7},
        {"{\"a\": [1]}", "a text in quotation marks, a number, true or false is expected", 7},
        {"{\"a\": 01}", "a text in quotation marks, a number, true or false is expected", 7},
        {"{\"a\": 1.}", "a text in quotation marks, a number, true or false is expected", 7},
        {"{\"a\": 1e}", "a text in quotation marks, a number, true or false is expected", 7},
        {"{\"a\": -}", "a text in quotation marks, a number, true or false is expected", 7},
        {"{\"a\": truer}", "a comma or } is expected", 11},
        {"{\"a\": 1,}", "a name in quotation marks is expected", 9},
        {"{\"a\": 1", "a comma or } is expected", 8},
        {"{\"a\": 1} x", "the end is expected", 10},
        {"{\"a\": 1, \"a\": 2}", "the name before is used twice", 13},
        {"{\"a\": \"x", "the text has no end", 9},
        {"{\"a\": \"x\\", "the text has no end", 10},
        {"{\"a\": \"\n\"}", "a text has no control characters; write \\n and \\u0001", 8},
        {"{\"a\": \"\\x\"}", "there is no such escape sequence", 9},
        {"{\"a\": \"\\u00g0\"}", "four hexadecimal digits are expected", 10},
        {"{\"a\": \"\\u00", "four hexadecimal digits are expected", 10},
        {"{\"a\": \"\\u0000\"}", "this is not a character", 14},
        {"{\"a\": \"\\udc00\"}", "this is not a character", 14},
        {"{\"a\": \"\\ud800x\"}", "this is not a character", 14},
        {"{\"a\": \"\\ud800\\u0041\"}", "this is not a character", 20},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json_object object = {.count = 99};
        struct json_fault fault = {NULL, 0};

        ck_assert_msg(parse(cases[i].text, &object, &fault) == -EINVAL, "%s", cases[i].text);
        ck_assert_str_eq(fault.reason, cases[i].reason);
        ck_assert_msg(fault.at == cases[i].at, "%s: %zu", cases[i].text, fault.at);
        ck_assert_uint_eq(object.count, 99);
    }
}
END_TEST

START_TEST(members_are_bounded)
{
    char text[512] = "{";
    struct json_object object;
    struct json_fault fault;

    for (int i = 0; i < JSON_MEMBERS_MAX; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s\"%d\": %d", i ? "," : "", i, i);
    strcat(text, "}");
    ck_assert_int_eq(parse(text, &object, &fault), 0);
    ck_assert_uint_eq(object.count, JSON_MEMBERS_MAX);
    text[strlen(text) - 1] = '\0';
    strcat(text, ",\"more\": 1}");
    ck_assert_int_eq(parse(text, &object, &fault), -EINVAL);
    ck_assert_str_eq(fault.reason, "the object has too many members");
    arena_reset(&arena);
}
END_TEST

int main(void)
{
    return run_tests("control_json_object", (const TTest *const[]){
            members_are_read, texts_are_decoded, faults_have_a_place, members_are_bounded, NULL});
}
