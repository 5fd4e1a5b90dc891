/*
 * Escapes text for HTML.
 */
#include "server/page/html.h"

size_t html_character_length(struct str text)
{
    unsigned char first = (unsigned char)text.data[0];
    size_t length = first < 0x80                    ? 1
                    : first >= 0xc2 && first < 0xe0 ? 2
                    : first >= 0xe0 && first < 0xf0 ? 3
                    : first >= 0xf0 && first < 0xf5 ? 4
                                                    : 0;

    if (length == 0 || length > text.length)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if (((unsigned char)text.data[i] & 0xc0) != 0x80)
            return 0;
    }
    if (length > 2) {
        unsigned char second = (unsigned char)text.data[1];

        if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
            (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
            return 0;
    }
    return length;
}

static struct str escape_of(char c)
{
    switch (c) {
    case '&':
        return STR("&amp;");
    case '<':
        return STR("&lt;");
    case '>':
        return STR("&gt;");
    case '"':
        return STR("&quot;");
    case '\'':
        return STR("&#39;");
    default:
        return (unsigned char)c < 0x20 || c == 0x7f ? STR("\357\277\275") : (struct str){NULL, 0};
    }
}

int html_append(struct buffer *out, struct str text)
{
    int error = 0;

    while (text.length && error == 0) {
        size_t length = html_character_length(text);
        struct str sign = length ? escape_of(text.data[0]) : STR("\357\277\275");

        error = buffer_append(out, sign.data ? sign : str_slice(text, 0, length));
        text = str_skip(text, length ? length : 1);
    }
    return error;
}
