/*
 * Control bytes in values are replaced; an invalid name is an error.
 */
#include "http/sendable.h"

#include "http/h1_parse.h"

#include <errno.h>

/* Replaces control bytes by spaces (RFC 9110 5.5), or percent-encodes them in a URL. data NULL: out of memory. */
static struct str replace_control_bytes(struct arena *arena, const struct header *field)
{
    bool url = str_equal_nocase(field->name, STR("Location"));
    char *text = arena_zalloc(arena, field->value.length + 1, 3);
    char *at = text;

    for (size_t i = 0; text && i < field->value.length; i++) {
        struct str byte = str_slice(field->value, i, i + 1);

        if (h1_is_value(byte)) {
            *at++ = byte.data[0];
        } else if (url) {
            *at++ = '%';
            *at++ = "0123456789ABCDEF"[(byte.data[0] >> 4) & 15];
            *at++ = "0123456789ABCDEF"[byte.data[0] & 15];
        } else {
            *at++ = ' ';
        }
    }
    return str_of(text, text ? (size_t)(at - text) : 0);
}

int headers_make_sendable(struct headers *headers, struct arena *arena, struct str *out_fault)
{
    for (unsigned i = 0; i < headers->count; i++) {
        struct header *field = &headers->items[i];

        if (!h1_is_token(field->name)) {
            *out_fault = field->name;
            return -EINVAL;
        }
        if (h1_is_value(field->value))
            continue;
        *out_fault = arena_join(arena, (const struct str[]){STR("a control byte in "), field->name}, 2);
        field->value = replace_control_bytes(arena, field);
        if (!out_fault->data || !field->value.data)
            return -ENOMEM;
    }
    return 0;
}
