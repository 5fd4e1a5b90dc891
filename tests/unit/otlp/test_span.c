#include "otlp/span.h"

#include "../runner.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"

static struct span *valid_span(void)
{
    static struct span span;

    span = (struct span){.start_ns = 1, .end_ns = 2, .trace_id = {1}, .span_id = {2}};
    span_set_name(&span, STR("/api/"));
    span_add_text(&span, STR("url.path"), STR("/api/a"));
    span_add_number(&span, STR("http.response.status_code"), 200);
    return &span;
}

START_TEST(items_are_read_in_order)
{
    const struct span *span = valid_span();
    struct span_item item;
    size_t at = 0;

    ck_assert(span_is_valid(span));
    ck_assert(span_next(span, &at, &item) && item.kind == SPAN_NAME && str_equal(item.text, STR("/api/")));
    ck_assert(span_next(span, &at, &item) && item.kind == SPAN_TEXT && str_equal(item.key, STR("url.path")));
    ck_assert(str_equal(item.text, STR("/api/a")));
    ck_assert(span_next(span, &at, &item) && item.kind == SPAN_NUMBER && item.number == 200);
    ck_assert(!span_next(span, &at, &item) && at == span->length);
}
END_TEST

START_TEST(long_values_are_truncated)
{
    char text[LIMIT_SPAN_TEXT + 1];
    struct span span = {0};
    struct span_item item;
    size_t at = 0;

    memset(text, 'x', sizeof(text));
    span_set_name(&span, str_of(text, sizeof(text)));
    span_add_text(&span, STR("a"), str_of(text, sizeof(text)));
    for (unsigned i = 0; i < 2; i++)
        ck_assert(span_next(&span, &at, &item) && item.text.length == LIMIT_SPAN_TEXT);
    ck_assert_uint_eq(span.dropped, 0);
}
END_TEST

START_TEST(attributes_without_room_are_counted)
{
    char text[LIMIT_SPAN_TEXT] = "", key[LIMIT_SPAN_KEY + 1] = "";
    struct span *span = valid_span();
    uint16_t length;

    span_add_text(span, str_of(key, sizeof(key)), STR(""));
    ck_assert_uint_eq(span->dropped, 1);
    for (unsigned i = 0; i < 5; i++)
        span_add_text(span, STR("k"), str_of(text, sizeof(text)));
    ck_assert_uint_eq(span->dropped, 3);
    length = span->length;
    span_add_number(span, STR("k"), 1);
    ck_assert_uint_gt(span->length, length);
    ck_assert(span_is_valid(span));
}
END_TEST

START_TEST(ids_are_parsed)
{
    static const uint8_t expected[SPAN_TRACE_BYTES] = {0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd,
                                                       0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c};
    uint8_t id[SPAN_TRACE_BYTES];

    span_parse_id(STR(TRACE), id);
    ck_assert_mem_eq(id, expected, sizeof(id));
}
END_TEST

START_TEST(a_long_tracestate_keeps_the_first_members)
{
    struct span *span = calloc(1, sizeof(*span));
    struct span_item item;
    char state[3 * LIMIT_SPAN_TEXT];
    size_t at = 0;

    memset(state, 'a', sizeof(state));
    span_set_name(span, STR("/"));
    span_set_tracestate(span, STR(""));
    span_set_tracestate(span, str_of(state, sizeof(state))); /* not one member fits */
    ck_assert_uint_eq(span->length, 5);
    state[3] = state[300] = state[LIMIT_SPAN_TEXT + 1] = ',';
    span_set_tracestate(span, str_of(state, sizeof(state)));
    ck_assert(span_next(span, &at, &item) && span_next(span, &at, &item));
    ck_assert(item.kind == SPAN_TRACESTATE && str_equal(item.text, str_of(state, 300)));
    span->length = 5;
    at = 5;
    state[LIMIT_SPAN_TEXT] = ',';
    span_set_tracestate(span, str_of(state, sizeof(state)));
    ck_assert(span_next(span, &at, &item) && str_equal(item.text, str_of(state, LIMIT_SPAN_TEXT)));
    free(span);
}
END_TEST

START_TEST(a_tracestate_follows_the_name)
{
    struct span *span = calloc(1, sizeof(*span));

    span->trace_id[0] = span->span_id[0] = 1;
    span_set_name(span, STR("/"));
    span_set_tracestate(span, STR("a=1"));
    span_add_text(span, STR("k"), STR("v"));
    ck_assert(span_is_valid(span));
    span_set_tracestate(span, STR("b=2")); /* a second one, after an attribute */
    ck_assert(!span_is_valid(span));
    span->length = 5;
    span_set_tracestate(span, STR("a=1"));
    span->items[5] = SPAN_TEXT; /* an attribute without a key */
    ck_assert(!span_is_valid(span));
    free(span);
}
END_TEST

/* A compromised worker can write anything: no read leaves the copy, and the span is rejected. */
START_TEST(overwritten_spans_are_rejected)
{
    struct span *span = valid_span();

    span->length = UINT16_MAX;
    ck_assert(!span_is_valid(span));
    span = valid_span();
    span->length--;
    ck_assert(!span_is_valid(span));
    span = valid_span();
    span->length = 0;
    ck_assert(!span_is_valid(span));
    span = valid_span();
    span->items[1] = 1; /* a name with a key */
    span->items[2]--;
    ck_assert(!span_is_valid(span));
    span = valid_span();
    span->items[0] = SPAN_TEXT; /* no name */
    ck_assert(!span_is_valid(span));
    span = valid_span();
    span->items[9] = SPAN_NAME; /* two names */
    ck_assert(!span_is_valid(span));
    span = valid_span();
    span->items[9] = (char)0xff;
    ck_assert(!span_is_valid(span));
    span = valid_span();
    span->items[10] = 0; /* an empty key; the rest does not fit */
    ck_assert(!span_is_valid(span));
    span = valid_span();
    memset(span->trace_id, 0, sizeof(span->trace_id));
    ck_assert(!span_is_valid(span));
    span = valid_span();
    memset(span->span_id, 0, sizeof(span->span_id));
    ck_assert(!span_is_valid(span));
    span = valid_span();
    span->start_ns = 3;
    ck_assert(!span_is_valid(span));
}
END_TEST

START_TEST(no_bytes_are_read_outside_the_items)
{
    struct span *span = malloc(sizeof(*span)); /* for the sanitizer */
    uint32_t random = 1;

    for (unsigned round = 0; round < 2000; round++) {
        for (size_t i = 0; i < sizeof(*span); i++) {
            random = random * 1664525 + 1013904223;
            ((unsigned char *)span)[i] = random >> 24 & (i % 3 ? 0x83 : 0xff);
        }
        ck_assert(!span_is_valid(span) || span->length <= sizeof(span->items));
    }
    free(span);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {items_are_read_in_order, long_values_are_truncated,
                                  attributes_without_room_are_counted,
                                  ids_are_parsed, a_long_tracestate_keeps_the_first_members,
                                  a_tracestate_follows_the_name,
                                  overwritten_spans_are_rejected, no_bytes_are_read_outside_the_items,
                                  NULL};

    return run_tests("span", tests);
}
