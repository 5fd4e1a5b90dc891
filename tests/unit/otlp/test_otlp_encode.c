#include "otlp/otlp_encode.h"

#include "../runner.h"

#include <errno.h>
#include <stdio.h>

static const struct otlp_pair attributes[] = {{{"r", 1}, {"v", 1}}};
static const struct otlp otlp = {.service_name = {"svc", 3}, .resource = attributes, .resource_count = 1};

static struct span named_span(struct str name)
{
    struct span span = {.start_ns = 1, .end_ns = 0x0102030405060708};

    memset(span.trace_id, 'T', sizeof(span.trace_id));
    memset(span.span_id, 'S', sizeof(span.span_id));
    span_set_name(&span, name);
    return span;
}

static void begin(struct otlp_message *message, size_t max)
{
    otlp_message_begin(message, &otlp, STR("1"), max);
}

/* Ends the message, and compares it with hexadecimal digits. */
static void check_bytes(struct otlp_message *message, const char *expected)
{
    char digits[1024];

    ck_assert_int_eq(otlp_message_end(message), 0);
    ck_assert_uint_lt(message->out.length, sizeof(digits) / 2);
    for (size_t i = 0; i < message->out.length; i++)
        snprintf(digits + 2 * i, 3, "%02x", (unsigned char)message->out.data[i]);
    ck_assert_str_eq(digits, expected);
    otlp_message_finish(message);
}

#define RESOURCE "0a210a150a0c736572766963652e6e616d6512050a037376630a080a017212030a0176"
#define SCOPE    "0a0b0a06736c75696365120131"

/* The bytes were made by a second encoder, in Python. */
START_TEST(an_empty_batch_has_known_bytes)
{
    struct otlp_message message;

    begin(&message, 1 << 20);
    check_bytes(&message, "0a32" RESOURCE "120d" SCOPE);
}
END_TEST

START_TEST(a_span_has_known_bytes)
{
    struct span span = named_span(STR("/"));
    struct otlp_message message;

    span.flags = SPAN_HAS_PARENT | SPAN_FAILED;
    memset(span.parent_id, 'P', sizeof(span.parent_id));
    span_add_number(&span, STR("n"), 300);
    span_add_text(&span, STR("k"), STR("v"));
    begin(&message, 1 << 20);
    ck_assert_int_eq(otlp_message_add(&message, &span), 0);
    check_bytes(&message, "0a8f01" RESOURCE "126a" SCOPE
                          "125b0a10545454545454545454545454545454541208535353535353535322085050505050505050"
                          "3002390100000000000000410807060504030201"
                          "2a012f4a080a016e120318ac024a080a016b12030a01767a021802850101030000");
}
END_TEST

START_TEST(without_parent_and_failure_their_fields_are_absent)
{
    struct span span = named_span(STR("/"));
    struct otlp_message message;

    span.dropped = 7;
    begin(&message, 1 << 20);
    ck_assert_int_eq(otlp_message_add(&message, &span), 0);
    check_bytes(&message, "0a6f" RESOURCE "124a" SCOPE
                          "123b0a105454545454545454545454545454545412085353535353535353"
                          "3002390100000000000000410807060504030201"
                          "2a012f5007850101010000");
}
END_TEST

static const struct {
    const char *text, *encoded;
} texts[] = {
    {"", ""},
    {"a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
    {"a\nb", "a\xEF\xBF\xBD" "b"},
    {"\x1b[1m", "\xEF\xBF\xBD[1m"},
    {"\x7f", "\xEF\xBF\xBD"},
    {"\xC2\x85x", "\xEF\xBF\xBDx"},             /* C1 */
    {"\xC2\xA0", "\xC2\xA0"},
    {"\xff" "a", "\xEF\xBF\xBD" "a"},
    {"\xC0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD"},   /* overlong */
    {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, /* surrogate */
    {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, /* above U+10FFFF */
    {"x\xE2\x82", "x\xEF\xBF\xBD\xEF\xBF\xBD"}, /* truncated */
};

START_TEST(texts_are_utf8_without_control_characters)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct span span = named_span(str_from(texts[i].text));
        struct str encoded = str_from(texts[i].encoded);
        struct otlp_message message;
        struct str bytes;
        char field[64];

        begin(&message, 1 << 20);
        ck_assert_int_eq(otlp_message_add(&message, &span), 0);
        ck_assert_int_eq(otlp_message_end(&message), 0);
        snprintf(field, sizeof(field), "\x2a%c%s\x85\x01", (int)encoded.length, encoded.data);
        bytes = buffer_str(&message.out);
        /* The length of an empty text is a NUL, at which snprintf ends. */
        ck_assert(i == 0 || str_search(bytes, str_from(field)) > 0);
        otlp_message_finish(&message);
    }
}
END_TEST

START_TEST(a_full_message_is_unchanged)
{
    struct span span = named_span(STR("/"));
    struct otlp_message message;
    size_t length;

    begin(&message, 200);
    ck_assert_int_eq(otlp_message_add(&message, &span), 0);
    length = message.out.length;
    ck_assert_int_eq(otlp_message_add(&message, &span), 0);
    ck_assert_uint_eq(message.out.length, length + 59);
    ck_assert_int_eq(otlp_message_add(&message, &span), -ENOBUFS);
    ck_assert_uint_eq(message.out.length, length + 59);
    ck_assert_int_eq(otlp_message_end(&message), 0);
    otlp_message_finish(&message);
}
END_TEST

START_TEST(a_message_without_room_for_the_resource_fails)
{
    struct span span = named_span(STR("/"));
    struct otlp_message message;

    begin(&message, 8);
    ck_assert_int_lt(otlp_message_add(&message, &span), 0);
    ck_assert_int_lt(otlp_message_end(&message), 0);
    otlp_message_finish(&message);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {an_empty_batch_has_known_bytes, a_span_has_known_bytes,
                                  without_parent_and_failure_their_fields_are_absent,
                                  texts_are_utf8_without_control_characters, a_full_message_is_unchanged,
                                  a_message_without_room_for_the_resource_fails, NULL};

    return run_tests("otlp_encode", tests);
}
