#include "otlp/otlp_response.h"

#include "../runner.h"

#include "base/limits.h"

#include <errno.h>

#define PARTIAL "\x0a\x07\x08\xac\x02\x12\x02no" /* 300 rejected spans, "no" */

static const struct {
    const char *bytes;
    bool ended;
    int result, status;
    uint64_t retry_after_ms, rejected;
} cases[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false, 1, 200, 0, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r", false, 0, 0, 0, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r", true, -EBADMSG, 0, 0, 0},
    {"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n" PARTIAL, false, 1, 200, 0, 300},
    {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n" PARTIAL, false, 0, 0, 0, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" PARTIAL "\x0a", false, 1, 200, 0, 300},
    {"HTTP/1.0 200 OK\r\n\r\n" PARTIAL, false, 0, 0, 0, 0},
    {"HTTP/1.0 200 OK\r\n\r\n" PARTIAL, true, 1, 200, 0, 300},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false, 1, 200, 0, 0},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\nRetry-After: 2\r\n\r\n", false, 1, 503, 2000, 0},
    {"HTTP/1.1 100 Continue\r\n\r\n", false, 0, 0, 0, 0},
    {"HTTP/1.1 503\r\nRetry-After:99999999999\r\n\r\n", false, 1, 503, LIMIT_OTLP_RETRY_AFTER_MS, 0},
    {"HTTP/1.1 503 \r\nRetry-After: Fri, 27 Nov 2026 10:00:00 GMT\r\n\r\n", false, 1, 503, 0, 0},
    {"HTTP/1.1 400 Bad\r\nContent-Length: 9\r\n\r\n", false, 1, 400, 0, 0},
    {"HTTP/2 200 OK\r\n\r\n", false, -EBADMSG, 0, 0, 0},
    {"HTTP/1.1 2000\r\n\r\n", false, -EBADMSG, 0, 0, 0},
    {"HTTP/1.1 099 x\r\n\r\n", false, -EBADMSG, 0, 0, 0},
    {"HTTP/1.1 20\r\n\r\n", false, -EBADMSG, 0, 0, 0},
    {"\r\n\r\n", false, -EBADMSG, 0, 0, 0},
    {"", true, -EBADMSG, 0, 0, 0},
};

START_TEST(every_response_has_its_result)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct otlp_response response = {0};
        int result = otlp_response_parse(str_from(cases[i].bytes), cases[i].ended, &response);

        ck_assert_msg(result == cases[i].result, "case %zu: %d", i, result);
        ck_assert_int_eq(response.status, cases[i].status);
        ck_assert_uint_eq(response.retry_after_ms, cases[i].retry_after_ms);
        ck_assert_uint_eq(response.rejected, cases[i].rejected);
    }
}
END_TEST

START_TEST(long_responses_are_truncated)
{
    static char bytes[LIMIT_OTLP_RESPONSE];
    struct otlp_response response;

    memset(bytes, 'x', sizeof(bytes));
    ck_assert_int_eq(otlp_response_parse(str_of(bytes, sizeof(bytes)), false, &response), -EBADMSG);
    memcpy(bytes, "HTTP/1.1 200 OK\r\n\r\n", 19);
    ck_assert_int_eq(otlp_response_parse(str_of(bytes, sizeof(bytes)), false, &response), 1);
    ck_assert_uint_eq(response.rejected, 0);
}
END_TEST

START_TEST(malformed_bodies_reject_no_span)
{
    ck_assert_uint_eq(otlp_response_rejected(STR(PARTIAL)), 300);
    ck_assert_uint_eq(otlp_response_rejected(STR("")), 0);
    /* Unknown fields are skipped. */
    ck_assert_uint_eq(otlp_response_rejected(STR("\x12\x01x\x1d" "abcd\x21" "abcdefgh" PARTIAL)), 300);
    ck_assert_uint_eq(otlp_response_rejected(STR("\x0a\x09\x08\xac\x02")), 0);
    ck_assert_uint_eq(otlp_response_rejected(STR("\x0a\x01\x08")), 0);
    ck_assert_uint_eq(otlp_response_rejected(STR("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")), 0);
    ck_assert_uint_eq(otlp_response_rejected(STR("\x0b\x00")), 0);
    ck_assert_uint_eq(otlp_response_rejected(STR("\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")), 0); /* -1 */
    ck_assert_uint_eq(otlp_response_rejected(STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")), 0);
}
END_TEST

START_TEST(temporary_statuses_are_retryable)
{
    ck_assert(otlp_status_is_retryable(429) && otlp_status_is_retryable(502) && otlp_status_is_retryable(503) &&
              otlp_status_is_retryable(504));
    ck_assert(!otlp_status_is_retryable(500) && !otlp_status_is_retryable(400) && !otlp_status_is_retryable(200));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {every_response_has_its_result, long_responses_are_truncated,
                                  malformed_bodies_reject_no_span, temporary_statuses_are_retryable, NULL};

    return run_tests("otlp_response", tests);
}
