/*
 * The lexer of nginx's configuration: quotes, escapes, comments and signs as in nginx, and input that is not an nginx
 * configuration.
 */
#include "import/nginx_lex.h"

#include "../runner.h"

#include <errno.h>
#include <stdio.h>

/* Prints the tokens in the form of the tables: [word], (comment), signs; an error as "! LINE message". */
static void print_tokens(const char *source, size_t length, char *into, size_t size)
{
    struct arena arena;
    struct nginx_lexer lexer;
    struct nginx_token token = {.kind = NGINX_WORD};
    size_t at = 0;
    int error = 0;

    arena_init(&arena, NULL, 0);
    nginx_lexer_init(&lexer, &arena, str_of(source, length));
    into[0] = '\0';
    while (token.kind != NGINX_END_OF_FILE && (error = nginx_lexer_next(&lexer, &token)) == 0) {
        static const char *const signs[] = {
            [NGINX_OPEN] = "{", [NGINX_CLOSE] = "}", [NGINX_SEMICOLON] = ";", [NGINX_END_OF_FILE] = ""};

        if (token.kind == NGINX_WORD)
            at += (size_t)snprintf(into + at, size - at, "[" STR_FMT "]", STR_ARG(token.text));
        else if (token.kind == NGINX_COMMENT)
            at += (size_t)snprintf(into + at, size - at, "(" STR_FMT ")", STR_ARG(token.text));
        else
            at += (size_t)snprintf(into + at, size - at, "%s", signs[token.kind]);
    }
    if (error < 0)
        snprintf(into + at, size - at, "! %u %s", lexer.line, lexer.fault);
    arena_reset(&arena);
}

static const struct {
    const char *source, *shown;
} words[] = {
    {"", ""},
    {"\xef\xbb\xbf", ""}, /* a byte order mark of UTF-8 at the beginning of a file is skipped */
    {"\xef\xbb\xbf" "a;\xef\xbb\xbf" "b;", "[a];[\xef\xbb\xbf" "b];"},
    {"\xef\xbb" "a;", "[\xef\xbb" "a];"},
    {" \t\r\n", ""},
    {"a;", "[a];"},
    {"a b\tc\nd;", "[a][b][c][d];"},
    {"a{b;}", "[a]{[b];}"},
    {"listen 80;\r\n", "[listen][80];"},
    {"a \"b c\" 'd e';", "[a][b c][d e];"},
    {"a \"it's\" 'say \"x\"';", "[a][it's][say \"x\"];"},
    {"a \"\" '';", "[a][][];"},
    {"a b\"c;", "[a][b\"c];"},
    {"a \"\\\"b\\\\\" '\\'';", "[a][\"b\\]['];"},
    {"a \"\\t\\r\\n\";", "[a][\t\r\n];"},
    {"a \\.css$ ^\\d+$;", "[a][\\.css$][^\\d+$];"},
    {"a b\\ c;", "[a][b\\ c];"},
    {"a b\\;c;", "[a][b\\;c];"},
    {"a ${b}c $d;", "[a][${b}c][$d];"},
    {"a $b{c;}", "[a][$b]{[c];}"},
    {"a \"${b}\";", "[a][${b}];"},
    {"a b}c;", "[a][b}c];"},
    {"a b#c;", "[a][b#c];"},
    {"a # b;\nc;", "[a](# b;)[c];"},
    {"#a\r\n#b", "(#a)(#b)"},
    {"if ($a = \"b\") {}", "[if][($a][=][b][)]{}"},
    {"a \"b\"{}", "[a][b]{}"},
    {"a \"x\ny\";", "[a][x\ny];"},
    {"\xc3\xa4 \xff;", "[\xc3\xa4][\xff];"},
};

START_TEST(words_blocks_and_comments_are_tokens)
{
    char shown[256];

    print_tokens(words[_i].source, strlen(words[_i].source), shown, sizeof(shown));
    ck_assert_str_eq(shown, words[_i].shown);
}
END_TEST

static const struct {
    const char *source, *shown;
} faults[] = {
    {"a", "! 1 the file ends within a directive"},
    {"a\nb \"c", "[a][b]! 2 the file ends within quotes"},
    {"a 'b;\n}\n", "[a]! 3 the file ends within quotes"},
    {"a \"b\"c;", "[a][b]! 1 something follows a closing quote without a blank"},
    {"a 'b'\"c\";", "[a][b]! 1 something follows a closing quote without a blank"},
    {"a b\\", "[a]! 1 the file ends within a directive"},
};

START_TEST(invalid_input_is_rejected_with_its_line)
{
    char shown[256];

    print_tokens(faults[_i].source, strlen(faults[_i].source), shown, sizeof(shown));
    ck_assert_str_eq(shown, faults[_i].shown);
}
END_TEST

START_TEST(nul_bytes_in_words_are_rejected)
{
    char shown[256];

    print_tokens("a b\0c;", 6, shown, sizeof(shown));
    ck_assert_str_eq(shown, "[a]! 1 a NUL byte is not allowed in a word");
    print_tokens("a \"b\\\0c\";", 8, shown, sizeof(shown)); /* nor after a backslash */
    ck_assert_str_eq(shown, "[a]! 1 a NUL byte is not allowed in a word");
}
END_TEST

START_TEST(tokens_have_the_line_of_their_first_byte)
{
    struct arena arena;
    struct nginx_lexer lexer;
    struct nginx_token token;
    static const unsigned expected[] = {1, 2, 4, 4, 4};

    arena_init(&arena, NULL, 0);
    nginx_lexer_init(&lexer, &arena, STR("a\n\"b\n\n\" c; # d\ne"));
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        ck_assert_int_eq(nginx_lexer_next(&lexer, &token), 0);
        ck_assert_uint_eq(token.line, expected[i]);
    }
    ck_assert_int_eq(nginx_lexer_next(&lexer, &token), -EINVAL);
    ck_assert_uint_eq(lexer.line, 5);
    arena_reset(&arena);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, words_blocks_and_comments_are_tokens, 0, (int)(sizeof(words) / sizeof(words[0])));
    tcase_add_loop_test(tcase, invalid_input_is_rejected_with_its_line, 0, (int)(sizeof(faults) / sizeof(faults[0])));
    tcase_add_test(tcase, nul_bytes_in_words_are_rejected);
    tcase_add_test(tcase, tokens_have_the_line_of_their_first_byte);
}

int main(void)
{
    return run_suite("import_lex", add_tests);
}
