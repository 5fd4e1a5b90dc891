#include "http/status.h"

#include "suite.h"

START_TEST(each_status_has_its_reason_phrase)
{
    static const struct {
        int status;
        const char *reason;
    } cases[] = {
        {100, "Continue"},
        {200, "OK"},
        {206, "Partial Content"},
        {304, "Not Modified"},
        {404, "Not Found"},
        {413, "Content Too Large"},
        {417, "Expectation Failed"},
        {431, "Request Header Fields Too Large"},
        {505, "HTTP Version Not Supported"},
        {511, "Network Authentication Required"},
        {0, ""},
        {99, ""},
        {299, ""},
        {418, ""},
        {599, ""},
        {-1, ""},
        {100000, ""},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        ck_assert_text(status_reason(cases[i].status), cases[i].reason);
    /* Every phrase has the length that its row declares. */
    for (int status = 0; status < 1000; status++) {
        struct str reason = status_reason(status);

        ck_assert_uint_eq(strlen(reason.data), reason.length);
    }
}
END_TEST

START_TEST(only_1xx_204_and_304_have_no_body)
{
    static const int without[] = {100, 101, 103, 199, 204, 304};
    static const int with[] = {200, 201, 205, 206, 300, 303, 305, 400, 404, 500, 99, 0};

    for (size_t i = 0; i < COUNT(without); i++)
        ck_assert(status_bodiless(without[i]));
    for (size_t i = 0; i < COUNT(with); i++)
        ck_assert(!status_bodiless(with[i]));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {each_status_has_its_reason_phrase, only_1xx_204_and_304_have_no_body};

    return suite_run("status", tests, COUNT(tests));
}
