/*
 * Writes and reads the items of a span: kind (1 byte), length of the key (1), length of the value (2), key, value.
 */
#include "otlp/span.h"

enum { ITEM_HEAD = 4 };

void span_parse_id(struct str digits, uint8_t *out)
{
    for (size_t i = 0; i + 1 < digits.length; i += 2) {
        unsigned high = (unsigned)str_hex_digit(digits.data[i]);
        unsigned low = (unsigned)str_hex_digit(digits.data[i + 1]);

        out[i / 2] = (uint8_t)(high << 4 | low);
    }
}

static void add_item(struct span *span, enum span_item_kind kind, struct str key, struct str value)
{
    size_t needed = ITEM_HEAD + key.length + value.length;
    char *at = span->items + span->length;
    uint16_t length = (uint16_t)value.length;

    if (key.length > LIMIT_SPAN_KEY || needed > sizeof(span->items) - span->length) {
        span->dropped++;
        return;
    }
    at[0] = (char)kind;
    at[1] = (char)key.length;
    memcpy(at + 2, &length, sizeof(length));
    if (key.length)
        memcpy(at + ITEM_HEAD, key.data, key.length);
    if (value.length)
        memcpy(at + ITEM_HEAD + key.length, value.data, value.length);
    span->length = (uint16_t)(span->length + needed);
}

void span_set_name(struct span *span, struct str name)
{
    add_item(span, SPAN_NAME, STR(""), str_slice(name, 0, LIMIT_SPAN_TEXT));
}

void span_set_tracestate(struct span *span, struct str state)
{
    size_t length = state.length;

    if (length > LIMIT_SPAN_TEXT) {
        for (length = LIMIT_SPAN_TEXT; length > 0 && state.data[length] != ',';)
            length--;
    }
    if (length > 0)
        add_item(span, SPAN_TRACESTATE, STR(""), str_slice(state, 0, length));
}

void span_add_text(struct span *span, struct str key, struct str value)
{
    add_item(span, SPAN_TEXT, key, str_slice(value, 0, LIMIT_SPAN_TEXT));
}

void span_add_number(struct span *span, struct str key, uint64_t value)
{
    char bytes[sizeof(value)];

    memcpy(bytes, &value, sizeof(value));
    add_item(span, SPAN_NUMBER, key, str_of(bytes, sizeof(bytes)));
}

bool span_next(const struct span *span, size_t *at, struct span_item *out_item)
{
    size_t end = span->length < sizeof(span->items) ? span->length : sizeof(span->items);
    const char *item = span->items + *at;
    size_t key_length;
    uint16_t length;

    if (*at > end || end - *at < ITEM_HEAD)
        return false;
    key_length = (unsigned char)item[1];
    memcpy(&length, item + 2, sizeof(length));
    if (key_length + length > end - *at - ITEM_HEAD || (unsigned char)item[0] > SPAN_NUMBER ||
        (item[0] == SPAN_NUMBER && length != sizeof(out_item->number)))
        return false;
    *out_item = (struct span_item){.kind = (enum span_item_kind)item[0],
                                   .key = str_of(item + ITEM_HEAD, key_length),
                                   .text = str_of(item + ITEM_HEAD + key_length, length)};
    if (out_item->kind == SPAN_NUMBER)
        memcpy(&out_item->number, out_item->text.data, sizeof(out_item->number));
    *at += ITEM_HEAD + key_length + length;
    return true;
}

static bool is_zero(const uint8_t *id, size_t length)
{
    uint8_t any = 0;

    for (size_t i = 0; i < length; i++)
        any |= id[i];
    return any == 0;
}

bool span_is_valid(const struct span *span)
{
    struct span_item item;
    size_t at = 0, after_name;

    if (!span_next(span, &at, &item) || item.kind != SPAN_NAME || !str_empty(item.key))
        return false;
    after_name = at;
    for (size_t start = at; span_next(span, &at, &item); start = at) {
        bool is_state = item.kind == SPAN_TRACESTATE;

        if (item.kind == SPAN_NAME || str_empty(item.key) != is_state || (is_state && start != after_name))
            return false;
    }
    return at == span->length && !is_zero(span->trace_id, sizeof(span->trace_id)) &&
           !is_zero(span->span_id, sizeof(span->span_id)) && span->start_ns <= span->end_ns;
}
