#include "base/utf8.h"

#include "../runner.h"

/* Encodes a number as RFC 3629 does, also numbers that are not characters. Returns the length. */
static size_t encode(uint32_t code, char out[4])
{
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    for (size_t i = length; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(first[length] | code);
    return length;
}

/* All characters, and beside them all surrogates and the numbers after the last character. */
START_TEST(characters_are_decoded)
{
    char bytes[4];

    for (uint32_t code = 0; code < 0x120000; code++) {
        size_t length = encode(code, bytes);
        bool good = code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
        uint32_t decoded = UINT32_MAX;

        assert_in_loop(utf8_decode(str_of(bytes, length), &decoded) == (good ? length : 0));
        assert_in_loop(utf8_length(str_of(bytes, length)) == (good ? length : 0));
        assert_in_loop(!good || decoded == code);
        assert_in_loop(length == 1 || utf8_length(str_of(bytes, length - 1)) == 0);
    }
}
END_TEST

START_TEST(malformed_bytes_are_rejected)
{
    static const char *const cases[] = {
        "\x80",          "\xbf",          "\xc0\x80",         "\xc1\xbf",         "\xe0\x80\x80",     "\xe0\x9f\xbf",
        "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80", "\xff", "\xc3(",
        "\xe2\x82(",      "\xe2(\xac",      "\xf0\x9f\x98(",     "\xc3\xc3\xa4"};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t code;

        ck_assert_msg(utf8_decode(str_from(cases[i]), &code) == 0, "case %zu", i);
    }
}
END_TEST

START_TEST(only_the_first_character_is_decoded)
{
    uint32_t code;

    ck_assert_uint_eq(utf8_decode(STR("\xc3\xa4\xff"), &code), 2);
    ck_assert_uint_eq(code, 0xe4);
    ck_assert_uint_eq(utf8_decode(STR("a\xff"), &code), 1);
    ck_assert_uint_eq(code, 'a');
    ck_assert_uint_eq(utf8_decode(str_of("\0b", 2), &code), 1);
    ck_assert_uint_eq(code, 0);
}
END_TEST

START_TEST(control_characters)
{
    ck_assert(utf8_is_control(0) && utf8_is_control(0x1b) && utf8_is_control(0x7f) && utf8_is_control(0x80) &&
              utf8_is_control(0x9f));
    ck_assert(!utf8_is_control(' ') && !utf8_is_control('~') && !utf8_is_control(0xa0) && !utf8_is_control(0x10ffff));
}
END_TEST

int main(void)
{
    return run_tests("utf8", (const TTest *const[]){characters_are_decoded, malformed_bytes_are_rejected,
                                                    only_the_first_character_is_decoded, control_characters, NULL});
}
