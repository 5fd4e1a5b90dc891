#include "http/h1_frame.h"

#include "base/limits.h"
#include "suite.h"

#include <errno.h>

START_TEST(chunk_size_lines_are_parsed_or_rejected)
{
    static const struct {
        const char *line;
        int result;
        uint64_t size;
    } cases[] = {
        {"0", 0, 0},
        {"5", 0, 5},
        {"a", 0, 10},
        {"A", 0, 10},
        {"fF", 0, 255},
        {"0000000000000005", 0, 5},
        {"00000000000000005", 0, 5},
        {"00000000000000000000000000000000000000007fffffffffffffff", 0, INT64_MAX},
        {"7fffffffffffffff", 0, INT64_MAX},
        {"5;a", 0, 5},
        {"5;a=b", 0, 5},
        {"5;a=\"b\"", 0, 5},
        {"5;a=\"\"", 0, 5},
        {"5;a=\"b;c\\\"d\"", 0, 5},
        {"5;a;b=c;d", 0, 5},
        {"5 ; a = b ; c", 0, 5},
        {"5\t;\ta", 0, 5},
        {"5;a=\"\xc3\xa9\"", 0, 5},
        {"", -EBADMSG, 0},
        {" 5", -EBADMSG, 0},
        {"5 ", -EBADMSG, 0},
        {"+5", -EBADMSG, 0},
        {"-5", -EBADMSG, 0},
        {"0x5", -EBADMSG, 0},
        {"5h", -EBADMSG, 0},
        {"g", -EBADMSG, 0},
        {"5,5", -EBADMSG, 0},
        {"5 5", -EBADMSG, 0},
        {"00000000000000008000000000000000", -EBADMSG, 0},
        {"8000000000000000", -EBADMSG, 0},
        {"ffffffffffffffff", -EBADMSG, 0},
        {"10000000000000005", -EBADMSG, 0},
        {";a", -EBADMSG, 0},
        {"5;", -EBADMSG, 0},
        {"5;;a", -EBADMSG, 0},
        {"5;a;", -EBADMSG, 0},
        {"5;=b", -EBADMSG, 0},
        {"5;a=", -EBADMSG, 0},
        {"5;a=b c", -EBADMSG, 0},
        {"5;a=\"b", -EBADMSG, 0},
        {"5;a=\"b\\", -EBADMSG, 0},
        {"5;a=\"b\\\"", -EBADMSG, 0},
        {"5;a=\"b\"c", -EBADMSG, 0},
        {"5;a=\"\x01\"", -EBADMSG, 0},
        {"5;a\r", -EBADMSG, 0},
        {"5\r", -EBADMSG, 0},
        {"5;\"a\"", -EBADMSG, 0},
        {"5;a ", -EBADMSG, 0},
        {"5;a=(", -EBADMSG, 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t size = 0;
        size_t extension = 0;
        int result = h1_chunk_line_parse(str_from(cases[i].line), &size, &extension);

        ck_assert_msg(result == cases[i].result && size == cases[i].size, "\"%s\": %d, %llu", cases[i].line,
                      result, (unsigned long long)size);
    }
}
END_TEST

static struct arena arena;
static struct headers trailers;
static struct buffer decoded;

/* Decodes the bytes in pieces. Returns the last result, and the unconsumed bytes. */
static int decode(struct str bytes, size_t piece, struct str *out_rest)
{
    struct h1_chunked chunked;
    size_t have = 0;
    struct str in = {NULL, 0};
    int result = -EAGAIN;

    arena_init(&arena, NULL, 0);
    trailers = (struct headers){0};
    decoded.length = 0;
    h1_chunked_init(&chunked, &arena, &trailers, 3, false);
    while (result == -EAGAIN && have < bytes.length) {
        struct str part;

        in = str_slice(bytes, have, have + piece);
        have += in.length;
        while ((result = h1_chunked_next(&chunked, &in, &part)) == 1)
            ck_assert_int_eq(buffer_append(&decoded, part), 0);
    }
    *out_rest = str_skip(bytes, have - in.length);
    h1_chunked_finish(&chunked);
    return result;
}

START_TEST(chunked_bodies_are_decoded)
{
    static const struct {
        const char *bytes;
        int result;
        const char *decoded;
        const char *rest;
        const char *trailers; /* names */
    } cases[] = {
        {"0\r\n\r\n", 0, "", "", ""},
        {"0\r\n\r\nrest", 0, "", "rest", ""},
        {"5\r\nhello\r\n0\r\n\r\n", 0, "hello", "", ""},
        {"5\r\nhello\r\n6;x=y\r\n world\r\n0;z\r\n\r\nGET", 0, "hello world", "GET", ""},
        {"1\r\n\r\r\n1\r\n\n\r\n0\r\n\r\n", 0, "\r\n", "", ""},
        {"0\r\nA: 1\r\nB: 2\r\n\r\n", 0, "", "", "A,B,"},
        {"1\r\na\r\n0\r\nA: 1\r\ncontent-length: 2\r\nHost: b\r\n\r\nx", 0, "a", "x", "A,"},
        {"0\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\nAuthorization: y\r\n\r\n", 0, "", "", ""},
        {"0\r\nA_b: 1\r\nC: 2\r\n\r\n", 0, "", "", "C,"},
        /* incomplete */
        {"5", -EAGAIN, "", "", ""},
        {"5\r", -EAGAIN, "", "", ""},
        {"5\r\nhel", -EAGAIN, "hel", "", ""},
        {"5\r\nhello", -EAGAIN, "hello", "", ""},
        {"5\r\nhello\r", -EAGAIN, "hello", "", ""},
        {"0\r\n", -EAGAIN, "", "", ""},
        {"0\r\n\r", -EAGAIN, "", "", ""},
        {"0\r\nA: 1\r\n", -EAGAIN, "", "", ""},
        /* malformed */
        {"5\nhello\r\n0\r\n\r\n", -EBADMSG, "", NULL, ""},
        {"\r\n0\r\n\r\n", -EBADMSG, "", NULL, ""},
        {"5\r\nhello!\r\n", -EBADMSG, "hello", NULL, ""},
        {"5\r\nhello\n0\r\n\r\n", -EBADMSG, "hello", NULL, ""},
        {"5\r\nhello\r0\r\n\r\n", -EBADMSG, "hello", NULL, ""},
        {"5\r\nhello\r\n\r\n", -EBADMSG, "hello", NULL, ""},
        {"0\r\n\n", -EBADMSG, "", NULL, ""},
        {"0\r\nA: 1\n\r\n", -EBADMSG, "", NULL, ""},
        {"0\r\nA 1\r\n\r\n", -EBADMSG, "", NULL, ""},
        {"0\r\nA: 1\r\n b\r\n\r\n", -EBADMSG, "", NULL, ""},
        {"0\r\nA: \x01\r\n\r\n", -EBADMSG, "", NULL, ""},
        {"0\r\nA: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\n\r\n", -EBADMSG, "", NULL, ""},
        {"-1\r\n", -EBADMSG, "", NULL, ""},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str bytes = str_from(cases[i].bytes);

        for (size_t piece = 1; piece <= bytes.length; piece++) {
            struct str rest;
            char names[50] = "";
            int result = decode(bytes, piece, &rest);

            ck_assert_msg(result == cases[i].result, "row %zu in pieces of %zu: %d", i, piece, result);
            ck_assert_text(buffer_str(&decoded), cases[i].decoded);
            if (cases[i].rest)
                ck_assert_text(rest, cases[i].rest);
            for (unsigned j = 0; j < trailers.count && result == 0; j++) {
                strncat(names, trailers.items[j].name.data, trailers.items[j].name.length);
                strcat(names, ",");
            }
            ck_assert_str_eq(names, cases[i].trailers);
            arena_reset(&arena);
        }
    }
    buffer_finish(&decoded);
}
END_TEST

static int decode_repeated(const char *start, const char *repeated, size_t count, size_t piece)
{
    struct buffer bytes = {0};
    struct str rest;
    int result = buffer_append(&bytes, str_from(start));

    for (size_t i = 0; i < count; i++)
        result |= buffer_append(&bytes, str_from(repeated));
    ck_assert_int_eq(result, 0);
    result = decode(buffer_str(&bytes), piece, &rest);
    buffer_finish(&bytes);
    arena_reset(&arena);
    return result;
}

START_TEST(chunk_lines_extensions_and_trailers_are_limited)
{
    static const size_t pieces[] = {1, 7, 100000};

    for (size_t i = 0; i < COUNT(pieces); i++) {
        /* a size line of unlimited length */
        ck_assert_int_eq(decode_repeated("5;", "a", LIMIT_CHUNK_LINE - 2, pieces[i]), -EAGAIN);
        ck_assert_int_eq(decode_repeated("5;", "a", LIMIT_CHUNK_LINE - 1, pieces[i]), -EBADMSG);
        /* extensions that are longer than their chunks */
        ck_assert_int_eq(decode_repeated("", "1;aaaaaaa\r\nx\r\n", LIMIT_CHUNK_EXTENSIONS / 8, pieces[i]),
                         -EAGAIN);
        ck_assert_int_eq(decode_repeated("", "1;aaaaaaa\r\nx\r\n", LIMIT_CHUNK_EXTENSIONS / 8 + 1, pieces[i]),
                         -EBADMSG);
        /* trailers of unlimited length */
        ck_assert_int_eq(decode_repeated("0\r\n", "a", LIMIT_TRAILER_BYTES, pieces[i]), -EAGAIN);
        ck_assert_int_eq(decode_repeated("0\r\n", "a", LIMIT_TRAILER_BYTES + 1, pieces[i]), -EBADMSG);
        ck_assert_int_eq(decode_repeated("0\r\n", "a: b\r\n", 3, pieces[i]), -EAGAIN);
        ck_assert_int_eq(decode_repeated("0\r\n", "a: b\r\n", 4, pieces[i]), -EBADMSG);
    }
    buffer_finish(&decoded);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {chunk_size_lines_are_parsed_or_rejected, chunked_bodies_are_decoded,
                                  chunk_lines_extensions_and_trailers_are_limited};

    return suite_run("h1_frame", tests, COUNT(tests));
}
