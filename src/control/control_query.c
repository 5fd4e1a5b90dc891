/*
 * Parameters of a request in its query component.
 */
#include "control/control.h"

#include "http/pairs.h"

#include <inttypes.h>

/* Decodes percent-encoding in place. -1: malformed. */
static int decode_percent(char *text, size_t *length)
{
    size_t to = 0;

    for (size_t i = 0; i < *length; i++) {
        int high, low;

        if (text[i] != '%') {
            text[to++] = text[i];
            continue;
        }
        high = *length - i > 2 ? str_hex_digit(text[i + 1]) : -1;
        low = high >= 0 ? str_hex_digit(text[i + 2]) : -1;
        if (low < 0)
            return -1;
        text[to++] = (char)(high << 4 | low);
        i += 2;
    }
    *length = to;
    return 0;
}

int control_query_text(struct control_call *call, const char *name, struct str *out)
{
    struct str value = query_find(call->x->request.query, str_from(name));
    size_t length = value.length;
    char *copy;

    if (!value.data)
        return 200;
    copy = arena_alloc(&call->x->arena, length + 1);
    if (!copy)
        return control_fail(call, 500, "out of memory");
    memcpy(copy, value.data, length);
    if (decode_percent(copy, &length) < 0)
        return control_fail(call, 400, "the parameter \"%s\" has an invalid percent-encoding", name);
    *out = str_of(copy, length);
    return 200;
}

int control_query_number(struct control_call *call, const char *name, uint64_t high, uint64_t *out)
{
    struct str value = query_find(call->x->request.query, str_from(name));
    uint64_t number;

    if (!value.data)
        return 200;
    if (str_to_u64(value, &number) < 0 || number > high)
        return control_fail(call, 400, "the parameter \"%s\" is a number from 0 to %" PRIu64, name, high);
    *out = number;
    return 200;
}
