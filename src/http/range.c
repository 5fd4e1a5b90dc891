/*
 * Parses Range (RFC 9110 14.1.2) and Content-Range (14.4) of bytes.
 */
#include "http/range.h"

#include <errno.h>

/* A position beyond 64 bits is past the end of any representation. */
static int read_position(struct str digits, uint64_t *out_position)
{
    int error = str_to_u64(digits, out_position);

    if (error == -ERANGE) {
        *out_position = UINT64_MAX;
        return 0;
    }
    return error;
}

/*
 * Parses one range-spec for `length`: 1: satisfiable; 0: not; -EINVAL: malformed, or a suffix of an empty
 * representation, which is satisfiable (RFC 9110 14.1.2) but has no Content-Range.
 */
static int parse_spec(struct str spec, uint64_t length, struct range *out_range)
{
    ssize_t dash = str_find(spec, '-');
    struct str from;
    struct str to;
    uint64_t first;
    uint64_t last = UINT64_MAX;

    if (dash < 0)
        return -EINVAL;
    from = str_slice(spec, 0, (size_t)dash);
    to = str_skip(spec, (size_t)dash + 1);
    if (from.length == 0) {
        uint64_t suffix;

        if (read_position(to, &suffix) != 0)
            return -EINVAL;
        if (suffix == 0)
            return 0;
        if (length == 0)
            return -EINVAL;
        *out_range = (struct range){suffix >= length ? 0 : length - suffix, length - 1};
        return 1;
    }
    if (read_position(from, &first) != 0 || (to.length && read_position(to, &last) != 0) || last < first)
        return -EINVAL;
    if (first >= length)
        return 0;
    *out_range = (struct range){first, last >= length ? length - 1 : last};
    return 1;
}

int range_parse(struct str value, uint64_t length, struct range *out_ranges, unsigned max)
{
    struct str unit = STR("bytes=");
    struct str rest = str_skip(value, unit.length);
    unsigned count = 0;
    unsigned specs = 0;
    uint64_t total = 0;

    if (!str_equal_nocase(str_slice(value, 0, unit.length), unit))
        return 0;
    while (rest.data) {
        struct str spec = str_trim(str_cut(&rest, ','));
        struct range range;
        int found;

        if (spec.length == 0)
            continue;
        specs++;
        found = parse_spec(spec, length, &range);
        if (found < 0 || (found > 0 && count == max))
            return 0;
        if (found == 0)
            continue;
        /* More bytes than the representation: overlaps that cost more than a 200 (RFC 9110 14.2). */
        if (__builtin_add_overflow(total, range.last - range.first + 1, &total) || total > length)
            return 0;
        out_ranges[count++] = range;
    }
    if (specs == 0 || max == 0)
        return 0;
    return count ? (int)count : -ERANGE;
}

int content_range_parse(struct str value, struct range *out_range, uint64_t *out_total)
{
    struct str unit = STR("bytes ");
    struct str rest = str_skip(value, unit.length);
    struct str place;
    struct range range;
    uint64_t total;

    if (!str_equal_nocase(str_slice(value, 0, unit.length), unit))
        return -EINVAL;
    place = str_cut(&rest, '/');
    if (!rest.data || str_to_u64(str_cut(&place, '-'), &range.first) < 0 || !place.data ||
        str_to_u64(place, &range.last) < 0 || range.first > range.last)
        return -EINVAL;
    if (str_equal(rest, STR("*")))
        return -ENOTSUP;
    if (str_to_u64(rest, &total) < 0 || total > INT64_MAX || range.last >= total)
        return -EINVAL;
    *out_range = range;
    *out_total = total;
    return 0;
}
