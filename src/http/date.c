/*
 * HTTP dates (RFC 9110 5.6.7) and nginx's two log formats. The C library is used only for the offset of local time: a
 * date is formatted once per response, and locale and TZ must not affect the protocol.
 */
#include "http/date.h"

#include <errno.h>
#include <time.h>

#define DAY_SECONDS 86400

enum { RECENT = 64 }; /* cached texts */

static const char day_names[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char month_names[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

struct calendar {
    int64_t year;
    unsigned month; /* 0 to 11 */
    unsigned day;   /* 1 to 31 */
    unsigned hour, minute, second;
    unsigned weekday; /* 0 is Sunday */
};

/* Days since 1970-01-01 of a proleptic Gregorian date. Internally years begin in March and end with the leap day. */
static int64_t days_of(int64_t year, unsigned month, unsigned day)
{
    int64_t march_year = year - (month < 2);
    int64_t era = (march_year >= 0 ? march_year : march_year - 399) / 400;
    int64_t year_of_era = march_year - era * 400;
    int64_t day_of_year = (153 * (int64_t)((month + 10) % 12) + 2) / 5 + day - 1;

    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static struct calendar calendar_of(int64_t seconds)
{
    int64_t days = (seconds >= 0 ? seconds : seconds - (DAY_SECONDS - 1)) / DAY_SECONDS;
    unsigned rest = (unsigned)(seconds - days * DAY_SECONDS);
    int64_t shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    unsigned day_of_era = (unsigned)(shifted - era * 146097);
    unsigned year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned from_march = (5 * day_of_year + 2) / 153;
    struct calendar out;

    out.month = (from_march + 2) % 12;
    out.day = day_of_year - (153 * from_march + 2) / 5 + 1;
    out.year = (int64_t)year_of_era + era * 400 + (out.month < 2);
    out.hour = rest / 3600;
    out.minute = rest / 60 % 60;
    out.second = rest % 60;
    out.weekday = (unsigned)(((days + 4) % 7 + 7) % 7);
    return out;
}

static char *write_digits(char *at, unsigned count, unsigned value)
{
    for (unsigned i = count; i > 0; i--) {
        at[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    return at + count;
}

static char *copy_text(char *at, const char *text, size_t length)
{
    memcpy(at, text, length);
    return at + length;
}

static char *write_clock(char *at, const struct calendar *when)
{
    at = write_digits(at, 2, when->hour);
    *at++ = ':';
    at = write_digits(at, 2, when->minute);
    *at++ = ':';
    return write_digits(at, 2, when->second);
}

static void format_date(int64_t seconds, char *into)
{
    struct calendar when = calendar_of(seconds);
    char *at = copy_text(into, day_names[when.weekday], 3);

    at = copy_text(at, ", ", 2);
    at = write_digits(at, 2, when.day);
    *at++ = ' ';
    at = copy_text(at, month_names[when.month], 3);
    *at++ = ' ';
    at = write_digits(at, 4, (unsigned)(when.year % 10000));
    *at++ = ' ';
    at = write_clock(at, &when);
    at = copy_text(at, " GMT", 4);
    *at = '\0';
}

/* Caches recent texts: most responses contain the current time and the modification time of one of a few files. */
struct str date_format(int64_t seconds, char *into)
{
    static _Thread_local struct {
        int64_t seconds;
        char text[DATE_LENGTH + 1];
    } recent[RECENT];
    unsigned place = (uint64_t)seconds % RECENT;

    if (recent[place].seconds != seconds || recent[place].text[0] == '\0') {
        format_date(seconds, recent[place].text);
        recent[place].seconds = seconds;
    }
    memcpy(into, recent[place].text, DATE_LENGTH + 1);
    return str_of(into, DATE_LENGTH);
}

/* Parses from the front of `text`; each part advances it, and a mismatch sets `bad`. */
struct cursor {
    struct str text;
    bool bad;
};

static unsigned parse_digits(struct cursor *cursor, size_t count)
{
    unsigned value = 0;

    if (cursor->text.length < count) {
        cursor->bad = true;
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        unsigned digit = (unsigned char)cursor->text.data[i] - (unsigned)'0';

        if (digit > 9)
            cursor->bad = true;
        value = value * 10 + digit;
    }
    cursor->text = str_skip(cursor->text, count);
    return value;
}

static void expect_text(struct cursor *cursor, struct str expected)
{
    if (!str_equal_nocase(str_slice(cursor->text, 0, expected.length), expected))
        cursor->bad = true;
    cursor->text = str_skip(cursor->text, expected.length);
}

static unsigned parse_name(struct cursor *cursor, const char (*names)[4], unsigned count)
{
    struct str name = str_slice(cursor->text, 0, 3);

    cursor->text = str_skip(cursor->text, 3);
    for (unsigned i = 0; i < count; i++) {
        if (str_equal_nocase(name, str_of(names[i], 3)))
            return i;
    }
    cursor->bad = true;
    return 0;
}

static void parse_clock(struct cursor *cursor, struct calendar *when)
{
    when->hour = parse_digits(cursor, 2);
    expect_text(cursor, STR(":"));
    when->minute = parse_digits(cursor, 2);
    expect_text(cursor, STR(":"));
    when->second = parse_digits(cursor, 2);
}

/* Sun, 06 Nov 1994 08:49:37 GMT, after the day name. */
static void parse_fixdate(struct cursor *cursor, struct calendar *when)
{
    expect_text(cursor, STR(", "));
    when->day = parse_digits(cursor, 2);
    expect_text(cursor, STR(" "));
    when->month = parse_name(cursor, month_names, 12);
    expect_text(cursor, STR(" "));
    when->year = parse_digits(cursor, 4);
    expect_text(cursor, STR(" "));
    parse_clock(cursor, when);
    expect_text(cursor, STR(" GMT"));
}

/* Sunday, 06-Nov-94 08:49:37 GMT: a year more than 50 years ahead is in the past century (RFC 9110 5.6.7). */
static void parse_rfc850(struct cursor *cursor, struct calendar *when, int64_t now)
{
    static const char *const tails[7] = {"day, ",   "day, ", "sday, ", "nesday, ",
                                         "rsday, ", "day, ", "urday, "};
    int64_t this_year = calendar_of(now).year;

    expect_text(cursor, str_from(tails[when->weekday]));
    when->day = parse_digits(cursor, 2);
    expect_text(cursor, STR("-"));
    when->month = parse_name(cursor, month_names, 12);
    expect_text(cursor, STR("-"));
    when->year = this_year - this_year % 100 + parse_digits(cursor, 2);
    if (when->year > this_year + 50)
        when->year -= 100;
    expect_text(cursor, STR(" "));
    parse_clock(cursor, when);
    expect_text(cursor, STR(" GMT"));
}

/* Sun Nov  6 08:49:37 1994 */
static void parse_asctime(struct cursor *cursor, struct calendar *when)
{
    expect_text(cursor, STR(" "));
    when->month = parse_name(cursor, month_names, 12);
    expect_text(cursor, STR(" "));
    if (str_starts(cursor->text, STR(" "))) {
        expect_text(cursor, STR(" "));
        when->day = parse_digits(cursor, 1);
    } else {
        when->day = parse_digits(cursor, 2);
    }
    expect_text(cursor, STR(" "));
    parse_clock(cursor, when);
    expect_text(cursor, STR(" "));
    when->year = parse_digits(cursor, 4);
}

static unsigned month_days(int64_t year, unsigned month)
{
    static const unsigned days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return days[month] + (month == 1 && leap);
}

int date_parse(struct str text, int64_t now, int64_t *out_seconds)
{
    struct cursor cursor = {.text = text};
    struct calendar when = {0};

    when.weekday = parse_name(&cursor, day_names, 7);
    if (cursor.bad)
        return -EINVAL;
    if (str_starts(cursor.text, STR(",")))
        parse_fixdate(&cursor, &when);
    else if (str_starts(cursor.text, STR(" ")))
        parse_asctime(&cursor, &when);
    else
        parse_rfc850(&cursor, &when, now);
    if (cursor.bad || cursor.text.length)
        return -EINVAL;
    if (when.day < 1 || when.day > month_days(when.year, when.month) || when.hour > 23 || when.minute > 59 ||
        when.second > 60)
        return -EINVAL;
    *out_seconds = days_of(when.year, when.month, when.day) * DAY_SECONDS + when.hour * 3600 +
                   when.minute * 60 + when.second;
    return 0;
}

/* Local time and its offset from UTC in minutes. */
static int local_time(int64_t seconds, struct calendar *out_when)
{
    time_t moment = (time_t)seconds;
    struct tm local = {.tm_mday = 1, .tm_year = 70};

    localtime_r(&moment, &local);
    *out_when = calendar_of(seconds + local.tm_gmtoff);
    return (int)(local.tm_gmtoff / 60);
}

static char *write_zone(char *at, int minutes, bool colon)
{
    unsigned distance = (unsigned)(minutes < 0 ? -minutes : minutes);

    *at++ = minutes < 0 ? '-' : '+';
    at = write_digits(at, 2, distance / 60);
    if (colon)
        *at++ = ':';
    return write_digits(at, 2, distance % 60);
}

struct str date_format_local(int64_t seconds, char *into)
{
    struct calendar when;
    int zone = local_time(seconds, &when);
    char *at = write_digits(into, 2, when.day);

    *at++ = '/';
    at = copy_text(at, month_names[when.month], 3);
    *at++ = '/';
    at = write_digits(at, 4, (unsigned)(when.year % 10000));
    *at++ = ':';
    at = write_clock(at, &when);
    *at++ = ' ';
    at = write_zone(at, zone, false);
    *at = '\0';
    return str_of(into, (size_t)(at - into));
}

struct str date_format_iso8601(int64_t seconds, char *into)
{
    struct calendar when;
    int zone = local_time(seconds, &when);
    char *at = write_digits(into, 4, (unsigned)(when.year % 10000));

    *at++ = '-';
    at = write_digits(at, 2, when.month + 1);
    *at++ = '-';
    at = write_digits(at, 2, when.day);
    *at++ = 'T';
    at = write_clock(at, &when);
    at = write_zone(at, zone, true);
    *at = '\0';
    return str_of(into, (size_t)(at - into));
}
