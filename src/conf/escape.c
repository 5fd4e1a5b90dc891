/*
 * The two escapings of a variable's value in an access log. A run of bytes without an escape is appended by one copy.
 */
#include "base/utf8.h"
#include "conf/template.h"

static const char hex_digits[] = "0123456789ABCDEF";

int template_escape_log(struct buffer *out, struct str value)
{
    size_t start = out->length;
    size_t clean = 0;

    for (size_t i = 0; i <= value.length; i++) {
        unsigned char c = i < value.length ? (unsigned char)value.data[i] : 0;
        char escaped[] = {'\\', 'x', hex_digits[c >> 4], hex_digits[c & 15]};
        int error;

        if (i < value.length && c >= 32 && c <= 126 && c != '"' && c != '\\')
            continue;
        error = buffer_append(out, str_slice(value, clean, i));
        if (error == 0 && i < value.length)
            error = buffer_append(out, str_of(escaped, sizeof(escaped)));
        if (error < 0) {
            out->length = start;
            return error;
        }
        clean = i + 1;
    }
    return 0;
}

static struct str json_escape(unsigned char c, char room[6])
{
    static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt";

    if (c >= 0x80)
        return STR("\\ufffd");
    for (size_t i = 0; i + 1 < sizeof(shorts); i += 2) {
        if ((unsigned char)shorts[i] == c) {
            room[0] = '\\';
            room[1] = shorts[i + 1];
            return str_of(room, 2);
        }
    }
    memcpy(room, "\\u00", 4);
    room[4] = hex_digits[c >> 4];
    room[5] = hex_digits[c & 15];
    return str_of(room, 6);
}

int template_escape_json(struct buffer *out, struct str value)
{
    size_t start = out->length;
    size_t clean = 0;
    size_t i = 0;

    while (i <= value.length) {
        bool end = i == value.length;
        unsigned char c = end ? 0 : (unsigned char)value.data[i];
        size_t length = end ? 0 : utf8_length(str_skip(value, i));
        char room[6];
        int error;

        if (!end && length && (length > 1 || (c >= 32 && c != 127 && c != '"' && c != '\\'))) {
            i += length;
            continue;
        }
        error = buffer_append(out, str_slice(value, clean, i));
        if (error == 0 && !end)
            error = buffer_append(out, json_escape(c, room));
        if (error < 0) {
            out->length = start;
            return error;
        }
        clean = ++i;
    }
    return 0;
}
