/*
 * Targeted cache control (RFC 9213): an RFC 9651 Dictionary (4.2.2), parsed strictly. A malformed field is ignored
 * as a whole.
 */
#include "http/cache_control.h"

#include "base/limits.h"
#include "http/h1_parse.h"

#include <errno.h>

enum kind { KIND_FALSE, KIND_TRUE, KIND_INTEGER, KIND_OTHER };

struct member {
    struct str name;
    enum kind kind;
    struct str text;                /* of the value */
};

struct dictionary {
    struct member members[LIMIT_TARGETED_MEMBERS];
    size_t count;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_alpha(char c)
{
    return is_lower(str_lower(c));
}

static char first_of(struct str text)
{
    return text.length ? text.data[0] : '\0';
}

static void skip_spaces(struct str *rest, bool tabs)
{
    while (first_of(*rest) == ' ' || (tabs && first_of(*rest) == '\t'))
        *rest = str_skip(*rest, 1);
}

static bool parse_key(struct str *rest, struct str *out)
{
    size_t length = 0;

    if (!is_lower(first_of(*rest)) && first_of(*rest) != '*')
        return false;
    while (length < rest->length && (is_lower(rest->data[length]) || is_digit(rest->data[length]) ||
                                     str_find(STR("_-.*"), rest->data[length]) >= 0))
        length++;
    *out = str_slice(*rest, 0, length);
    *rest = str_skip(*rest, length);
    return true;
}

static bool parse_string(struct str *rest)
{
    for (size_t i = 1; i < rest->length; i++) {
        char c = rest->data[i];

        if (c == '"') {
            *rest = str_skip(*rest, i + 1);
            return true;
        }
        if (c < 0x20 || c > 0x7e)
            return false;
        if (c == '\\' && (++i == rest->length || (rest->data[i] != '"' && rest->data[i] != '\\')))
            return false;
    }
    return false;
}

/* Parses an Integer of at most 15 digits, or a Decimal of at most 12 digits and three decimals. */
static bool parse_number(struct str *rest, enum kind *out_kind)
{
    size_t sign = first_of(*rest) == '-', at = sign, point;

    while (at < rest->length && is_digit(rest->data[at]))
        at++;
    point = at;
    if (point == sign || point - sign > 15)
        return false;
    *out_kind = KIND_INTEGER;
    if (at < rest->length && rest->data[at] == '.') {
        for (at++; at < rest->length && is_digit(rest->data[at]); at++)
            ;
        if (point - sign > 12 || at - point < 2 || at - point > 4)
            return false;
        *out_kind = KIND_OTHER;
    }
    *rest = str_skip(*rest, at);
    return true;
}

static bool parse_token(struct str *rest)
{
    size_t length = 1;

    while (length < rest->length && (h1_is_token(str_slice(*rest, length, length + 1)) ||
                                     rest->data[length] == ':' || rest->data[length] == '/'))
        length++;
    *rest = str_skip(*rest, length);
    return true;
}

static bool parse_bytes(struct str *rest)
{
    for (size_t i = 1; i < rest->length; i++) {
        char c = rest->data[i];

        if (c == ':') {
            *rest = str_skip(*rest, i + 1);
            return true;
        }
        if (!is_alpha(c) && !is_digit(c) && c != '+' && c != '/' && c != '=')
            return false;
    }
    return false;
}

static bool parse_boolean(struct str *rest, enum kind *out_kind)
{
    if (rest->length < 2 || (rest->data[1] != '0' && rest->data[1] != '1'))
        return false;
    *out_kind = rest->data[1] == '1' ? KIND_TRUE : KIND_FALSE;
    *rest = str_skip(*rest, 2);
    return true;
}

static bool parse_item(struct str *rest, enum kind *out_kind)
{
    char c = first_of(*rest);

    *out_kind = KIND_OTHER;
    if (c == '"')
        return parse_string(rest);
    if (c == '-' || is_digit(c))
        return parse_number(rest, out_kind);
    if (c == ':')
        return parse_bytes(rest);
    if (c == '?')
        return parse_boolean(rest, out_kind);
    return (is_alpha(c) || c == '*') && parse_token(rest);
}

/* Parameters are ignored, but must be well-formed. */
static bool parse_parameters(struct str *rest)
{
    struct str key;
    enum kind kind;

    while (first_of(*rest) == ';') {
        *rest = str_skip(*rest, 1);
        skip_spaces(rest, false);
        if (!parse_key(rest, &key))
            return false;
        if (first_of(*rest) != '=')
            continue;
        *rest = str_skip(*rest, 1);
        if (!parse_item(rest, &kind))
            return false;
    }
    return true;
}

static bool parse_inner_list(struct str *rest)
{
    enum kind kind;

    *rest = str_skip(*rest, 1);
    for (;;) {
        skip_spaces(rest, false);
        if (first_of(*rest) == ')') {
            *rest = str_skip(*rest, 1);
            return true;
        }
        if (!parse_item(rest, &kind) || !parse_parameters(rest))
            return false;
        if (first_of(*rest) != ' ' && first_of(*rest) != ')')
            return false;
    }
}

static bool parse_member(struct str *rest, struct member *out)
{
    struct str value;

    *out = (struct member){.kind = KIND_TRUE};
    if (!parse_key(rest, &out->name))
        return false;
    if (first_of(*rest) != '=')
        return parse_parameters(rest);
    *rest = value = str_skip(*rest, 1);
    out->kind = KIND_OTHER;
    if (first_of(*rest) == '(' ? !parse_inner_list(rest) : !parse_item(rest, &out->kind))
        return false;
    out->text = str_slice(value, 0, value.length - rest->length);
    return parse_parameters(rest);
}

/* The last member of a name replaces earlier ones. */
static bool add_member(struct dictionary *dictionary, const struct member *member)
{
    for (size_t i = 0; i < dictionary->count; i++) {
        if (str_equal(dictionary->members[i].name, member->name)) {
            dictionary->members[i] = *member;
            return true;
        }
    }
    if (dictionary->count == LIMIT_TARGETED_MEMBERS)
        return false;
    dictionary->members[dictionary->count++] = *member;
    return true;
}

static bool parse_line(struct str rest, struct dictionary *dictionary)
{
    struct member member;

    rest = str_trim(rest);
    while (!str_empty(rest)) {
        if (!parse_member(&rest, &member) || !add_member(dictionary, &member))
            return false;
        skip_spaces(&rest, true);
        if (str_empty(rest))
            return true;
        if (first_of(rest) != ',')
            return false;
        rest = str_skip(rest, 1);
        skip_spaces(&rest, true);
        if (str_empty(rest)) /* trailing comma */
            return false;
    }
    return true;
}

/* A value of another type than Integer counts as invalid. */
static void record_member(struct cache_control *out, const struct member *member)
{
    if (member->kind == KIND_FALSE)
        return;
    cache_control_add(out, CACHE_OF_RESPONSE, member->name, member->kind == KIND_INTEGER ? member->text : STR(""),
                       member->kind != KIND_TRUE);
}

int cache_control_read_targeted(const struct headers *headers, struct str name, struct cache_control *out)
{
    const struct header *field = headers_find(headers, name);
    struct dictionary dictionary;

    dictionary.count = 0;
    for (; field; field = headers_next(headers, name, field)) {
        if (!parse_line(field->value, &dictionary))
            return -EINVAL;
    }
    if (dictionary.count == 0)
        return -ENOENT;
    cache_control_clear(out);
    for (size_t i = 0; i < dictionary.count; i++)
        record_member(out, &dictionary.members[i]);
    return 0;
}
