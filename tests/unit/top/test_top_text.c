#include "top/top_text.h"

#include "../runner.h"

static const struct {
    double value;
    const char *count, *bytes;
} numbers[] = {
    {0, "0", "0 B"},
    {0.004, "0.00", "0.00 B"},
    {0.5, "0.50", "0.50 B"},
    {1, "1", "1 B"},
    {9.996, "10.0", "10.0 B"},
    {123.4, "123", "123 B"},
    {999, "999", "999 B"},
    {999.5, "1.00k", "0.98 KiB"},
    {1024, "1.02k", "1.00 KiB"},
    {12345, "12.3k", "12.1 KiB"},
    {1e6, "1.00M", "977 KiB"},
    {5e9, "5.00G", "4.66 GiB"},
    {9.99e17, "999P", "887 PiB"},
    {1e18, "1e+18", "1e+18 B"},
    {1.8e25, "2e+25", "2e+25 B"},
};

START_TEST(counts_and_bytes)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ck_assert_str_eq(top_count(numbers[i].value).text, numbers[i].count);
        ck_assert_str_eq(top_bytes(numbers[i].value).text, numbers[i].bytes);
        ck_assert_uint_le(strlen(top_bytes(numbers[i].value).text), 10);
    }
}
END_TEST

static const struct {
    double seconds;
    const char *text;
} durations[] = {
    {0, "0 us"}, {0.00025, "250 us"}, {0.001, "1.00 ms"}, {0.0125, "12.5 ms"}, {0.999, "999 ms"},
    {0.9996, "1.00 s"}, {2.25, "2.25 s"}, {99999.99, "99999.99 s"}, {1.8e13, "2e+13 s"},
};

START_TEST(durations_and_shares)
{
    for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++)
        ck_assert_str_eq(top_duration(durations[i].seconds).text, durations[i].text);
    ck_assert_str_eq(top_share(0).text, "0.0%");
    ck_assert_str_eq(top_share(0.12345).text, "12.3%");
    ck_assert_str_eq(top_share(1).text, "100.0%");
}
END_TEST

static const struct {
    int64_t seconds;
    const char *text;
} uptimes[] = {
    {0, "00:00:00"}, {86399, "23:59:59"}, {86400, "1d 00:00:00"}, {86400 * 99999ll + 3661, "99999d 01:01:01"},
    {86400 * 100000ll, "?"}, {-1, "?"}, {INT64_MIN, "?"}, {INT64_MAX, "?"},
};

START_TEST(times_since_the_start)
{
    for (size_t i = 0; i < sizeof(uptimes) / sizeof(uptimes[0]); i++) {
        char text[32];

        top_uptime(uptimes[i].seconds, text);
        ck_assert_str_eq(text, uptimes[i].text);
    }
}
END_TEST

static const struct {
    struct str text;
    size_t size;
    const char *escaped;
} texts[] = {
    {{NULL, 0}, 8, ""},
    {{"plain ~", 7}, 8, "plain ~"},
    {{"\033[2J", 4}, 16, "\\x1b[2J"},
    {{"a\0b", 3}, 16, "a\\x00b"},
    {{"\\x1b", 4}, 16, "\\x5cx1b"},
    {{"\xc3\xa4\x7f", 3}, 16, "\\xc3\\xa4\\x7f"},
    {{"12345678", 8}, 9, "12345678"},
    {{"12345678", 8}, 8, "123456~"},
    {{"1234\n", 5}, 8, "1234~"},
    {{"123\n", 4}, 8, "123\\x0a"},
    {{"ab", 2}, 2, "~"},
};

START_TEST(escaped_texts)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char escaped[32];

        memset(escaped, '#', sizeof(escaped));
        top_escape(texts[i].text, escaped, texts[i].size);
        ck_assert_str_eq(escaped, texts[i].escaped);
        ck_assert_int_eq(escaped[texts[i].size], '#');
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {counts_and_bytes, durations_and_shares, times_since_the_start, escaped_texts, NULL};

    return run_tests("top_text", tests);
}
