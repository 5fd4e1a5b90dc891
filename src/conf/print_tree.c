/*
 * Prints a tree as YAML (-T): block style, scalars quoted where needed, so that loading the output gives the same
 * tree.
 */
#include "base/utf8.h"
#include "conf/conf_schema.h"
#include "conf/environment.h"
#include "conf/source_text.h"

#define SIMPLE_KEY_MAX 240 /* libyaml accepts keys of up to 1024 characters; escapes may lengthen them */

static bool plain_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("/._$^~=+(\\", c));
}

/* True if no character needs an escape. */
static bool is_printable(struct str text)
{
    uint32_t code;

    for (size_t at = 0, length; at < text.length; at += length) {
        length = utf8_decode(str_skip(text, at), &code);
        if (length == 0 || !source_allowed(code))
            return false;
    }
    return true;
}

static bool plain_safe(struct str text)
{
    if (!text.length || !plain_start(text.data[0]) || str_starts(text, STR("...")) ||
        str_equal(text, STR("=")) || str_equal(text, STR("include"))) /* a keyword of the loader */
        return false;
    for (size_t i = 0; i < text.length; i++) {
        char c = text.data[i];
        bool last = i + 1 == text.length;

        if ((unsigned char)c < 32 || c == 127)
            return false;
        if (c == ' ' && (last || text.data[i + 1] == '#' || text.data[i + 1] == ' '))
            return false;
        if (c == ':' && (last || text.data[i + 1] == ' '))
            return false;
    }
    return is_printable(text);
}

static bool needs_double(struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.data[i];

        /* U+0080 to U+009F, U+2028, U+2029, and U+FEFF and above are not allowed unescaped */
        if (c < 32 || c == 127 || c == 0xC2 || c == 0xE2 || c == 0xEF)
            return true;
    }
    return false;
}

static int double_byte(struct str text, size_t *at, struct buffer *out)
{
    const unsigned char *b = (const unsigned char *)text.data + *at;
    size_t left = text.length - *at;

    if (b[0] == '"' || b[0] == '\\')
        return buffer_printf(out, "\\%c", b[0]);
    if (b[0] < 32 || b[0] == 127)
        return buffer_printf(out, "\\x%02X", b[0]);
    if (b[0] == 0xC2 && left > 1 && b[1] < 0xA0) {
        *at += 1;
        return buffer_printf(out, "\\x%02X", b[1]);
    }
    if ((b[0] == 0xE2 || b[0] == 0xEF) && left > 2) {
        *at += 2;
        return buffer_printf(out, "\\u%04X", (unsigned)((b[0] & 15) << 12 | (b[1] & 63) << 6 | (b[2] & 63)));
    }
    return buffer_append(out, str_of((const char *)b, 1));
}

/* Prints a quoted text, with an additional "$" before "${NAME}", so that the loader does not expand it again. */
static int quoted_print(struct str text, struct buffer *out)
{
    bool in_double = needs_double(text);
    int error = buffer_append(out, in_double ? STR("\"") : STR("'"));
    size_t behind = 0;

    for (size_t at = 0; at < text.length && error == 0; at++) {
        size_t length = at >= behind ? environment_reference(str_skip(text, at)) : 0;

        if (length) {
            error = buffer_append(out, STR("$"));
            behind = at + length;
        }
        if (error == 0 && in_double)
            error = double_byte(text, &at, out);
        else if (error == 0)
            error = buffer_append(out, text.data[at] == '\'' ? STR("''") : str_slice(text, at, at + 1));
    }
    return error == 0 ? buffer_append(out, in_double ? STR("\"") : STR("'")) : error;
}

static bool has_reference(struct str text)
{
    for (size_t at = 0; at < text.length; at++) {
        if (environment_reference(str_skip(text, at)))
            return true;
    }
    return false;
}

static int scalar_print(const struct conf_node *node, struct buffer *out)
{
    if (!node->quoted && plain_safe(node->text) && !has_reference(node->text))
        return buffer_append(out, node->text);
    return quoted_print(node->text, out);
}

static int indent_print(unsigned indent, struct buffer *out)
{
    return buffer_printf(out, "%*s", (int)indent, "");
}

static int node_print(const struct conf_node *node, unsigned indent, bool inline_start, struct buffer *out);

/* Prints a value after "key:", on its line or below. */
static int value_print(const struct conf_node *value, unsigned indent, struct buffer *out)
{
    int error = 0;

    if (value->kind != CONF_SCALAR && value->count) {
        error = buffer_append(out, STR("\n"));
        return error == 0 ? node_print(value, indent + 2, false, out) : error;
    }
    if (!value->absent)
        error = buffer_append(out, STR(" "));
    return error == 0 ? node_print(value, indent, true, out) : error;
}

static int pair_print(const struct conf_pair *pair, unsigned indent, struct buffer *out)
{
    bool simple = pair->key->text.length <= SIMPLE_KEY_MAX;
    int error = simple ? 0 : buffer_append(out, STR("? "));

    if (error == 0)
        error = scalar_print(pair->key, out);
    if (error == 0 && !simple)
        error = buffer_printf(out, "\n%*s", (int)indent, "");
    if (error == 0)
        error = buffer_append(out, STR(":"));
    return error == 0 ? value_print(pair->value, indent, out) : error;
}

static int map_print(const struct conf_node *map, unsigned indent, bool inline_start, struct buffer *out)
{
    for (size_t i = 0; i < map->count; i++) {
        int error = i == 0 && inline_start ? 0 : indent_print(indent, out);

        if (error == 0)
            error = pair_print(&map->pairs[i], indent, out);
        if (error < 0)
            return error;
    }
    return 0;
}

static int list_print(const struct conf_node *list, unsigned indent, bool inline_start, struct buffer *out)
{
    for (size_t i = 0; i < list->count; i++) {
        int error = i == 0 && inline_start ? 0 : indent_print(indent, out);

        if (error == 0)
            error = buffer_append(out, list->items[i]->absent ? STR("-") : STR("- "));
        if (error == 0)
            error = node_print(list->items[i], indent + 2, true, out);
        if (error < 0)
            return error;
    }
    return 0;
}

/* Prints a node and ends its line. inline_start: the line has already begun. */
static int node_print(const struct conf_node *node, unsigned indent, bool inline_start, struct buffer *out)
{
    int error = 0;

    if (node->kind == CONF_MAP && node->count)
        return map_print(node, indent, inline_start, out);
    if (node->kind == CONF_LIST && node->count)
        return list_print(node, indent, inline_start, out);
    if (node->kind != CONF_SCALAR)
        error = buffer_append(out, node->kind == CONF_MAP ? STR("{}") : STR("[]"));
    else if (!node->absent)
        error = scalar_print(node, out);
    return error == 0 ? buffer_append(out, STR("\n")) : error;
}

int conf_print_tree(const struct conf_node *node, struct buffer *out)
{
    return node_print(node, 0, true, out);
}
