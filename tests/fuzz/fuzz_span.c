/*
 * A span that a worker wrote into shared memory, as the exporter reads it: one that is valid is the same after its
 * items are added to an empty span, and its message is valid protobuf with UTF-8 in each text.
 */
#include "fuzz.h"

#include "base/utf8.h"
#include "otlp/otlp_encode.h"

static void add_item(struct span *span, const struct span_item *item)
{
    switch (item->kind) {
    case SPAN_NAME:
        span_set_name(span, item->text);
        break;
    case SPAN_TRACESTATE:
        span_set_tracestate(span, item->text);
        break;
    case SPAN_TEXT:
        span_add_text(span, item->key, item->text);
        break;
    case SPAN_NUMBER:
        span_add_number(span, item->key, item->number);
    }
}

/* Texts that are longer than a worker writes are truncated when they are added. */
static void check_items(const struct span *span)
{
    struct span again = {.length = 0};
    struct span_item item;
    bool truncated = false;
    size_t at = 0;

    for (size_t before = 0; span_next(span, &at, &item); before = at) {
        HOLDS(at > before && at <= sizeof(span->items));
        truncated |= item.text.length > LIMIT_SPAN_TEXT || (item.kind == SPAN_TRACESTATE && str_empty(item.text));
        add_item(&again, &item);
    }
    HOLDS(at <= span->length);
    if (at == span->length && !truncated && span_is_valid(span))
        HOLDS(again.length == span->length && memcmp(again.items, span->items, span->length) == 0);
}

static uint64_t read_varint(struct str *rest)
{
    uint64_t value = 0;

    for (unsigned shift = 0;; shift += 7) {
        unsigned char byte;

        HOLDS(rest->length > 0 && shift < 64);
        byte = (unsigned char)rest->data[0];
        *rest = str_skip(*rest, 1);
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
}

/* Reads the next field. Returns its number, and the bytes of a submessage or text; data NULL: a number. */
static uint64_t read_field(struct str *rest, struct str *out_bytes)
{
    uint64_t key = read_varint(rest), length = 0;

    *out_bytes = (struct str){NULL, 0};
    switch (key & 7) {
    case 0:
        (void)read_varint(rest);
        return key >> 3;
    case 1:
        length = 8;
        break;
    case 5:
        length = 4;
        break;
    default:
        HOLDS((key & 7) == 2);
        length = read_varint(rest);
        *out_bytes = str_slice(*rest, 0, (size_t)length);
    }
    HOLDS(length <= rest->length);
    *rest = str_skip(*rest, (size_t)length);
    return key >> 3;
}

static void check_utf8(struct str text)
{
    while (text.length > 0) {
        size_t length = utf8_length(text);

        HOLDS(length > 0);
        text = str_skip(text, length);
    }
}

/* KeyValue: a key, and a value that is a text (field 1) or a number. */
static void check_attribute(struct str attribute)
{
    struct str part, value;

    while (attribute.length > 0) {
        uint64_t number = read_field(&attribute, &part);

        if (number == 1)
            check_utf8(part);
        while (number == 2 && part.length > 0) {
            if (read_field(&part, &value) == 1)
                check_utf8(value);
        }
    }
}

/* Span of opentelemetry-proto: 3 is the state, 5 the name, 9 an attribute. */
static void check_span(struct str span)
{
    struct str part;

    while (span.length > 0) {
        uint64_t number = read_field(&span, &part);

        if (number == 3 || number == 5)
            check_utf8(part);
        if (number == 9)
            check_attribute(part);
    }
}

/* The spans are field 2 of field 2 of field 1. Returns their number. */
static unsigned check_message(struct str message, unsigned depth)
{
    unsigned count = 0;
    struct str part;

    while (message.length > 0) {
        uint64_t number = read_field(&message, &part);

        if (number != (depth == 0 ? 1 : 2))
            continue;
        if (depth == 2)
            check_span(part);
        count += depth == 2 ? 1 : check_message(part, depth + 1);
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct otlp otlp = {.service_name = {"svc", 3}};
    struct otlp_message message;
    struct span span = {.length = 0};

    memcpy(&span, bytes, size < sizeof(span) ? size : sizeof(span));
    check_items(&span);
    if (!span_is_valid(&span))
        return 0;
    otlp_message_begin(&message, &otlp, STR("1"), LIMIT_OTLP_REQUEST);
    HOLDS(otlp_message_add(&message, &span) == 0 && otlp_message_end(&message) == 0);
    HOLDS(check_message(buffer_str(&message.out), 0) == 1);
    otlp_message_finish(&message);
    return 0;
}
