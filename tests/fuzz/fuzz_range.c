/*
 * Range values: what is given lies inside the representation, and never adds up
 * to more than it. The first eight bytes are its length.
 */
#include "fuzz.h"

#include "http/range.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct range ranges[20];
    uint64_t total = 0;
    uint64_t length;
    int count;

    if (size < sizeof(length))
        return 0;
    memcpy(&length, bytes, sizeof(length));
    if (size % 2)
        length %= 100;
    count =
        range_parse(str_of((const char *)bytes + sizeof(length), size - sizeof(length)), length, ranges, 20);
    HOLDS(count == -ERANGE || (count >= 0 && count <= 20));
    for (int i = 0; i < count; i++) {
        HOLDS(ranges[i].first <= ranges[i].last && ranges[i].last < length);
        total += ranges[i].last - ranges[i].first + 1;
        HOLDS(total <= length);
    }
    return 0;
}
