/*
 * Numbers with units: sizes and durations.
 */
#include "conf/conf_value.h"

#include <errno.h>

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit sizes[] = {
    {"", 1},         {"k", 1 << 10},  {"m", 1 << 20},   {"g", 1 << 30},   {"kb", 1 << 10},
    {"mb", 1 << 20}, {"gb", 1 << 30}, {"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30},
};

/* In descending order, as in a combined duration. M is a month, as in nginx. */
static const struct unit durations[] = {
    {"y", 365ull * 86400000},
    {"M", 30ull * 86400000},
    {"w", 7ull * 86400000},
    {"d", 86400000},
    {"h", 3600000},
    {"m", 60000},
    {"s", 1000},
    {"ms", 1},
};

static size_t digits_of(struct str text)
{
    size_t count = 0;

    while (count < text.length && text.data[count] >= '0' && text.data[count] <= '9')
        count++;
    return count;
}

int conf_size_parse(struct str text, uint64_t *out_bytes)
{
    struct str unit = str_skip(text, digits_of(text));
    uint64_t number;
    int error = str_to_u64(str_slice(text, 0, digits_of(text)), &number);

    if (error < 0)
        return error;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (str_equal_nocase(unit, str_from(sizes[i].name)))
            return __builtin_mul_overflow(number, sizes[i].factor, out_bytes) ? -ERANGE : 0;
    }
    return -EINVAL;
}

int conf_read_size(struct conf_reader *reader, const struct conf_node *node, uint64_t *out_bytes)
{
    int error = value_scalar(reader, node, "a size");
    uint64_t bytes;

    if (error < 0)
        return error;
    error = conf_size_parse(node->text, &bytes);
    if (error < 0) {
        conf_error(reader->errors, node->mark, STR("write 512, 4k, 10m or 1g"), "'" STR_FMT "' is %s",
                   STR_ARG(node->text), error == -ERANGE ? "too large" : "not a size");
        return -EINVAL;
    }
    *out_bytes = bytes;
    return 0;
}

static size_t unit_of(struct str text)
{
    size_t length = 0;

    while (length < text.length && (text.data[length] < '0' || text.data[length] > '9') &&
           text.data[length] != ' ')
        length++;
    return length;
}

int conf_duration_parse(struct str text, uint64_t *out_ms)
{
    size_t next_unit = 0;
    uint64_t total = 0;

    if (str_equal(text, STR("0"))) {
        *out_ms = 0;
        return 0;
    }
    do {
        struct str digits = str_slice(text, 0, digits_of(text));
        struct str rest = str_skip(text, digits.length);
        struct str unit = str_slice(rest, 0, unit_of(rest));
        uint64_t number;
        uint64_t part;
        int error = str_to_u64(digits, &number);

        if (error < 0)
            return error;
        if (!unit.length)
            return rest.length ? -EINVAL : -ENOMSG;
        while (next_unit < sizeof(durations) / sizeof(durations[0]) &&
               !str_equal(unit, str_from(durations[next_unit].name)))
            next_unit++;
        if (next_unit == sizeof(durations) / sizeof(durations[0]))
            return -EINVAL;
        if (__builtin_mul_overflow(number, durations[next_unit++].factor, &part) ||
            __builtin_add_overflow(total, part, &total))
            return -ERANGE;
        text = str_trim(str_skip(rest, unit.length));
    } while (text.length);
    *out_ms = total;
    return 0;
}

/* A hint for a unit that is spelled out: "3 minutes" gives 3m; empty for an unknown unit. */
static struct str duration_hint(struct conf_reader *reader, struct str text)
{
    static const struct {
        const char *word, *unit;
    } words[] = {{"millisecond", "ms"}, {"msec", "ms"}, {"ms", "ms"}, {"second", "s"}, {"sec", "s"}, {"s", "s"},
                 {"minute", "m"},       {"min", "m"},   {"m", "m"},   {"hour", "h"},   {"hr", "h"},  {"h", "h"},
                 {"day", "d"},          {"d", "d"},     {"week", "w"}, {"w", "w"}};
    struct str digits = str_slice(text, 0, digits_of(text));
    struct str word = str_trim(str_skip(text, digits.length));

    for (size_t i = 0; digits.length && i < sizeof(words) / sizeof(words[0]); i++) {
        struct str known = str_from(words[i].word);
        struct str rest = str_skip(word, known.length);

        if (str_starts(word, known) && (str_empty(rest) || str_equal(rest, STR("s"))))
            return conf_hint(reader->errors, "write " STR_FMT "%s", STR_ARG(digits), words[i].unit);
    }
    return STR("");
}

int conf_read_duration(struct conf_reader *reader, const struct conf_node *node, uint64_t *out_ms)
{
    int error = value_scalar(reader, node, "a duration");
    struct str text = node->text;
    uint64_t ms = 0;

    if (error < 0)
        return error;
    error = conf_duration_parse(text, &ms);
    if (error == 0) {
        *out_ms = ms;
        return 0;
    }
    if (error == -EINVAL && duration_hint(reader, text).length)
        conf_error(reader->errors, node->mark, duration_hint(reader, text), "'" STR_FMT "' is not a duration",
                   STR_ARG(text));
    else if (error == -ENOMSG)
        conf_error(reader->errors, node->mark,
                   conf_hint(reader->errors, "write " STR_FMT "s, " STR_FMT "ms or " STR_FMT "m",
                             STR_ARG(text), STR_ARG(text), STR_ARG(text)),
                   "'" STR_FMT "' has no unit", STR_ARG(text));
    else
        conf_error(reader->errors, node->mark,
                   STR("write 500ms, 30s, 5m, 1h30m or 7d; larger units first, no fractions"),
                   "'" STR_FMT "' is %s", STR_ARG(text), error == -ERANGE ? "too long" : "not a duration");
    return -EINVAL;
}
