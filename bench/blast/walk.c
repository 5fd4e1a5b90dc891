/*
 * Parsing of record headers; see walk.h. Record layer: RFC 8446 5.2, RFC 5246 6.2.3.3.
 */
#include "walk.h"

enum { APPLICATION = 23 };

void walk_skip(struct walk *walk, size_t length, uint64_t *plain)
{
    walk->record_left -= (uint32_t)length;
    if (walk->record_left == 0)
        *plain += walk->record_plain;
}

bool walk_is_between(const struct walk *walk)
{
    return walk->record_left == 0 && walk->header_have == 0;
}

static bool header_is_whole(struct walk *walk)
{
    walk->header_have = 0;
    walk->record_left = (uint32_t)walk->header[3] << 8 | walk->header[4];
    if (walk->header[0] != APPLICATION || walk->record_left < walk->overhead || walk->record_left > WALK_RECORD_MAX)
        return false;
    walk->record_plain = walk->record_left - walk->overhead;
    return true;
}

bool walk_over(struct walk *walk, const uint8_t *bytes, size_t length, uint64_t *plain)
{
    while (length > 0) {
        if (walk->record_left > 0) {
            size_t step = length < walk->record_left ? length : walk->record_left;

            walk_skip(walk, step, plain);
            bytes += step;
            length -= step;
            continue;
        }
        walk->header[walk->header_have++] = *bytes++;
        length--;
        if (walk->header_have == WALK_HEADER && !header_is_whole(walk))
            return false;
    }
    return true;
}
