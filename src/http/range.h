/*
 * Range requests (RFC 9110 14), unit bytes.
 */
#ifndef HTTP_RANGE_H
#define HTTP_RANGE_H

#include "base/must_check.h"
#include "base/str.h"

struct range {
    uint64_t first;
    uint64_t last;                  /* inclusive */
};

/*
 * Parses a Range value for a representation of `length` bytes. Returns the number of satisfiable ranges in
 * out_ranges (at most `max`); 0: ignore the field (malformed, other unit, more than `max`, abusive overlaps, a
 * suffix of an empty representation); -ERANGE: not satisfiable (416).
 */
int range_parse(struct str value, uint64_t length, struct range *out_ranges, unsigned max);

/*
 * Reads the Content-Range of a 206 (RFC 9110 14.4): "bytes 0-99/1000". 0; -ENOTSUP: the complete length is unknown
 * ("*"); -EINVAL: malformed, another unit, an unsatisfied range, inconsistent numbers, or a length
 * above INT64_MAX.
 */
MUST_CHECK int content_range_parse(struct str value, struct range *out_range, uint64_t *out_total);

#endif
