/*
 * `expires`: freshness lifetime of responses, as Expires and Cache-Control (RFC 9111 5.2, 5.3), in all forms of
 * nginx.
 */
#include "http/date.h"
#include "http/exchange.h"
#include "server/module.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

#define MAX_SECONDS (100LL * 366 * 24 * 3600) /* maximum of values from variables: later dates cannot be formatted */

enum expires_kind { EXPIRES_OFF, EXPIRES_EPOCH, EXPIRES_MAX, EXPIRES_AFTER, EXPIRES_MODIFIED, EXPIRES_DAILY };

struct expiry {
    enum expires_kind kind;
    int64_t seconds; /* after now or after the last modification; or the time of day */
};

struct expires_conf {
    struct expires {
        const struct template *text; /* NULL: off */
        bool modified;
        bool constant;
        struct expiry expiry; /* value of a constant text */
    } expires;
};

#define HINT STR("write: expires: 30d, -1, epoch, max, off, modified +24h, '@15h30m', or a variable")

static int64_t seconds_of(char unit)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1},      {'m', 60},      {'h', 3600},    {'d', 86400},
                 {'w', 604800}, {'M', 2592000}, {'y', 31536000}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (units[i].unit == unit)
            return units[i].seconds;
    }
    return 0;
}

/* Parses "1y2d" or "30" (seconds). False: not a time. */
static bool parse_time(struct str text, int64_t *out_seconds)
{
    int64_t sum = 0;

    if (str_empty(text))
        return false;
    while (text.length) {
        int64_t number = 0;
        size_t digits = 0;
        int64_t unit = 1;

        for (; digits < text.length && digits < 10 && text.data[digits] >= '0' && text.data[digits] <= '9';
             digits++)
            number = number * 10 + (text.data[digits] - '0');
        if (digits == 0)
            return false;
        text = str_skip(text, digits);
        if (text.length) {
            unit = seconds_of(text.data[0]);
            text = str_trim(str_skip(text, 1));
        }
        if (unit == 0 || __builtin_mul_overflow(number, unit, &number) ||
            __builtin_add_overflow(sum, number, &sum) || sum > MAX_SECONDS)
            return false;
    }
    *out_seconds = sum;
    return true;
}

static bool parse_expiry(struct str text, bool modified, struct expiry *out)
{
    bool negative = str_starts(text, STR("-"));

    *out = (struct expiry){.kind = modified ? EXPIRES_MODIFIED : EXPIRES_AFTER};
    if (str_starts(text, STR("@")) && !modified) {
        out->kind = EXPIRES_DAILY;
        return parse_time(str_skip(text, 1), &out->seconds) && out->seconds < 86400;
    }
    if (!modified && (str_empty(text) || str_equal(text, STR("off"))))
        out->kind = EXPIRES_OFF;
    else if (!modified && str_equal(text, STR("epoch")))
        out->kind = EXPIRES_EPOCH;
    else if (!modified && str_equal(text, STR("max")))
        out->kind = EXPIRES_MAX;
    else if (!parse_time(str_skip(text, negative || str_starts(text, STR("+"))), &out->seconds))
        return false;
    if (negative)
        out->seconds = -out->seconds;
    return true;
}

static int read_expires(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct expires *expires = out;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);
    struct str text;

    if (error < 0)
        return error;
    expires->modified = words.count == 2 && str_equal(words.items[0], STR("modified"));
    if (words.count != 1u + expires->modified) {
        conf_error(reader->errors, node->mark, HINT, "expires takes a time, optionally preceded by modified");
        return -EINVAL;
    }
    text = words.items[words.count - 1];
    error = conf_read_template_word(reader, node, text, &expires->text);
    if (error < 0)
        return error;
    expires->constant = template_constant(expires->text);
    if (!expires->constant || parse_expiry(text, expires->modified, &expires->expiry))
        return 0;
    conf_error(reader->errors, node->mark, HINT, "\"" STR_FMT "\" is not a time", STR_ARG(text));
    return -EINVAL;
}

static const struct directive directives[] = {
    {.name = "expires",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CUSTOM,
     .offset = offsetof(struct expires_conf, expires),
     .row_size = sizeof(struct expires),
     .row = read_expires,
     .syntax = "[modified] time | @time of day | epoch | max | off",
     .example = "expires: 30d",
     .help = "The lifetime of responses without an error status (Expires and Cache-Control): a time from now (30d, "
             "1h30m; negative: already expired), modified and a time from the last change of the file, @15h30m the "
             "next time at 15:30, epoch, max, off; or a variable with one of these.",
     .schema = "{\"type\": [\"string\", \"boolean\", \"integer\"]}"},
    {0},
};

static bool is_good(int status)
{
    static const int good[] = {200, 201, 204, 206, 301, 302, 303, 304, 307, 308};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        if (status == good[i])
            return true;
    }
    return false;
}

/* Returns the seconds until this local time of day next occurs, today or tomorrow. */
static int64_t until_daily(int64_t now, int64_t of_day)
{
    time_t seconds = (time_t)now;
    struct tm day;
    int64_t next;

    if (!localtime_r(&seconds, &day))
        return 0;
    day.tm_hour = (int)(of_day / 3600);
    day.tm_min = (int)(of_day / 60 % 60);
    day.tm_sec = (int)(of_day % 60);
    day.tm_isdst = -1;
    next = (int64_t)mktime(&day);
    if (next <= now) {
        day.tm_mday++;
        day.tm_isdst = -1;
        next = (int64_t)mktime(&day);
    }
    return next - now;
}

/* Returns the freshness lifetime from now on, in seconds. */
static int64_t freshness_seconds(struct exchange *x, const struct expiry *expiry, int64_t now)
{
    struct str changed = headers_value(&x->response.headers, STR("Last-Modified"));
    int64_t modified;

    if (expiry->kind == EXPIRES_DAILY)
        return until_daily(now, expiry->seconds);
    if (expiry->kind == EXPIRES_MODIFIED && changed.data && date_parse(changed, now, &modified) == 0)
        return modified + expiry->seconds - now;
    return expiry->seconds;
}

static int set_expires_headers(struct exchange *x, struct str expires, struct str control)
{
    int error = expires.data && control.data ? 0 : -ENOMEM;

    if (error == 0)
        error = headers_set(&x->response.headers, &x->arena, STR("Expires"), expires);
    return error < 0 ? error : headers_set(&x->response.headers, &x->arena, STR("Cache-Control"), control);
}

static int set_fresh(struct exchange *x, const struct expiry *expiry)
{
    int64_t now = clock_wall_s(exchange_clock(x));
    int64_t fresh = freshness_seconds(x, expiry, now);
    char *date = arena_alloc(&x->arena, DATE_LENGTH + 1);

    if (!date)
        return -ENOMEM;
    return set_expires_headers(x, date_format(now + fresh, date),
                               fresh < 0 ? STR("no-cache") : arena_printf(&x->arena, "max-age=%lld", (long long)fresh));
}

static int expires_filter(struct exchange *x, const void *conf)
{
    const struct expires *own = &((const struct expires_conf *)conf)->expires;
    struct expiry expiry = own->expiry;
    struct str text;

    if (!is_good(x->response.status))
        return 0;
    if (!own->constant) {
        text = exchange_eval(x, own->text);
        if (!text.data)
            return -ENOMEM;
        if (!parse_expiry(text, own->modified, &expiry))
            return 0;
    }
    switch (expiry.kind) {
    case EXPIRES_OFF:
        return 0;
    case EXPIRES_EPOCH:
        return set_expires_headers(x, STR("Thu, 01 Jan 1970 00:00:01 GMT"), STR("no-cache"));
    case EXPIRES_MAX:
        return set_expires_headers(x, STR("Thu, 31 Dec 2037 23:55:55 GMT"), STR("max-age=315360000"));
    case EXPIRES_AFTER:
    case EXPIRES_MODIFIED:
    case EXPIRES_DAILY:
        break;
    }
    return set_fresh(x, &expiry);
}

static bool expires_idle(const void *conf)
{
    const struct expires_conf *own = conf;

    return !own->expires.text;
}

const struct module module_expires = {
    .name = "expires",
    .directives = directives,
    .conf_size = sizeof(struct expires_conf),
    .idle = expires_idle,
    .filter = expires_filter,
};
