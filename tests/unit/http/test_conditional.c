#include "http/conditional.h"

#include "suite.h"

#define MODIFIED 784111777
#define SAME     "Sun, 06 Nov 1994 08:49:37 GMT"
#define EARLIER  "Sun, 06 Nov 1994 08:49:36 GMT"
#define LATER    "Sun, 06 Nov 1994 08:49:38 GMT"

struct condition {
    const char *fields[3][2];
    const char *etag;
    int64_t modified;
    enum method method;
    int status;
    bool exact;
    int64_t dated;
};

static void set_fields(struct request *request, struct arena *arena, const char *const (*fields)[2])
{
    arena_init(arena, NULL, 0);
    *request = (struct request){0};
    for (size_t i = 0; i < 3 && fields[i][0]; i++)
        ck_assert_int_eq(
            headers_add(&request->headers, arena, str_from(fields[i][0]), str_from(fields[i][1])), 0);
}

START_TEST(preconditions_decide_between_200_304_and_412)
{
    static const struct condition cases[] = {
        {{{0}}, "\"a\"", MODIFIED, METHOD_GET, 0, false},
        /* If-Match: strong comparison */
        {{{"If-Match", "\"a\""}}, "\"a\"", MODIFIED, METHOD_GET, 0, false},
        {{{"If-Match", "\"x\", \"a\""}}, "\"a\"", MODIFIED, METHOD_GET, 0, false},
        {{{"If-Match", "\"x\""}, {"If-Match", "\"a\""}}, "\"a\"", MODIFIED, METHOD_GET, 0, false},
        {{{"If-Match", "\"x\""}}, "\"a\"", MODIFIED, METHOD_GET, 412, false},
        {{{"If-Match", "W/\"a\""}}, "\"a\"", MODIFIED, METHOD_GET, 412, false},
        {{{"If-Match", "W/\"a\""}}, "W/\"a\"", MODIFIED, METHOD_GET, 412, false},
        {{{"If-Match", "*"}}, "\"a\"", MODIFIED, METHOD_GET, 0, false},
        {{{"If-Match", "*"}}, "", -1, METHOD_GET, 0, false},
        {{{"If-Match", "\"a\""}}, "", MODIFIED, METHOD_GET, 412, false},
        {{{"If-Match", "a"}}, "\"a\"", MODIFIED, METHOD_GET, 412, false},
        {{{"If-Match", ""}}, "\"a\"", MODIFIED, METHOD_GET, 412, false},
        {{{"If-Match", "\"a"}}, "\"a\"", MODIFIED, METHOD_GET, 412, false},
        {{{"If-Match", "\"x\" \"a\""}}, "\"a\"", MODIFIED, METHOD_GET, 412, false},
        {{{"If-Match", "\"x\"; \"a\""}}, "\"a\"", MODIFIED, METHOD_GET, 412, false},
        /* a backslash is an ordinary byte of an entity tag, and a comma may be part of it */
        {{{"If-Match", "\"b\\\", \"a\""}}, "\"a\"", MODIFIED, METHOD_GET, 0, false},
        {{{"If-Match", "\"a,b\""}}, "\"a,b\"", MODIFIED, METHOD_GET, 0, false},
        {{{"If-Match", "\"a,b\""}}, "\"a\"", MODIFIED, METHOD_GET, 412, false},
        /* If-Unmodified-Since: ignored with If-Match */
        {{{"If-Unmodified-Since", SAME}}, "\"a\"", MODIFIED, METHOD_GET, 0, false},
        {{{"If-Unmodified-Since", LATER}}, "\"a\"", MODIFIED, METHOD_GET, 0, false},
        {{{"If-Unmodified-Since", EARLIER}}, "\"a\"", MODIFIED, METHOD_GET, 412, false},
        {{{"If-Unmodified-Since", EARLIER}}, "\"a\"", -1, METHOD_GET, 0, false},
        {{{"If-Unmodified-Since", "yesterday"}}, "\"a\"", MODIFIED, METHOD_GET, 0, false},
        {{{"If-Unmodified-Since", EARLIER}, {"If-Match", "\"a\""}}, "\"a\"", MODIFIED, METHOD_GET, 0, false},
        {{{"If-Unmodified-Since", LATER}, {"If-Match", "\"x\""}}, "\"a\"", MODIFIED, METHOD_GET, 412, false},
        {{{"If-Unmodified-Since", EARLIER}, {"If-Unmodified-Since", SAME}},
         "\"a\"",
         MODIFIED,
         METHOD_GET,
         0,
         false},
        /* If-None-Match: weak comparison */
        {{{"If-None-Match", "\"a\""}}, "\"a\"", MODIFIED, METHOD_GET, 304, false},
        {{{"If-None-Match", "\"a\""}}, "\"a\"", MODIFIED, METHOD_HEAD, 304, false},
        {{{"If-None-Match", "\"a\""}}, "\"a\"", MODIFIED, METHOD_POST, 412, false},
        {{{"If-None-Match", "W/\"a\""}}, "\"a\"", MODIFIED, METHOD_GET, 304, false},
        {{{"If-None-Match", "\"a\""}}, "W/\"a\"", MODIFIED, METHOD_GET, 304, false},
        {{{"If-None-Match", "\"x\", W/\"a\""}}, "\"a\"", MODIFIED, METHOD_GET, 304, false},
        {{{"If-None-Match", "*"}}, "\"a\"", MODIFIED, METHOD_GET, 304, false},
        {{{"If-None-Match", "*"}}, "", -1, METHOD_PUT, 412, false},
        {{{"If-None-Match", "\"x\""}}, "\"a\"", MODIFIED, METHOD_GET, 0, false},
        {{{"If-None-Match", "w/\"a\""}}, "\"a\"", MODIFIED, METHOD_GET, 0, false},
        {{{"If-None-Match", "junk"}}, "\"a\"", MODIFIED, METHOD_GET, 0, false},
        {{{"If-None-Match", "\"\""}}, "", MODIFIED, METHOD_GET, 0, false},
        /* If-Modified-Since: ignored with If-None-Match, and only for GET and HEAD */
        {{{"If-Modified-Since", SAME}}, "\"a\"", MODIFIED, METHOD_GET, 304, false},
        {{{"If-Modified-Since", LATER}}, "\"a\"", MODIFIED, METHOD_GET, 304, false},
        {{{"If-Modified-Since", EARLIER}}, "\"a\"", MODIFIED, METHOD_GET, 0, false},
        {{{"If-Modified-Since", SAME}}, "\"a\"", MODIFIED, METHOD_GET, 304, true},
        {{{"If-Modified-Since", LATER}}, "\"a\"", MODIFIED, METHOD_GET, 0, true},
        {{{"If-Modified-Since", SAME}}, "\"a\"", MODIFIED, METHOD_POST, 0, false},
        {{{"If-Modified-Since", SAME}}, "\"a\"", -1, METHOD_GET, 0, false},
        {{{"If-Modified-Since", "1994"}}, "\"a\"", MODIFIED, METHOD_GET, 0, false},
        /* without Last-Modified the time of storing counts (RFC 9111 4.3.2), but not for If-Unmodified-Since */
        {{{"If-Modified-Since", SAME}}, "\"a\"", -1, METHOD_GET, 304, false, MODIFIED},
        {{{"If-Modified-Since", LATER}}, "\"a\"", -1, METHOD_GET, 304, false, MODIFIED},
        {{{"If-Modified-Since", EARLIER}}, "\"a\"", -1, METHOD_GET, 0, false, MODIFIED},
        {{{"If-Modified-Since", SAME}}, "\"a\"", MODIFIED + 1, METHOD_GET, 0, false, MODIFIED},
        {{{"If-Modified-Since", SAME}}, "\"a\"", -1, METHOD_POST, 0, false, MODIFIED},
        {{{"If-Unmodified-Since", EARLIER}}, "\"a\"", -1, METHOD_GET, 0, false, MODIFIED},
        {{{"If-Modified-Since", SAME}, {"If-None-Match", "\"x\""}}, "\"a\"", MODIFIED, METHOD_GET, 0, false},
        {{{"If-Modified-Since", EARLIER}, {"If-None-Match", "\"a\""}},
         "\"a\"",
         MODIFIED,
         METHOD_GET,
         304,
         false},
        /* If-Match and If-Unmodified-Since are evaluated first (RFC 9110 13.2.2) */
        {{{"If-None-Match", "\"a\""}, {"If-Match", "\"x\""}}, "\"a\"", MODIFIED, METHOD_GET, 412, false},
        {{{"If-None-Match", "\"a\""}, {"If-Match", "\"a\""}}, "\"a\"", MODIFIED, METHOD_GET, 304, false},
        {{{"If-Modified-Since", SAME}, {"If-Unmodified-Since", EARLIER}},
         "\"a\"",
         MODIFIED,
         METHOD_GET,
         412,
         false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct validators validators = {str_from(cases[i].etag), cases[i].modified, cases[i].dated};
        struct request request;
        struct arena arena;
        int status;

        set_fields(&request, &arena, cases[i].fields);
        request.method = cases[i].method;
        status = conditional_check(&request, &validators, MODIFIED + 100, cases[i].exact);
        ck_assert_msg(status == cases[i].status, "row %zu: %d instead of %d", i, status, cases[i].status);
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(if_range_permits_ranges_of_the_same_representation)
{
    static const struct {
        const char *fields[3][2];
        const char *etag;
        int64_t modified;
        int64_t age;
        bool allowed;
    } cases[] = {
        {{{0}}, "\"a\"", MODIFIED, 10, true},
        {{{"If-Range", "\"a\""}}, "\"a\"", MODIFIED, 10, true},
        {{{"If-Range", "\"x\""}}, "\"a\"", MODIFIED, 10, false},
        {{{"If-Range", "W/\"a\""}}, "W/\"a\"", MODIFIED, 10, false},
        {{{"If-Range", "W/\"a\""}}, "\"a\"", MODIFIED, 10, false},
        {{{"If-Range", "\"a\", \"b\""}}, "\"a\"", MODIFIED, 10, false},
        {{{"If-Range", "\"a"}}, "\"a\"", MODIFIED, 10, false},
        {{{"If-Range", "*"}}, "\"a\"", MODIFIED, 10, false},
        {{{"If-Range", ""}}, "\"a\"", MODIFIED, 10, false},
        {{{"If-Range", "\"a\""}}, "", MODIFIED, 10, false},
        {{{"If-Range", SAME}}, "\"a\"", MODIFIED, 10, true},
        {{{"If-Range", SAME}}, "\"a\"", MODIFIED, 1, true},
        {{{"If-Range", SAME}}, "\"a\"", MODIFIED, 0, false},
        {{{"If-Range", LATER}}, "\"a\"", MODIFIED, 10, false},
        {{{"If-Range", EARLIER}}, "\"a\"", MODIFIED, 10, false},
        {{{"If-Range", SAME}}, "\"a\"", -1, 10, false},
        {{{"If-Range", "\"a\""}, {"If-Range", "\"a\""}}, "\"a\"", MODIFIED, 10, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct validators validators = {str_from(cases[i].etag), cases[i].modified, 0};
        struct request request;
        struct arena arena;

        set_fields(&request, &arena, cases[i].fields);
        ck_assert_msg(conditional_range_allowed(&request, &validators, MODIFIED + cases[i].age) ==
                          cases[i].allowed,
                      "row %zu", i);
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(only_quoted_etags_without_w_are_strong)
{
    static const struct {
        const char *etag;
        bool strong;
    } cases[] = {
        {"\"a\"", true}, {"\"\"", true}, {"\"\xff\"", true}, {"W/\"a\"", false},
        {"w/\"a\"", false}, {"a", false}, {"", false}, {"\"", false},
        {"\"a", false}, {"a\"", false}, {"\"a\"b", false}, {"\"a\" ", false},
        {"\"a b\"", false}, {"\"a\"\"", false}, {"\"a\", \"b\"", false}, {"*", false},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        ck_assert_msg(etag_is_strong(str_from(cases[i].etag)) == cases[i].strong, "%s", cases[i].etag);
    ck_assert(!etag_is_strong((struct str){NULL, 0}));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {preconditions_decide_between_200_304_and_412,
                                  if_range_permits_ranges_of_the_same_representation,
                                  only_quoted_etags_without_w_are_strong};

    return suite_run("conditional", tests, COUNT(tests));
}
