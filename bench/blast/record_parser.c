/*
 * Parsing of record headers; see record_parser.h. Record layer: RFC 8446 5.2, RFC 5246 6.2.3.3.
 */
#include "record_parser.h"

enum { APPLICATION = 23 };

void record_parser_skip(struct record_parser *parser, size_t length, uint64_t *plain)
{
    parser->remaining -= (uint32_t)length;
    if (parser->remaining == 0)
        *plain += parser->plaintext_length;
}

bool record_parser_is_at_boundary(const struct record_parser *parser)
{
    return parser->remaining == 0 && parser->header_received == 0;
}

static bool header_parse(struct record_parser *parser)
{
    parser->header_received = 0;
    parser->remaining = (uint32_t)parser->header[3] << 8 | parser->header[4];
    if (parser->header[0] != APPLICATION || parser->remaining < parser->overhead || parser->remaining > RECORD_SIZE_MAX)
        return false;
    parser->plaintext_length = parser->remaining - parser->overhead;
    return true;
}

bool record_parser_feed(struct record_parser *parser, const uint8_t *bytes, size_t length, uint64_t *plain)
{
    while (length > 0) {
        if (parser->remaining > 0) {
            size_t step = length < parser->remaining ? length : parser->remaining;

            record_parser_skip(parser, step, plain);
            bytes += step;
            length -= step;
            continue;
        }
        parser->header[parser->header_received++] = *bytes++;
        length--;
        if (parser->header_received == RECORD_HEADER_SIZE && !header_parse(parser))
            return false;
    }
    return true;
}
