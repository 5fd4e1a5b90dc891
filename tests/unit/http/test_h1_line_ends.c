#include "http/h1_line_ends.h"

#include "suite.h"

static struct arena arena;

START_TEST(copied_lines_end_with_crlf)
{
    static const struct {
        const char *lines, *copy;
    } cases[] = {
        {"", ""},
        {"a", "a"},
        {"\n", "\r\n"},
        {"\r\n", "\r\n"},
        {"a\r\nb\r\n\r\n", "a\r\nb\r\n\r\n"},
        {"a\nb\n\n", "a\r\nb\r\n\r\n"},
        {"a\r\nb\n\r\n", "a\r\nb\r\n\r\n"},
        {"a\nb\r\n\n", "a\r\nb\r\n\r\n"},
        {"a\rb\n\r", "a\rb\r\n\r"},
        {"\n\r\n\nc", "\r\n\r\n\r\nc"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str copy;

        arena_init(&arena, NULL, 0);
        copy = h1_copy_lines(&arena, str_from(cases[i].lines));
        ck_assert_msg(copy.data && str_equal(copy, str_from(cases[i].copy)), "%s", cases[i].lines);
        arena_reset(&arena);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {copied_lines_end_with_crlf};

    return suite_run("h1_line_ends", tests, COUNT(tests));
}
