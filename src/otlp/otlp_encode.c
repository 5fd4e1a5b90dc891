/*
 * The wire format of protobuf: a key (field number and wire type) before each value. The length of a submessage is
 * inserted when it ends.
 */
#include "otlp/otlp_encode.h"

#include "base/utf8.h"

#include <errno.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* The numbers of the fields that are written. */
enum { REQUEST_RESOURCE_SPANS = 1 };
enum { RESOURCE_SPANS_RESOURCE = 1, RESOURCE_SPANS_SCOPE_SPANS = 2 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_SPANS_SCOPE = 1, SCOPE_SPANS_SPANS = 2 };
enum { SCOPE_NAME = 1, SCOPE_VERSION = 2 };
enum {
    SPAN_FIELD_TRACE_ID = 1,
    SPAN_FIELD_SPAN_ID = 2,
    SPAN_FIELD_TRACE_STATE = 3,
    SPAN_FIELD_PARENT_ID = 4,
    SPAN_FIELD_NAME = 5,
    SPAN_FIELD_KIND = 6,
    SPAN_FIELD_START = 7,
    SPAN_FIELD_END = 8,
    SPAN_FIELD_ATTRIBUTES = 9,
    SPAN_FIELD_DROPPED = 10,
    SPAN_FIELD_STATUS = 15,
    SPAN_FIELD_FLAGS = 16,
};
enum { STATUS_FIELD_CODE = 3 };
enum { PAIR_KEY = 1, PAIR_VALUE = 2, ANY_STRING = 1, ANY_INT = 3 };

enum { KIND_SERVER = 2, STATUS_ERROR = 2 };

/* SpanFlags of trace.proto: the trace flag sampled, CONTEXT_HAS_IS_REMOTE, CONTEXT_IS_REMOTE. */
enum { FLAG_SAMPLED = 0x01, FLAG_HAS_IS_REMOTE = 0x100, FLAG_IS_REMOTE = 0x200 };

enum { VARINT_MAX = 10 };

static void append_raw(struct otlp_message *message, struct str bytes)
{
    if (message->error == 0)
        message->error = buffer_append(&message->out, bytes);
}

static size_t varint_write(uint64_t value, char into[VARINT_MAX])
{
    size_t length = 0;

    for (; value > 127; value >>= 7)
        into[length++] = (char)(value | 128);
    into[length++] = (char)value;
    return length;
}

static void append_varint(struct otlp_message *message, uint64_t value)
{
    char bytes[VARINT_MAX];

    append_raw(message, str_of(bytes, varint_write(value, bytes)));
}

static void append_key(struct otlp_message *message, unsigned field, enum wire_type type)
{
    append_varint(message, field << 3 | type);
}

static void append_number(struct otlp_message *message, unsigned field, uint64_t value)
{
    append_key(message, field, WIRE_VARINT);
    append_varint(message, value);
}

/* Little-endian, of 4 or 8 bytes. */
static void append_fixed(struct otlp_message *message, unsigned field, uint64_t value, size_t size)
{
    char bytes[8];

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(value >> 8 * i);
    append_key(message, field, size == 8 ? WIRE_FIXED64 : WIRE_FIXED32);
    append_raw(message, str_of(bytes, size));
}

static void append_bytes(struct otlp_message *message, unsigned field, const void *bytes, size_t length)
{
    append_key(message, field, WIRE_BYTES);
    append_varint(message, length);
    append_raw(message, str_of(bytes, length));
}

static size_t begin_submessage(struct otlp_message *message, unsigned field)
{
    append_key(message, field, WIRE_BYTES);
    return message->out.length;
}

/* Moves the submessage that began at `at`, and writes its length before it. */
static void end_submessage(struct otlp_message *message, size_t at)
{
    struct buffer *out = &message->out;
    char bytes[VARINT_MAX];
    size_t length, size;

    if (message->error < 0)
        return;
    length = out->length - at;
    size = varint_write(length, bytes);
    message->error = buffer_reserve(out, size);
    if (message->error < 0)
        return;
    memmove(out->data + at + size, out->data + at, length);
    memcpy(out->data + at, bytes, size);
    out->length += size;
}

static void append_text(struct otlp_message *message, unsigned field, struct str text)
{
    size_t at = begin_submessage(message, field), valid = 0;

    while (valid < text.length) {
        struct str rest = str_skip(text, valid);
        uint32_t code;
        size_t length = utf8_decode(rest, &code);

        if (length > 0 && !utf8_is_control(code)) {
            valid += length;
            continue;
        }
        append_raw(message, str_slice(text, 0, valid));
        append_raw(message, STR("\xEF\xBF\xBD"));
        text = str_skip(rest, length > 0 ? length : 1);
        valid = 0;
    }
    append_raw(message, text);
    end_submessage(message, at);
}

static void append_attribute(struct otlp_message *message, unsigned field, const struct span_item *item)
{
    size_t at = begin_submessage(message, field), value_at;

    append_text(message, PAIR_KEY, item->key);
    value_at = begin_submessage(message, PAIR_VALUE);
    if (item->kind == SPAN_NUMBER)
        append_number(message, ANY_INT, item->number);
    else
        append_text(message, ANY_STRING, item->text);
    end_submessage(message, value_at);
    end_submessage(message, at);
}

static void append_resource(struct otlp_message *message, const struct otlp *otlp)
{
    size_t at = begin_submessage(message, RESOURCE_SPANS_RESOURCE);
    struct span_item item = {.kind = SPAN_TEXT, .key = STR("service.name"), .text = otlp->service_name};

    append_attribute(message, RESOURCE_ATTRIBUTES, &item);
    for (size_t i = 0; i < otlp->resource_count; i++) {
        item.key = otlp->resource[i].name;
        item.text = otlp->resource[i].value;
        append_attribute(message, RESOURCE_ATTRIBUTES, &item);
    }
    end_submessage(message, at);
}

static void append_scope(struct otlp_message *message, struct str version)
{
    size_t at = begin_submessage(message, SCOPE_SPANS_SCOPE);

    append_text(message, SCOPE_NAME, STR("sluice"));
    append_text(message, SCOPE_VERSION, version);
    end_submessage(message, at);
}

void otlp_message_begin(struct otlp_message *message, const struct otlp *otlp, struct str version, size_t max)
{
    *message = (struct otlp_message){0};
    buffer_init(&message->out, max);
    message->resource_at = begin_submessage(message, REQUEST_RESOURCE_SPANS);
    append_resource(message, otlp);
    message->scope_at = begin_submessage(message, RESOURCE_SPANS_SCOPE_SPANS);
    append_scope(message, version);
}

static void append_items(struct otlp_message *message, const struct span *span)
{
    struct span_item item;
    size_t at = 0;

    while (span_next(span, &at, &item)) {
        if (item.kind == SPAN_NAME)
            append_text(message, SPAN_FIELD_NAME, item.text);
        else if (item.kind == SPAN_TRACESTATE)
            append_text(message, SPAN_FIELD_TRACE_STATE, item.text);
        else
            append_attribute(message, SPAN_FIELD_ATTRIBUTES, &item);
    }
    if (span->dropped > 0)
        append_number(message, SPAN_FIELD_DROPPED, span->dropped);
}

static void append_status(struct otlp_message *message)
{
    size_t at = begin_submessage(message, SPAN_FIELD_STATUS);

    append_number(message, STATUS_FIELD_CODE, STATUS_ERROR);
    end_submessage(message, at);
}

int otlp_message_add(struct otlp_message *message, const struct span *span)
{
    bool has_parent = (span->flags & SPAN_HAS_PARENT) != 0;
    size_t before = message->out.length;
    int error = message->error;
    size_t at = begin_submessage(message, SCOPE_SPANS_SPANS);

    if (error < 0)
        return error;
    append_bytes(message, SPAN_FIELD_TRACE_ID, span->trace_id, sizeof(span->trace_id));
    append_bytes(message, SPAN_FIELD_SPAN_ID, span->span_id, sizeof(span->span_id));
    if (has_parent)
        append_bytes(message, SPAN_FIELD_PARENT_ID, span->parent_id, sizeof(span->parent_id));
    append_number(message, SPAN_FIELD_KIND, KIND_SERVER);
    append_fixed(message, SPAN_FIELD_START, span->start_ns, 8);
    append_fixed(message, SPAN_FIELD_END, span->end_ns, 8);
    append_items(message, span);
    if (span->flags & SPAN_FAILED)
        append_status(message);
    append_fixed(message, SPAN_FIELD_FLAGS, FLAG_SAMPLED | FLAG_HAS_IS_REMOTE | (has_parent ? FLAG_IS_REMOTE : 0), 4);
    end_submessage(message, at);
    error = message->error;
    if (error < 0)
        message->out.length = before;
    if (error == -ENOBUFS)
        message->error = 0;
    return error;
}

int otlp_message_end(struct otlp_message *message)
{
    message->out.max = 0; /* room for the two lengths */
    end_submessage(message, message->scope_at);
    end_submessage(message, message->resource_at);
    return message->error;
}

void otlp_message_finish(struct otlp_message *message)
{
    buffer_finish(&message->out);
}
