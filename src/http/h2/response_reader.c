/*
 * Validates and stores the fields of a response as they are decoded.
 */
#include "http/h2/response_reader.h"

#include "base/limits.h"
#include "http/h2/field_rules.h"

static void store_status(struct h2_response_reader *reader, struct str name, struct str value)
{
    uint64_t status;

    if (reader->trailers)
        reader->fault = "a pseudo-header field in trailers";
    else if (reader->regular)
        reader->fault = "a pseudo-header field after regular fields";
    else if (!str_equal(name, STR(":status")))
        reader->fault = "an invalid pseudo-header field";
    else if (reader->status)
        reader->fault = "more than one :status";
    else if (value.length != 3 || str_to_u64(value, &status) < 0 || status < 100 || status > 599)
        reader->fault = "an invalid :status";
    else if (status == 101)
        reader->fault = "status 101, which HTTP/2 does not have";
    else
        reader->status = (int)status;
}

static void store_field(struct h2_response_reader *reader, struct str name, struct str value)
{
    struct str parts[2];

    reader->regular = true;
    if (!h2_field_is_name(name) || h2_field_is_connection_specific(name, value)) {
        reader->fault = "an invalid header field";
        return;
    }
    parts[0] = arena_copy(reader->arena, name);
    parts[1] = arena_copy(reader->arena, value);
    if (!parts[0].data || !parts[1].data || headers_add(&reader->headers, reader->arena, parts[0], parts[1]) < 0) {
        reader->no_memory = true;
        reader->fault = "out of memory";
    }
}

void h2_response_field(struct h2_response_reader *reader, struct str name, struct str value)
{
    bool pseudo = name.length && name.data[0] == ':';

    reader->bytes += name.length + value.length + 4;
    if (reader->fault)
        return;
    if (!value.data || reader->bytes > reader->head_max)
        reader->fault = "too big header";
    else if (!pseudo && reader->headers.count >= LIMIT_HEADERS)
        reader->fault = "too many header fields";
    else if (!h2_field_is_value(value))
        reader->fault = "an invalid header field";
    else if (pseudo)
        store_status(reader, name, value);
    else
        store_field(reader, name, value);
}

void h2_response_section_end(struct h2_response_reader *reader)
{
    if (!reader->fault && !reader->trailers && !reader->status)
        reader->fault = "a response without :status";
}

uint64_t h2_response_length(struct h2_response_reader *reader)
{
    const struct header *field = headers_find(&reader->headers, STR("content-length"));
    uint64_t length;

    if (!field)
        return BODY_LENGTH_UNKNOWN;
    if (headers_next(&reader->headers, STR("content-length"), field))
        reader->fault = "more than one Content-Length";
    else if (str_to_u64(field->value, &length) < 0 || length > INT64_MAX)
        reader->fault = "an invalid Content-Length";
    else
        return length;
    return BODY_LENGTH_UNKNOWN;
}
