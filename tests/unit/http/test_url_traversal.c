/*
 * Paths composed of pieces of the configuration and of the client: detects a piece of the client that leads out of the
 * configured path.
 */
#include "http/url_traversal.h"

#include "suite.h"

/* "|" separates the pieces. The first, the third, ... come from the configuration, the others from the client. */
static bool traverses(const char *text, bool encoded)
{
    struct url_traversal traversal = {.encoded = encoded};
    struct str rest = str_from(text);
    bool given = false;

    while (rest.data) {
        url_traversal_add(&traversal, str_cut(&rest, '|'), given);
        given = !given;
    }
    return url_traversal_end(&traversal);
}

START_TEST(pieces_that_traverse)
{
    static const char *const cases[] = {
        "/v1/|../secret", "/v1/|..", "/v1|/../secret", "/v1|/..", "/v1/.|./secret", "/v1/|.|./secret",
        "/v1/|a/../../b", "/v1/|./../b", "/v1/|//../b", "/v1/|..|/secret", "/a/|b|/c/|../../d", "|../x",
        "|/..", "/v1/|..;/secret", "/v1/|..;a=b/x", "/v1/|..\\secret", "/v1/|a\\../../b", "/a|/b|/c|/..",
        "/v1/|a/../..", "|/a|/|../../b",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        ck_assert_msg(traverses(cases[i], false), "%s", cases[i]);
        ck_assert_msg(traverses(cases[i], true), "%s, encoded", cases[i]);
    }
}
END_TEST

START_TEST(escapes_that_traverse)
{
    static const char *const cases[] = {
        "/v1/|%2e%2e/secret", "/v1/|%2E./secret", "/v1/|.%2e", "/v1/|..%2fsecret", "/v1/|..%5Csecret",
        "/v1/|a%2fb/../../x", "/v1/%2|e./secret", "/v1/|%2e%2e%3bx", "/v1/|%2e%2e?a", "/v1/|%%2e%2e/../..",
        "/v1/%|2e%2e/x",
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        ck_assert_msg(traverses(cases[i], true), "%s", cases[i]);
}
END_TEST

START_TEST(pieces_that_do_not_traverse)
{
    static const char *const cases[] = {
        "", "/", "/v1/|secret", "/v1/../v2/|a", "/v1|../secret", "/v1/|a/../b", "/v1|/a/../b", "/v1/|...",
        "/v1/|..a", "/v1/|a../b", "/v1/|.", "/v1/|./a", "/v1/|a/b/../../c", "/v1/|a|/../b/|c",
        "/v1/|..a;b/c", "|/a/..", "/v1/|;../x",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        ck_assert_msg(!traverses(cases[i], false), "%s", cases[i]);
        ck_assert_msg(!traverses(cases[i], true), "%s, encoded", cases[i]);
    }
}
END_TEST

START_TEST(escapes_that_do_not_traverse)
{
    static const char *const cases[] = {
        "/v1/|%252e%252e/x", "/v1/|a?../../b", "/v1/|%2e", "/v1/|%2e%2ea", "/v1/|%%", "/v1/|%2",
        "/v1/|%zz/a", "/v1/|a/%2e%2e/b", "/v1/|?/..",
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        ck_assert_msg(!traverses(cases[i], true), "%s", cases[i]);
    /* In a path that is already decoded, escapes have no special meaning. */
    ck_assert(!traverses("/v1/|%2e%2e/secret", false));
    ck_assert(traverses("/v1/|?/../../x", false));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        pieces_that_traverse, escapes_that_traverse, pieces_that_do_not_traverse, escapes_that_do_not_traverse,
    };

    return suite_run("url_traversal", tests, COUNT(tests));
}
