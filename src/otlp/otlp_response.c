/*
 * Reads the status, Retry-After, and the partial success in the body.
 */
#include "otlp/otlp_response.h"

#include "base/limits.h"

#include <errno.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

bool otlp_status_is_retryable(int status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

static bool read_varint(struct str *rest, uint64_t *out)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && !str_empty(*rest); shift += 7) {
        unsigned char c = (unsigned char)rest->data[0];

        *rest = str_skip(*rest, 1);
        value |= (uint64_t)(c & 127) << shift;
        if (c < 128) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* Reads one field. *out_bytes: a submessage or text; *out_number: a varint. False: the message is malformed. */
static bool read_field(struct str *rest, uint64_t *out_field, struct str *out_bytes, uint64_t *out_number)
{
    uint64_t key, length = 0;
    bool valid = read_varint(rest, &key);

    *out_bytes = STR("");
    *out_number = 0;
    if (!valid)
        return false;
    *out_field = key >> 3;
    if ((key & 7) == WIRE_VARINT)
        return read_varint(rest, out_number);
    if ((key & 7) == WIRE_BYTES)
        valid = read_varint(rest, &length);
    else if ((key & 7) == WIRE_FIXED64 || (key & 7) == WIRE_FIXED32)
        length = (key & 7) == WIRE_FIXED64 ? 8 : 4;
    else
        valid = false;
    if (!valid || length > rest->length)
        return false;
    *out_bytes = str_slice(*rest, 0, (size_t)length);
    *rest = str_skip(*rest, (size_t)length);
    return true;
}

/* ExportTraceServiceResponse.partial_success (1), ExportTracePartialSuccess.rejected_spans (1). */
uint64_t otlp_response_rejected(struct str body)
{
    struct str partial = STR(""), bytes;
    uint64_t field, number, rejected = 0;

    while (!str_empty(body)) {
        if (!read_field(&body, &field, &bytes, &number))
            return 0;
        if (field == 1)
            partial = bytes;
    }
    while (!str_empty(partial)) {
        if (!read_field(&partial, &field, &bytes, &number))
            return 0;
        if (field == 1)
            rejected = number;
    }
    return rejected <= INT64_MAX ? rejected : 0;
}

static void read_retry_after(const struct h1_reply *reply, struct otlp_response *response)
{
    uint64_t seconds;

    if (str_to_u64(str_or_empty(headers_value(&reply->headers, STR("Retry-After"))), &seconds) < 0)
        return;
    response->retry_after_ms = seconds > LIMIT_OTLP_RETRY_AFTER_MS / 1000 ? LIMIT_OTLP_RETRY_AFTER_MS : seconds * 1000;
}

void otlp_response_init(struct otlp_response_reader *reader)
{
    const struct h1_reply_settings settings = {.head_max = LIMIT_OTLP_RESPONSE};

    *reader = (struct otlp_response_reader){0};
    arena_init(&reader->arena, NULL, 4 * LIMIT_OTLP_RESPONSE);
    buffer_init(&reader->body, LIMIT_OTLP_RESPONSE);
    h1_reply_init(&reader->reply, &settings, &reader->arena, &reader->trailers);
}

void otlp_response_finish(struct otlp_response_reader *reader)
{
    h1_reply_finish(&reader->reply);
    buffer_finish(&reader->body);
    arena_reset(&reader->arena);
}

static int complete_response(struct otlp_response_reader *reader, bool keepalive)
{
    reader->response.keepalive = keepalive;
    reader->response.rejected = otlp_response_rejected(buffer_str(&reader->body));
    return 1;
}

/* The status applies, although the rest of the response is malformed or missing. */
static int complete_early(struct otlp_response_reader *reader)
{
    return reader->response.status > 0 ? complete_response(reader, false) : -EBADMSG;
}

/* Returns true if the body need not be read: it has no partial success, and the connection is not used again. */
static bool head_received(struct otlp_response_reader *reader)
{
    reader->response.status = reader->reply.status;
    read_retry_after(&reader->reply, &reader->response);
    return reader->response.status != 200 && !reader->reply.keepalive;
}

/* A body beyond the limit is not used. */
static int add_body(struct otlp_response_reader *reader, struct str part)
{
    int error = buffer_append(&reader->body, part);

    return error == -ENOBUFS ? complete_early(reader) : error;
}

/* One item of the response. 1: complete; 0: more bytes or items follow; -errno. */
static int read_item(struct otlp_response_reader *reader, struct str *rest, bool *out_more)
{
    struct str part;

    *out_more = false;
    switch (h1_reply_read(&reader->reply, rest, &part)) {
    case REPLY_MORE:
        *out_more = true;
        return reader->received < LIMIT_OTLP_RESPONSE ? 0 : complete_early(reader);
    case REPLY_INTERIM:
        return 0;
    case REPLY_HEAD:
        return head_received(reader) ? complete_response(reader, false) : 0;
    case REPLY_PART:
        return reader->response.status == 200 ? add_body(reader, part) : 0;
    case REPLY_WHOLE:
        return complete_response(reader, reader->reply.keepalive && str_empty(*rest));
    case REPLY_BAD:
        return complete_early(reader);
    case REPLY_NO_MEMORY:
        break;
    }
    return -ENOMEM;
}

int otlp_response_read(struct otlp_response_reader *reader, struct str bytes)
{
    bool more = false;
    int result = 0;

    if (str_empty(bytes))
        return h1_reply_ended(&reader->reply, false) == REPLY_WHOLE ? complete_response(reader, false)
                                                                    : complete_early(reader);
    reader->received += bytes.length;
    while (result == 0 && !more)
        result = read_item(reader, &bytes, &more);
    return result;
}
