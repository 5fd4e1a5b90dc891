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
    bool keepalive;
} cases[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false, 1, 200, 0, 0, true},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", false, 1, 200, 0, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nH", false, 1, 200, 0, 0},
    {"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false, 1, 200, 0, 0},
    {"HTTP/1.1 204 No Content\r\n\r\n", false, 1, 204, 0, 0, true},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false, 1, 304, 0, 0, true},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r", false, 0, 0, 0, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r", true, -EBADMSG, 0, 0, 0},
    {"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n" PARTIAL, false, 1, 200, 0, 300, true},
    {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n" PARTIAL, false, 0, 0, 0, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n" PARTIAL, true, 1, 200, 0, 300},
    {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" PARTIAL "\x0a", false, 1, 200, 0, 300},
    {"HTTP/1.0 200 OK\r\n\r\n" PARTIAL, false, 0, 0, 0, 0},
    {"HTTP/1.0 200 OK\r\n\r\n" PARTIAL, true, 1, 200, 0, 300},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false, 0, 0, 0, 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n" PARTIAL "\r\n0\r\n\r\n", false, 1, 200, 0, 300, true},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n" PARTIAL "\r\n0\r\n", false, 0, 0, 0, 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", false, 1, 200, 0, 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n", false, -EBADMSG, 0, 0, 0},
    {"HTTP/1.1 101 Switching Protocols\r\n\r\n", false, -EBADMSG, 0, 0, 0},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\nRetry-After: 2\r\n\r\n", false, 1, 503, 2000, 0},
    {"HTTP/1.1 100 Continue\r\n\r\n", false, 0, 0, 0, 0},
    {"HTTP/1.1 503\r\nRetry-After:99999999999\r\n\r\n", false, 1, 503, LIMIT_OTLP_RETRY_AFTER_MS, 0},
    {"HTTP/1.1 503 \r\nRetry-After: Fri, 27 Nov 2026 10:00:00 GMT\r\n\r\n", false, 1, 503, 0, 0},
    {"HTTP/1.1 400 Bad\r\nContent-Length: 9\r\n\r\n", false, 0, 0, 0, 0},
    {"HTTP/1.1 400 Bad\r\nContent-Length: 9\r\n\r\n", true, 1, 400, 0, 0},
    {"HTTP/1.1 400 Bad\r\nContent-Length: 9\r\nConnection: close\r\n\r\n", false, 1, 400, 0, 0},
    {"HTTP/1.1 400 Bad\r\nContent-Length: 9\r\n\r\n" PARTIAL, false, 1, 400, 0, 0, true},
    {"HTTP/2 200 OK\r\n\r\n", false, -EBADMSG, 0, 0, 0},
    {"HTTP/1.1 2000\r\n\r\n", false, -EBADMSG, 0, 0, 0},
    {"HTTP/1.1 099 x\r\n\r\n", false, -EBADMSG, 0, 0, 0},
    {"HTTP/1.1 20\r\n\r\n", false, -EBADMSG, 0, 0, 0},
    {"\r\n\r\n", false, -EBADMSG, 0, 0, 0},
};

/* Reads the bytes in pieces of `size`, then the end. */
static int read_pieces(struct str bytes, size_t size, bool ended, struct otlp_response *out_response)
{
    struct otlp_response_reader reader;
    int result = 0;

    otlp_response_init(&reader);
    while (result == 0 && !str_empty(bytes)) {
        result = otlp_response_read(&reader, str_slice(bytes, 0, size));
        bytes = str_skip(bytes, size);
    }
    if (result == 0 && ended)
        result = otlp_response_read(&reader, STR(""));
    if (result == 1)
        *out_response = reader.response;
    otlp_response_finish(&reader);
    return result;
}

/* Bytes after a response are noticed only if they arrive with it. */
START_TEST(every_response_has_its_result)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct str bytes = str_from(cases[i].bytes);

        for (size_t size = bytes.length; size > 0; size = size > 1 ? 1 : 0) {
            struct otlp_response response = {0};
            int result = read_pieces(bytes, size, cases[i].ended, &response);

            ck_assert_msg(result == cases[i].result, "case %zu: %d", i, result);
            ck_assert_int_eq(response.status, cases[i].status);
            ck_assert_uint_eq(response.retry_after_ms, cases[i].retry_after_ms);
            ck_assert_uint_eq(response.rejected, cases[i].rejected);
            if (size > 1)
                ck_assert_msg(response.keepalive == cases[i].keepalive, "case %zu", i);
        }
    }
}
END_TEST

START_TEST(an_end_without_a_response_is_an_error)
{
    struct otlp_response response;

    ck_assert_int_eq(read_pieces(STR(""), 1, true, &response), -EBADMSG);
}
END_TEST

/* The last piece that is read exceeds the limit. */
START_TEST(status_of_a_long_body_applies)
{
    static char bytes[LIMIT_OTLP_RESPONSE + 8192];
    struct otlp_response response;

    memset(bytes, 'x', sizeof(bytes));
    memcpy(bytes, "HTTP/1.1 200 OK\r\n\r\n", 19);
    ck_assert_int_eq(read_pieces(str_of(bytes, sizeof(bytes)), 4095, false, &response), 1);
    ck_assert_int_eq(response.status, 200);
    ck_assert(!response.keepalive);
}
END_TEST

START_TEST(long_responses_are_truncated)
{
    static char bytes[LIMIT_OTLP_RESPONSE];
    struct otlp_response response;

    memset(bytes, 'x', sizeof(bytes));
    ck_assert_int_eq(read_pieces(str_of(bytes, sizeof(bytes)), 1000, false, &response), -EBADMSG);
    memcpy(bytes, "HTTP/1.1 200 OK\r\n\r\n", 19);
    ck_assert_int_eq(read_pieces(str_of(bytes, sizeof(bytes)), 1000, false, &response), 1);
    ck_assert_uint_eq(response.rejected, 0);
    ck_assert(!response.keepalive);
    memcpy(bytes, "HTTP/1.1 400 Bad\r\nContent-Length: 99999999\r\n\r\n", 46);
    ck_assert_int_eq(read_pieces(str_of(bytes, sizeof(bytes)), 1000, false, &response), 1);
    ck_assert_int_eq(response.status, 400);
    ck_assert(!response.keepalive);
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
    const TTest *const tests[] = {every_response_has_its_result, an_end_without_a_response_is_an_error,
                                  long_responses_are_truncated, status_of_a_long_body_applies,
                                  malformed_bodies_reject_no_span, temporary_statuses_are_retryable, NULL};

    return run_tests("otlp_response", tests);
}
