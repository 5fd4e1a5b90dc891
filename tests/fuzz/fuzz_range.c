/*
 * Range: each resulting range lies inside the representation, and their total length is not greater than its length.
 * The first eight bytes of the input are that length. The text is also parsed as Content-Range: its range lies inside
 * the stated length.
 */
#include "fuzz.h"

#include "http/range.h"

#include <errno.h>

static void read_content_range(struct str value)
{
    struct range range;
    uint64_t total;
    int error = content_range_parse(value, &range, &total);

    HOLDS(error == 0 || error == -EINVAL || error == -ENOTSUP);
    HOLDS(error || (range.first <= range.last && range.last < total && total <= INT64_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct range ranges[20];
    uint64_t total = 0;
    uint64_t length;
    int count;

    if (size < sizeof(length))
        return 0;
    memcpy(&length, bytes, sizeof(length));
    read_content_range(str_of((const char *)bytes + sizeof(length), size - sizeof(length)));
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
