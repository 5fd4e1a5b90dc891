#include "http/freshness.h"

#include "suite.h"

#define NOW    784111777
#define NOW_AS "Sun, 06 Nov 1994 08:49:37 GMT"
#define AGO_10 "Sun, 06 Nov 1994 08:49:27 GMT"
#define IN_10  "Sun, 06 Nov 1994 08:49:47 GMT"
#define NONE   DELTA_NONE

static struct headers fields(struct arena *arena, const char *text)
{
    struct headers headers = {0};
    struct str rest = str_from(text);

    while (rest.data && rest.length) {
        struct str value = str_cut(&rest, '|');
        struct str name = str_cut(&value, ':');

        ck_assert_int_eq(headers_add(&headers, arena, str_trim(name), str_trim(value)), 0);
    }
    return headers;
}

START_TEST(lifetime_is_s_maxage_or_max_age_or_expires)
{
    static const struct {
        const char *fields;
        int64_t lifetime;
    } cases[] = {
        {"", NONE},
        {"Cache-Control: public", NONE},
        {"Cache-Control: max-age=5", 5},
        {"Cache-Control: max-age=5, s-maxage=7", 7},
        {"Cache-Control: s-maxage=0, max-age=5", 0},
        {"Cache-Control: max-age=5|Expires: " AGO_10, 5},
        {"Expires: " IN_10 "|Date: " NOW_AS, 10},
        {"Expires: " IN_10 "|Date: " AGO_10, 20},
        {"Expires: " IN_10, 10},
        {"Expires: " AGO_10 "|Date: " NOW_AS, 0},
        {"Expires: " NOW_AS "|Date: " NOW_AS, 0},
        {"Expires: 0", 0},
        {"Expires: -1", 0},
        {"Expires:", 0},
        {"Expires: never", 0},
        {"Expires: " IN_10 "|Expires: " IN_10, 10},
        {"Expires: " IN_10 "|Expires: " AGO_10, 0},
        {"Expires: Sunday, 06-Nov-94 08:49:47 GMT", 10},
        {"Expires: Sun Nov  6 08:49:47 1994", 10},
        {"Expires: Sun, 06 Nov 1994 08:49:47 CET", 0},
        {"Expires: Fri, 06 Nov 9994 08:49:47 GMT|Date: " NOW_AS, DELTA_MAX},
        {"Expires: " IN_10 "|Date: yesterday", 10},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cache_control response;
        struct received_response received = {
            .response_control = &response, .status = 200, .request_sent_s = NOW, .received_s = NOW};
        struct headers headers;
        struct arena arena;

        arena_init(&arena, NULL, 0);
        headers = fields(&arena, cases[i].fields);
        received.headers = &headers;
        cache_control_read(&headers, CACHE_OF_RESPONSE, &response);
        ck_assert_msg(freshness_lifetime(&received) == cases[i].lifetime, "row %zu: %lld", i,
                      (long long)freshness_lifetime(&received));
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(age_is_the_greater_of_age_and_date)
{
    static const struct {
        const char *fields;
        int64_t took, age;
    } cases[] = {
        {"", 0, 0},
        {"Date: " NOW_AS, 0, 0},
        {"Date: " AGO_10, 0, 10},
        {"Date: " IN_10, 0, 0},
        {"Age: 30", 0, 30},
        {"Age: 30", 5, 35},
        {"Age: 30|Date: " AGO_10, 0, 30},
        {"Age: 3|Date: " AGO_10, 2, 10},
        {"Age: 7, 9", 0, 7},
        {"Age: 7|Age: 9", 0, 7},
        {"Age: -7", 0, 0},
        {"Age: x", 3, 3},
        {"Age: 1.5", 0, 0},
        {"Age:", 0, 0},
        {"Age: 99999999999999999999999", 0, DELTA_MAX},
        {"Age: 99999999999999999999999", 10, DELTA_MAX},
        {"", -5, 0}, /* the clock was set back */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct received_response received = {.status = 200, .request_sent_s = NOW - cases[i].took, .received_s = NOW};
        struct headers headers;
        struct arena arena;

        arena_init(&arena, NULL, 0);
        headers = fields(&arena, cases[i].fields);
        received.headers = &headers;
        ck_assert_msg(freshness_initial_age(&received) == cases[i].age, "row %zu: %lld", i,
                      (long long)freshness_initial_age(&received));
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(heuristic_lifetime_is_a_tenth_since_modification)
{
    static const struct {
        const char *fields;
        int status;
        int64_t lifetime; /* capped at 100 */
    } cases[] = {
        {"", 200, NONE},
        {"Last-Modified: " NOW_AS, 200, 0},
        {"Last-Modified: " IN_10, 200, 0},
        {"Last-Modified: " AGO_10, 200, 1},
        {"Last-Modified: " AGO_10 "|Date: " AGO_10, 200, 0},
        {"Last-Modified: Sun, 06 Nov 1994 08:39:37 GMT", 200, 60},
        {"Last-Modified: Sun, 06 Nov 1994 08:39:37 GMT", 404, 60},
        {"Last-Modified: Sun, 06 Nov 1994 08:39:37 GMT", 302, NONE},
        {"Last-Modified: Sun, 06 Nov 1994 08:39:37 GMT|Cache-Control: public", 302, 60},
        {"Last-Modified: Sun, 06 Nov 1983 08:39:37 GMT", 200, 100},
        {"Last-Modified: 1983", 200, NONE},
        {"Last-Modified: " AGO_10 "|Last-Modified: " IN_10, 200, NONE},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cache_control response;
        struct received_response received = {
            .response_control = &response, .status = cases[i].status, .request_sent_s = NOW, .received_s = NOW};
        struct headers headers;
        struct arena arena;

        arena_init(&arena, NULL, 0);
        headers = fields(&arena, cases[i].fields);
        received.headers = &headers;
        cache_control_read(&headers, CACHE_OF_RESPONSE, &response);
        ck_assert_msg(freshness_heuristic(&received, 100) == cases[i].lifetime, "row %zu: %lld", i,
                      (long long)freshness_heuristic(&received, 100));
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(directives_and_status_decide_about_storing)
{
    static const struct {
        const char *request, *response;
        int status;
        bool authorized, stored;
    } cases[] = {
        {"", "", 200, false, true},
        {"", "", 404, false, true},
        {"", "", 299, false, true},
        {"", "", 503, false, true},
        {"", "", 101, false, false},
        {"", "", 206, false, false},
        {"", "", 304, false, false},
        {"", "", 600, false, false},
        {"Cache-Control: no-store", "", 200, false, false},
        {"Cache-Control: no-cache", "", 200, false, true},
        {"", "Cache-Control: no-store", 200, false, false},
        {"", "Cache-Control: no-store, max-age=60, public", 200, false, false},
        {"", "Cache-Control: private", 200, false, false},
        {"", "Cache-Control: private, must-understand, max-age=60", 200, false, false},
        {"", "Cache-Control: no-store, must-understand", 200, false, true},
        {"", "Cache-Control: no-store, must-understand", 299, false, false},
        {"", "Cache-Control: must-understand, max-age=60", 299, false, false},
        {"", "Cache-Control: no-cache", 200, false, true},
        {"", "Cache-Control: max-age=60, foo=\"x, no-store", 200, false, false},
        {"", "Cache-Control: max-age=60|Cache-Control: foo=\"x", 200, false, false},
        {"Cache-Control: foo=\"x", "Cache-Control: max-age=60", 200, false, true},
        {"", "", 200, true, false},
        {"", "Cache-Control: max-age=60", 200, true, false},
        {"", "Cache-Control: proxy-revalidate, max-age=60", 200, true, false},
        {"", "Cache-Control: public", 200, true, true},
        {"", "Cache-Control: s-maxage=60", 200, true, true},
        {"", "Cache-Control: must-revalidate", 200, true, true},
        {"", "Cache-Control: public, no-store", 200, true, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cache_control request, response;
        struct received_response received = {.authorized = cases[i].authorized,
                                  .request_control = &request,
                                  .response_control = &response,
                                  .status = cases[i].status};
        struct headers of_request, of_answer;
        struct arena arena;

        arena_init(&arena, NULL, 0);
        of_request = fields(&arena, cases[i].request);
        of_answer = fields(&arena, cases[i].response);
        received.headers = &of_answer;
        cache_control_read(&of_request, CACHE_OF_REQUEST, &request);
        cache_control_read(&of_answer, CACHE_OF_RESPONSE, &response);
        ck_assert_msg(freshness_may_store(&received) == cases[i].stored, "row %zu", i);
        received.authorized = false;
        of_request.count = 0;
        cache_control_read(&of_request, CACHE_OF_REQUEST, &request);
        ck_assert_msg(freshness_is_storable(&received) == freshness_may_store(&received), "row %zu", i);
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(directives_and_age_decide_about_reuse)
{
    static const struct {
        const char *response, *request;
        int64_t lifetime, age;
        enum reuse reuse;
    } cases[] = {
        {"", "", 60, 0, REUSE_FRESH},
        {"", "", 60, 59, REUSE_FRESH},
        {"", "", 60, 60, REUSE_REVALIDATE},
        {"", "", 0, 0, REUSE_REVALIDATE},
        {"no-cache", "", 60, 0, REUSE_REVALIDATE},
        {"no-cache", "max-stale", 60, 0, REUSE_REVALIDATE},
        {"", "no-cache", 60, 0, REUSE_REVALIDATE},
        {"", "max-age=0", 60, 0, REUSE_REVALIDATE},
        {"", "max-age=10", 60, 10, REUSE_FRESH},
        {"", "max-age=10", 60, 11, REUSE_REVALIDATE},
        {"", "max-age=10, max-stale=5", 60, 15, REUSE_FRESH},
        {"", "max-age=10, max-stale=5", 60, 16, REUSE_REVALIDATE},
        {"", "max-age=100", 60, 70, REUSE_REVALIDATE},
        {"", "min-fresh=10", 60, 50, REUSE_FRESH},
        {"", "min-fresh=10", 60, 51, REUSE_REVALIDATE},
        {"", "min-fresh=10, max-stale", 60, 70, REUSE_REVALIDATE},
        {"", "max-stale", 60, 1000000, REUSE_STALE},
        {"", "max-stale=10", 60, 70, REUSE_STALE},
        {"", "max-stale=10", 60, 71, REUSE_REVALIDATE},
        {"", "max-stale=0", 60, 60, REUSE_STALE},
        {"must-revalidate", "max-stale", 60, 61, REUSE_REVALIDATE},
        {"must-revalidate", "", 60, 59, REUSE_FRESH},
        {"proxy-revalidate", "max-stale", 60, 61, REUSE_REVALIDATE},
        {"s-maxage=60", "max-stale", 60, 61, REUSE_REVALIDATE},
        {"stale-while-revalidate=30", "", 60, 60, REUSE_UPDATING},
        {"stale-while-revalidate=30", "", 60, 89, REUSE_UPDATING},
        {"stale-while-revalidate=30", "", 60, 90, REUSE_REVALIDATE},
        {"stale-while-revalidate=0", "", 60, 60, REUSE_REVALIDATE},
        {"stale-while-revalidate=30, must-revalidate", "", 60, 61, REUSE_REVALIDATE},
        {"stale-while-revalidate=30, proxy-revalidate", "", 60, 61, REUSE_REVALIDATE},
        {"stale-while-revalidate=30, s-maxage=60", "", 60, 61, REUSE_UPDATING},
        {"stale-while-revalidate=30, s-maxage=60, must-revalidate", "", 60, 61, REUSE_REVALIDATE},
        {"stale-while-revalidate=30", "max-age=1000", 60, 61, REUSE_REVALIDATE},
        {"stale-while-revalidate=30", "min-fresh=1", 60, 61, REUSE_REVALIDATE},
        {"stale-while-revalidate=30", "max-stale=5", 60, 70, REUSE_UPDATING},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cache_control request, response;
        struct freshness stored;
        struct headers of_request = {0}, of_answer = {0};
        struct arena arena;

        arena_init(&arena, NULL, 0);
        ck_assert_int_eq(headers_add(&of_request, &arena, STR("Cache-Control"), str_from(cases[i].request)), 0);
        ck_assert_int_eq(headers_add(&of_answer, &arena, STR("Cache-Control"), str_from(cases[i].response)), 0);
        cache_control_read(&of_request, CACHE_OF_REQUEST, &request);
        cache_control_read(&of_answer, CACHE_OF_RESPONSE, &response);
        freshness_init(&stored, &response);
        stored.lifetime_s = cases[i].lifetime;
        stored.age_s = cases[i].age;
        ck_assert_msg(freshness_evaluate(&stored, &request) == cases[i].reuse, "row %zu: %d", i,
                      (int)freshness_evaluate(&stored, &request));
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(stale_response_is_reused_in_error_if_permitted)
{
    static const struct {
        const char *response, *request;
        int64_t age; /* the freshness lifetime is 60 */
        bool expected, reused;
    } cases[] = {
        {"", "", 100, false, false},
        {"", "", 100, true, true},
        {"must-revalidate", "", 100, true, false},
        {"proxy-revalidate", "", 100, true, false},
        {"s-maxage=60", "", 100, true, false},
        {"no-cache", "", 10, true, false},
        {"", "no-cache", 100, true, false},
        {"stale-if-error=50", "", 109, false, true},
        {"stale-if-error=50", "", 110, false, false},
        {"stale-if-error=50", "", 110, true, true},
        {"stale-if-error=50, must-revalidate", "", 70, false, false},
        {"stale-if-error=50, s-maxage=60", "", 70, false, true},
        {"", "stale-if-error=50", 109, false, true},
        {"", "stale-if-error=50", 110, false, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cache_control request, response;
        struct freshness stored;
        struct headers of_request = {0}, of_answer = {0};
        struct arena arena;

        arena_init(&arena, NULL, 0);
        ck_assert_int_eq(headers_add(&of_request, &arena, STR("Cache-Control"), str_from(cases[i].request)), 0);
        ck_assert_int_eq(headers_add(&of_answer, &arena, STR("Cache-Control"), str_from(cases[i].response)), 0);
        cache_control_read(&of_request, CACHE_OF_REQUEST, &request);
        cache_control_read(&of_answer, CACHE_OF_RESPONSE, &response);
        freshness_init(&stored, &response);
        stored.lifetime_s = 60;
        stored.age_s = cases[i].age;
        ck_assert_msg(freshness_in_error(&stored, &request, cases[i].expected) == cases[i].reused, "row %zu", i);
        arena_reset(&arena);
    }
}
END_TEST

/* RFC 9111 4.2.4: a response may be used stale if it was once fresh, or if it explicitly permits stale use. */
START_TEST(response_that_was_never_fresh_is_not_used_stale)
{
    static const struct {
        const char *response;
        int64_t lifetime, age_then;
        bool stale_in_error;
    } cases[] = {
        {"", 60, 0, true},
        {"", 60, 59, true},
        {"", 60, 60, false},
        {"", 0, 0, false},
        {"", DELTA_NONE, 0, false},
        {"stale-while-revalidate=30", 0, 0, true},
        {"stale-if-error=30", 0, 0, true},
        {"stale-while-revalidate=0", 0, 0, false},
        {"stale-if-error=0, stale-while-revalidate=0", 0, 0, false},
        {"stale-if-error=30, must-revalidate", 0, 0, false},
        {"stale-if-error=30, no-cache", 0, 0, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cache_control request, response;
        struct freshness stored;
        struct headers of_answer = {0};
        struct arena arena;
        bool is_stored_stale;

        arena_init(&arena, NULL, 0);
        ck_assert_int_eq(headers_add(&of_answer, &arena, STR("Cache-Control"), str_from(cases[i].response)), 0);
        cache_control_read(&(struct headers){0}, CACHE_OF_REQUEST, &request);
        cache_control_read(&of_answer, CACHE_OF_RESPONSE, &response);
        freshness_init(&stored, &response);
        freshness_set_received(&stored, cases[i].lifetime, cases[i].age_then);
        stored.age_s = 100;
        is_stored_stale = freshness_in_error(&stored, &request, true);
        ck_assert_msg(is_stored_stale == cases[i].stale_in_error, "row %zu", i);
        request.max_stale = DELTA_MAX;
        if (stored.no_cache)
            ck_assert_int_eq(freshness_evaluate(&stored, &request), REUSE_REVALIDATE);
        arena_reset(&arena);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {lifetime_is_s_maxage_or_max_age_or_expires, age_is_the_greater_of_age_and_date,
                                  heuristic_lifetime_is_a_tenth_since_modification,
                                  directives_and_status_decide_about_storing, directives_and_age_decide_about_reuse,
                                  stale_response_is_reused_in_error_if_permitted,
                                  response_that_was_never_fresh_is_not_used_stale};

    return suite_run("freshness", tests, COUNT(tests));
}
