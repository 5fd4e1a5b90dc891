/*
 * Range requests (RFC 9110 14): bytes only.
 */
#ifndef HTTP_RANGE_H
#define HTTP_RANGE_H

#include "base/str.h"

struct range {
    uint64_t first;
    uint64_t last;                  /* inclusive */
};

/*
 * Reads a Range value against a representation of `length` bytes. Returns the number of satisfiable ranges written to out_ranges
 * (at most `max`); 0: the field is to be ignored (malformed, other unit, more than `max`, overlapping abuse, a suffix of an empty representation); -ERANGE: none is
 * satisfiable (416).
 */
int range_parse(struct str value, uint64_t length, struct range *out_ranges, unsigned max);

#endif
