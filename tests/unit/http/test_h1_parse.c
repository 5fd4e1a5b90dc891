/* The end of a request head, the limits of its lines, and field lines. */
#include "http/h1_parse.h"

#include "suite.h"

static const struct session_settings settings = {.header_buffer_size = 100,
                                                 .large_header_size = 200,
                                                 .head_max = 500,
                                                 .max_headers = 5,
                                                 .merge_slashes = true};

/* Feeds the bytes in pieces. Returns the length of the head, or minus the status. */
static int head_end(struct str bytes, size_t piece)
{
    struct h1_scan scan = {0};
    int end = 0;

    for (size_t have = piece; end == 0; have += piece) {
        end = h1_head_end(&scan, &settings, str_slice(bytes, 0, have));
        if (have >= bytes.length)
            break;
    }
    return end;
}

START_TEST(head_ends_at_the_empty_line)
{
    static const struct {
        const char *bytes;
        int end;
    } cases[] = {
        {"", 0},
        {"G", 0},
        {"GET / HTTP/1.1", 0},
        {"GET / HTTP/1.1\r", 0},
        {"GET / HTTP/1.1\r\n", 0},
        {"GET / HTTP/1.1\r\n\r", 0},
        {"GET / HTTP/1.1\r\n\r\n", 18},
        {"GET / HTTP/1.1\r\n\r\nrest", 18},
        {"GET / HTTP/1.1\r\na: b\r\n\r\nGET", 24},
        {"\r\nG\r\n\r\n", 7},
        {"\r\n\r\n\r\n\r\nG\r\n\r\n", 13},
        {"\r", 0},
        {"\r\n", 0},
        {"\r\n\r", 0},
        {"\n", -400},
        {"\r\r", -400},
        {"\rG", -400},
        {"\r\n\r\n\r\n\r\n\r\nG\r\n\r\n", -400},
        {" GET / HTTP/1.1\r\n\r\n", -400},
        {"\tGET", -400},
        {"\x16\x03\x01", -400},
        {"{}", -400},
        {"\"", -400},
        {":", -400},
        {"\x80", -400},
        {"G\n", -400},
        {"G\n\n", -400},
        {"G\r\n\n", -400},
        {"G\r\na: b\n\r\n", -400},
        {"G\r\na: b\r\n\n", -400},
        {"G\r\r\n\r\n", 6},
        {"G\r\n1\r\n2\r\n3\r\n4\r\n5\r\n\r\n", 20},
        {"G\r\n1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n\r\n", -431},
        {"G\r\n1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\n\r\n", -431},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str bytes = str_from(cases[i].bytes);

        for (size_t piece = 1; piece <= bytes.length + 1; piece++) {
            int end = head_end(bytes, piece);

            ck_assert_msg(end == cases[i].end, "row %zu in pieces of %zu: %d instead of %d", i, piece, end,
                          cases[i].end);
        }
    }
}
END_TEST

/* Lines of the greatest permitted length, and lines with one byte more. */
START_TEST(longest_lines_are_accepted_and_longer_rejected)
{
    static const struct {
        size_t first;
        size_t others;
        size_t count;
        int end;
    } cases[] = {
        {200, 0, 0, 202},   {201, 0, 0, -414},   {900, 0, 0, -414},   {10, 200, 1, 212},  {10, 201, 1, -431},
        {200, 149, 2, 500}, {200, 150, 2, -431}, {200, 200, 3, -431}, {10, 900, 1, -431},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char bytes[2000];
        char *at = bytes;

        for (size_t line = 0; line <= cases[i].count; line++) {
            size_t length = line ? cases[i].others : cases[i].first;

            memset(at, 'a', length);
            memcpy(at + length - 2, "\r\n", 2);
            at += length;
        }
        memcpy(at, "\r\n", 2);
        at += 2;
        for (size_t piece = 1; piece < 1500; piece = piece * 2 + 1) {
            int end = head_end(str_of(bytes, (size_t)(at - bytes)), piece);

            ck_assert_msg(end == cases[i].end, "row %zu in pieces of %zu: %d", i, piece, end);
        }
    }
}
END_TEST

/* A line that is too long is rejected before its end arrives. */
START_TEST(long_lines_are_rejected_early)
{
    char bytes[600];

    memset(bytes, 'a', sizeof(bytes));
    ck_assert_int_eq(head_end(str_of(bytes, 200), 200), 0);
    ck_assert_int_eq(head_end(str_of(bytes, 201), 201), -414);
    memcpy(bytes, "G\r\n", 3);
    ck_assert_int_eq(head_end(str_of(bytes, 203), 203), 0);
    ck_assert_int_eq(head_end(str_of(bytes, 204), 204), -431);
}
END_TEST

static struct arena arena;

START_TEST(names_with_underscores_are_dropped_unless_permitted)
{
    struct headers headers = {0};

    arena_init(&arena, NULL, 0);
    ck_assert_int_eq(h1_parse_fields(STR("A_b: 1\r\nC: 2\r\n"), true, &arena, &headers), 0);
    ck_assert_uint_eq(headers.count, 2);
    ck_assert_int_eq(h1_parse_fields(STR("A_b: 1\r\nC: 2\r\n"), false, &arena, &headers), 0);
    ck_assert_uint_eq(headers.count, 3);
    /* A name similar to that of a field that the server adds is always dropped. */
    ck_assert_int_eq(h1_parse_fields(STR("X_Forwarded_For: 1\r\nx-real_ip: 2\r\nX_Forwarded: 3\r\n"), true, &arena,
                                     &headers), 0);
    ck_assert_uint_eq(headers.count, 4);
    arena_reset(&arena);
}
END_TEST

START_TEST(tokens_and_values_have_permitted_bytes_only)
{
    ck_assert(h1_is_token(STR("Content-Type")));
    ck_assert(!h1_is_token(STR("")));
    ck_assert(!h1_is_token(STR("a b")));
    ck_assert(!h1_is_token(STR("a:")));
    ck_assert(h1_is_value(STR("")));
    ck_assert(h1_is_value(STR("a\tb \xff")));
    ck_assert(!h1_is_value(STR("a\r")));
    ck_assert(!h1_is_value(STR("a\nb")));
    ck_assert(!h1_is_value(STR("a\0b")));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        head_ends_at_the_empty_line, longest_lines_are_accepted_and_longer_rejected, long_lines_are_rejected_early,
        names_with_underscores_are_dropped_unless_permitted, tokens_and_values_have_permitted_bytes_only,
    };

    return suite_run("h1_parse", tests, COUNT(tests));
}
