/*
 * Encodes the block after room for one frame head. If the block is too long for one frame, its end is moved to make
 * room for the heads of the CONTINUATION frames.
 */
#include "http/h2/field_write.h"

#include "http/h2/hpack_encode.h"

/* True for connection-specific fields (RFC 9113 8.2.2), and for Content-Length, which is written separately. */
static bool is_skipped(struct str name)
{
    switch (name.length) {
    case 7:
        return str_equal_nocase(name, STR("Upgrade"));
    case 10:
        return str_equal_nocase(name, STR("Connection")) || str_equal_nocase(name, STR("Keep-Alive"));
    case 14:
        return str_equal_nocase(name, STR("Content-Length"));
    case 16:
        return str_equal_nocase(name, STR("Proxy-Connection"));
    case 17:
        return str_equal_nocase(name, STR("Transfer-Encoding"));
    default:
        return false;
    }
}

static char *encode_pseudo(char *at, const struct h2_pseudo_fields *request)
{
    at = hpack_encode_field(at, STR(":method"), request->method);
    at = hpack_encode_field(at, STR(":scheme"), request->scheme);
    if (!str_empty(request->authority))
        at = hpack_encode_field(at, STR(":authority"), request->authority);
    return hpack_encode_field(at, STR(":path"), request->path);
}

static size_t pseudo_bound(const struct h2_pseudo_fields *request)
{
    return hpack_field_bound(STR(":method"), request->method) + hpack_field_bound(STR(":scheme"), request->scheme) +
           hpack_field_bound(STR(":authority"), request->authority) + hpack_field_bound(STR(":path"), request->path);
}

size_t h2_section_bound(const struct h2_section *section, uint32_t max_frame_size)
{
    size_t length = 1 + HPACK_STATUS_BOUND + hpack_field_bound(STR("date"), section->date) +
                    hpack_field_bound(STR("server"), section->server) +
                    hpack_field_bound(STR("content-length"), STR("18446744073709551615"));

    if (section->request)
        length += pseudo_bound(section->request);
    for (unsigned i = 0; i < section->headers->count; i++)
        length += hpack_field_bound(section->headers->items[i].name, section->headers->items[i].value);
    return length + (length / max_frame_size + 1) * H2_FRAME_HEAD;
}

static char *encode_unless_present(char *at, const struct headers *headers, struct str name, struct str value)
{
    if (str_empty(value) || headers_find(headers, name))
        return at;
    return hpack_encode_field(at, name, value);
}

static char *encode_section(char *at, const struct h2_section *section)
{
    char digits[STR_U64_DIGITS];

    if (section->status)
        at = hpack_encode_status(at, section->status);
    if (section->request)
        at = encode_pseudo(at, section->request);
    at = encode_unless_present(at, section->headers, STR("server"), section->server);
    at = encode_unless_present(at, section->headers, STR("date"), section->date);
    for (unsigned i = 0; i < section->headers->count; i++) {
        const struct header *field = &section->headers->items[i];

        if (!is_skipped(field->name) && !(section->request && str_equal_nocase(field->name, STR("Host"))))
            at = hpack_encode_field(at, field->name, str_trim(field->value)); /* RFC 9113 8.2.1 */
    }
    if (section->content_length == BODY_LENGTH_UNKNOWN)
        return at;
    return hpack_encode_field(at, STR("Content-Length"),
                              str_of(digits, (size_t)(str_write_u64(digits, section->content_length) - digits)));
}

/* Inserts the heads of CONTINUATION frames, from the last one to the first. */
static char *split_block(char *frame, size_t length, uint32_t max, uint32_t stream)
{
    size_t more = (length - 1) / max;
    char *block = frame + H2_FRAME_HEAD;

    for (size_t i = more; i > 0; i--) {
        size_t from = i * max;
        size_t part = i == more ? length - from : max;
        char *to = block + from + i * H2_FRAME_HEAD;

        memmove(to, block + from, part);
        h2_frame_write_head(to - H2_FRAME_HEAD, part, H2_CONTINUATION, i == more ? H2_FLAG_END_HEADERS : 0, stream);
    }
    return block + length + more * H2_FRAME_HEAD;
}

char *h2_section_write(char *at, const struct h2_section *section, uint32_t max, uint32_t stream, bool end_stream)
{
    uint8_t flags = end_stream ? H2_FLAG_END_STREAM : 0;
    char *block = at + H2_FRAME_HEAD;
    char *end = block;
    size_t length;

    *end++ = HPACK_NO_TABLE;
    end = encode_section(end, section);
    length = (size_t)(end - block);
    if (length <= max) {
        h2_frame_write_head(at, length, H2_HEADERS, flags | H2_FLAG_END_HEADERS, stream);
        return end;
    }
    h2_frame_write_head(at, max, H2_HEADERS, flags, stream);
    return split_block(at, length, max, stream);
}
