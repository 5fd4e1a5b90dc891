/*
 * Parses and writes traceparent and tracestate. Hexadecimal digits are lower case: values are forwarded, and other
 * implementations reject upper case.
 */
#include "http/trace_context.h"

#include "base/limits.h"

#include <errno.h>

enum {
    KEY_LENGTH = 256,
    TENANT_LENGTH = 241,            /* of the part before "@" */
    SYSTEM_LENGTH = 14,             /* of the part after "@" */
    VALUE_LENGTH = 256,
    FLAG_SAMPLED = 1,
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_lower_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_lower_hex(struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        if (!is_digit(text.data[i]) && (text.data[i] < 'a' || text.data[i] > 'f'))
            return false;
    }
    return true;
}

static bool is_id(struct str text, size_t digits)
{
    bool zero = true;

    for (size_t i = 0; i < text.length; i++)
        zero &= text.data[i] == '0';
    return text.length == digits && !zero && is_lower_hex(text);
}

/* Consumes a member of exactly `length` bytes that a dash or the end of the text follows. False: there is none. */
static bool next_member(struct str *rest, size_t length, struct str *out)
{
    if (!rest->data)
        return false;
    *out = str_cut(rest, '-');
    return out->length == length;
}

static bool parse_traceparent(struct str value, struct trace_context *out)
{
    struct trace_context parsed = {0};
    struct str version, flags;

    if (!next_member(&value, 2, &version) || !is_lower_hex(version) || str_equal(version, STR("ff")) ||
        !next_member(&value, TRACE_ID_DIGITS, &parsed.trace_id) || !is_id(parsed.trace_id, TRACE_ID_DIGITS) ||
        !next_member(&value, SPAN_ID_DIGITS, &parsed.span_id) || !is_id(parsed.span_id, SPAN_ID_DIGITS) ||
        !next_member(&value, 2, &flags) || !is_lower_hex(flags) ||
        (str_equal(version, STR("00")) && value.data))
        return false;
    parsed.sampled = (str_hex_digit(flags.data[1]) & FLAG_SAMPLED) != 0;
    *out = parsed;
    return true;
}

bool traceparent_read(const struct headers *headers, struct trace_context *out)
{
    struct str name = STR("traceparent");
    const struct header *field = headers_find(headers, name);

    return field && !headers_next(headers, name, field) && parse_traceparent(field->value, out);
}

void traceparent_write(const struct trace_context *context, char out[TRACEPARENT_LENGTH])
{
    memcpy(out, "00-", 3);
    memcpy(out + 3, context->trace_id.data, TRACE_ID_DIGITS);
    out[35] = '-';
    memcpy(out + 36, context->span_id.data, SPAN_ID_DIGITS);
    memcpy(out + 52, context->sampled ? "-01" : "-00", 3);
}

/* Returns true for at most `max` bytes of a key, of which the first is a letter, or a digit if `digit_first`. */
static bool is_key_part(struct str text, size_t max, bool digit_first)
{
    if (str_empty(text) || text.length > max ||
        !(is_lower_letter(text.data[0]) || (digit_first && is_digit(text.data[0]))))
        return false;
    for (size_t i = 1; i < text.length; i++) {
        char c = text.data[i];

        if (!is_lower_letter(c) && !is_digit(c) && c != '_' && c != '-' && c != '*' && c != '/')
            return false;
    }
    return true;
}

/* "vendor" or "tenant@system" (3.3.1.3.1). */
static bool is_key(struct str key)
{
    struct str system = key;
    struct str tenant = str_cut(&system, '@');

    if (!system.data)
        return is_key_part(key, KEY_LENGTH, false);
    return is_key_part(tenant, TENANT_LENGTH, true) && is_key_part(system, SYSTEM_LENGTH, false);
}

/* Printable ASCII without "=" (3.3.1.3.2). The caller has split the field at commas and trimmed the member. */
static bool is_value(struct str value)
{
    for (size_t i = 0; i < value.length; i++) {
        char c = value.data[i];

        if (c < 0x20 || c > 0x7e || c == '=')
            return false;
    }
    return value.length >= 1 && value.length <= VALUE_LENGTH;
}

static bool is_among(struct str key, const struct str *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_equal(key, keys[i]))
            return true;
    }
    return false;
}

/* Counts the members; empty ones are permitted, and not counted. False: the list is invalid. */
static bool check_tracestate(struct str list, size_t *out_count)
{
    struct str keys[LIMIT_TRACESTATE_MEMBERS];
    size_t count = 0;

    while (list.data) {
        struct str value = str_trim(str_cut(&list, ','));
        struct str key = str_cut(&value, '=');

        if (str_empty(key) && !value.data)
            continue;
        if (count == LIMIT_TRACESTATE_MEMBERS || !is_key(key) || !is_value(value) || is_among(key, keys, count))
            return false;
        keys[count++] = key;
    }
    *out_count = count;
    return true;
}

int tracestate_read(const struct headers *headers, struct arena *arena, struct str *out)
{
    struct str list;
    size_t count;
    int error = headers_join(headers, str_equal_nocase, STR("tracestate"), STR(","), arena, &list);

    if (error < 0)
        return error;
    *out = list.data && check_tracestate(list, &count) && count > 0 ? list : STR("");
    return 0;
}
