/*
 * Escapes text for HTML.
 */
#include "server/page/html.h"

#include "base/utf8.h"

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
        size_t length = utf8_length(text);
        struct str sign = length ? escape_of(text.data[0]) : STR("\357\277\275");

        error = buffer_append(out, sign.data ? sign : str_slice(text, 0, length));
        text = str_skip(text, length ? length : 1);
    }
    return error;
}
