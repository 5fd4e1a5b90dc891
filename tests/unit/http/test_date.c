#include "http/date.h"

#include "suite.h"

#include <errno.h>
#include <time.h>

#define NOW 1763654400 /* 2025-11-20 16:00:00 */

START_TEST(seconds_are_formatted_as_imf_fixdate)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {
        {784111777, "Sun, 06 Nov 1994 08:49:37 GMT"},  {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
        {951782399, "Mon, 28 Feb 2000 23:59:59 GMT"},  {951782400, "Tue, 29 Feb 2000 00:00:00 GMT"},
        {4107542400, "Mon, 01 Mar 2100 00:00:00 GMT"}, {253402300799, "Fri, 31 Dec 9999 23:59:59 GMT"},
        {-1, "Wed, 31 Dec 1969 23:59:59 GMT"},         {NOW, "Thu, 20 Nov 2025 16:00:00 GMT"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char into[DATE_LENGTH + 1];
        struct str text = date_format(cases[i].seconds, into);

        ck_assert_uint_eq(text.length, DATE_LENGTH);
        ck_assert_text(text, cases[i].text);
    }
}
END_TEST

/* Compares with the C library over several centuries, in steps of an odd length. */
START_TEST(dates_agree_with_libc)
{
    for (int64_t seconds = -5000000000; seconds < 20000000000; seconds += 7654321) {
        char into[DATE_LENGTH + 1];
        char expected[40];
        time_t moment = (time_t)seconds;
        struct tm broken;
        int64_t back;

        strftime(expected, sizeof(expected), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&moment, &broken));
        ck_assert_text(date_format(seconds, into), expected);
        ck_assert_int_eq(date_parse(str_of(into, DATE_LENGTH), NOW, &back), 0);
        ck_assert_int_eq(back, seconds);
    }
}
END_TEST

START_TEST(three_date_formats_are_parsed)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } cases[] = {
        {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
        {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
        {"Sun Nov  6 08:49:37 1994", 784111777},
        {"Sun Nov 16 08:49:37 1994", 784975777},
        {"sun, 06 nov 1994 08:49:37 gmt", 784111777},
        {"SUN, 06 NOV 1994 08:49:37 GMT", 784111777},
        {"sunday, 06-NOV-94 08:49:37 Gmt", 784111777},
        {"SUN NOV  6 08:49:37 1994", 784111777},
        {"Thursday, 20-Nov-25 16:00:00 GMT", NOW},
        {"Wednesday, 01-Jan-75 00:00:00 GMT", 3313526400},
        {"Thursday, 01-Jan-76 00:00:00 GMT", 189302400},
        {"Monday, 01-Jan-01 00:00:00 GMT", 978307200},
        {"Tuesday, 02-Jan-01 00:00:00 GMT", 978393600},
        {"Wednesday, 03-Jan-01 00:00:00 GMT", 978480000},
        {"Friday, 05-Jan-01 00:00:00 GMT", 978652800},
        {"Saturday, 06-Jan-01 00:00:00 GMT", 978739200},
        {"Sat, 31 Dec 2016 23:59:60 GMT", 1483228800},
        {"Tue, 29 Feb 2000 00:00:00 GMT", 951782400},
        /* The day name must be valid, but need not agree with the date. */
        {"Mon, 06 Nov 1994 08:49:37 GMT", 784111777},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t seconds = -1;

        ck_assert_msg(date_parse(str_from(cases[i].text), NOW, &seconds) == 0, "%s rejected", cases[i].text);
        ck_assert_msg(seconds == cases[i].seconds, "%s is %lld", cases[i].text, (long long)seconds);
    }
}
END_TEST

START_TEST(malformed_dates_are_rejected)
{
    static const char *const cases[] = {
        "",
        "S",
        "Sun",
        "Sun,",
        "Sun, ",
        "Sunday",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        " Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "son, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 nox 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 gm",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun,06 Nov 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 29 Feb 1900 00:00:00 GMT",
        "Sun, 29 Feb 2001 00:00:00 GMT",
        "Sun, 30 Feb 2000 00:00:00 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 06 Nov 19940 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sundai, 06-Nov-94 08:49:37 GMT",
        "Tueday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov  6 08:49:37 94",
        "Sun Nov  6 08:49:37 1994 ",
        "0",
        "784111777",
        "Sun, +6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov -994 08:49:37 GMT",
        "Sun, 06-Nov-1994 08:49:37 GMT",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t seconds = 42;

        ck_assert_msg(date_parse(str_from(cases[i]), NOW, &seconds) == -EINVAL, "\"%s\" accepted", cases[i]);
        ck_assert_int_eq(seconds, 42);
    }
}
END_TEST

START_TEST(local_formats_have_the_offset_of_the_zone)
{
    char into[40];

    setenv("TZ", "UTC-5:30", 1);
    tzset();
    ck_assert_text(date_format_local(784111777, into), "06/Nov/1994:14:19:37 +0530");
    ck_assert_text(date_format_iso8601(784111777, into), "1994-11-06T14:19:37+05:30");
    setenv("TZ", "UTC3", 1);
    tzset();
    ck_assert_text(date_format_local(784111777, into), "06/Nov/1994:05:49:37 -0300");
    ck_assert_text(date_format_iso8601(784111777, into), "1994-11-06T05:49:37-03:00");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {seconds_are_formatted_as_imf_fixdate, dates_agree_with_libc,
                                  three_date_formats_are_parsed, malformed_dates_are_rejected,
                                  local_formats_have_the_offset_of_the_zone};

    return suite_run("date", tests, COUNT(tests));
}
