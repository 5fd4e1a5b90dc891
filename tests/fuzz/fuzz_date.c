/*
 * Dates: a parsed date is formatted as the same time, and every time in the years 1 to 9999 is formatted and parsed
 * without a change.
 */
#include "fuzz.h"

#include "http/date.h"

#define YEAR_1    (-62135596800)
#define YEAR_9999 253402300799

static void check_moment(int64_t seconds)
{
    char into[40];
    int64_t back;

    HOLDS(date_format(seconds, into).length == DATE_LENGTH);
    HOLDS(date_parse(str_of(into, DATE_LENGTH), 0, &back) == 0);
    HOLDS(back == seconds);
    HOLDS(date_format_local(seconds, into).length == 26);
    HOLDS(date_format_iso8601(seconds, into).length == 25);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int64_t seconds;
    char into[DATE_LENGTH + 1];

    if (date_parse(str_of((const char *)bytes, size), 1763654400, &seconds) == 0 && seconds >= YEAR_1 &&
        seconds <= YEAR_9999)
        check_moment(seconds);
    if (size < sizeof(seconds))
        return 0;
    memcpy(&seconds, bytes, sizeof(seconds));
    HOLDS(date_format(seconds / 16, into).length == DATE_LENGTH);
    if (seconds >= YEAR_1 && seconds <= YEAR_9999)
        check_moment(seconds);
    return 0;
}
