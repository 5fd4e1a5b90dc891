/*
 * The parser reads from `rest`; the first fault ends it.
 */
#include "control/json_object.h"

#include <errno.h>

struct json_reader {
    struct arena *arena;
    struct str rest;
    const char *reason;             /* NULL: no fault */
    bool out_of_memory;
};

static bool fail_reader(struct json_reader *reader, const char *reason)
{
    if (!reader->reason)
        reader->reason = reason;
    return false;
}

static void skip_space(struct json_reader *reader)
{
    while (reader->rest.length > 0 && strchr(" \t\r\n", reader->rest.data[0]) && reader->rest.data[0])
        reader->rest = str_skip(reader->rest, 1);
}

/* Skips white space, then the byte if it follows. */
static bool accept_byte(struct json_reader *reader, char byte)
{
    skip_space(reader);
    if (reader->rest.length == 0 || reader->rest.data[0] != byte)
        return false;
    reader->rest = str_skip(reader->rest, 1);
    return true;
}

static bool read_hex(struct json_reader *reader, unsigned *out_unit)
{
    unsigned unit = 0;

    for (size_t i = 0; i < 4; i++) {
        int digit = i < reader->rest.length ? str_hex_digit(reader->rest.data[i]) : -1;

        if (digit < 0)
            return fail_reader(reader, "four hexadecimal digits are expected");
        unit = unit * 16 + (unsigned)digit;
    }
    reader->rest = str_skip(reader->rest, 4);
    *out_unit = unit;
    return true;
}

static size_t append_utf8(char *out, unsigned code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* The digits after \u, and the second half of a surrogate pair. NUL is refused: it ends texts of C. */
static bool read_code(struct json_reader *reader, char *out, size_t *length)
{
    unsigned code;
    unsigned low;

    if (!read_hex(reader, &code))
        return false;
    if (code >= 0xd800 && code < 0xdc00 && str_starts(reader->rest, STR("\\u"))) {
        reader->rest = str_skip(reader->rest, 2);
        if (!read_hex(reader, &low))
            return false;
        code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xd800;
    }
    if (code == 0 || (code >= 0xd800 && code < 0xe000))
        return fail_reader(reader, "this is not a character");
    *length += append_utf8(out + *length, code);
    return true;
}

static bool read_escape(struct json_reader *reader, char *out, size_t *length)
{
    static const char names[] = "\"\\/bfnrt";
    static const char bytes[] = "\"\\/\b\f\n\r\t";
    const char *found;
    char name;

    if (reader->rest.length == 0)
        return fail_reader(reader, "the text has no end");
    name = reader->rest.data[0];
    found = name ? strchr(names, name) : NULL;
    if (!found && name != 'u')
        return fail_reader(reader, "there is no such escape sequence");
    reader->rest = str_skip(reader->rest, 1);
    if (!found)
        return read_code(reader, out, length);
    out[(*length)++] = bytes[found - names];
    return true;
}

/* After the opening quotation mark. A decoded text is no longer than the rest. */
static bool read_text(struct json_reader *reader, struct str *out_text)
{
    char *out = arena_alloc(reader->arena, reader->rest.length + 1);
    size_t length = 0;

    if (!out) {
        reader->out_of_memory = true;
        return fail_reader(reader, "out of memory");
    }
    while (reader->rest.length > 0) {
        char c = reader->rest.data[0];

        if ((unsigned char)c < ' ')
            return fail_reader(reader, "a text has no control characters; write \\n and \\u0001");
        reader->rest = str_skip(reader->rest, 1);
        if (c == '"') {
            *out_text = str_of(out, length);
            return true;
        }
        if (c != '\\')
            out[length++] = c;
        else if (!read_escape(reader, out, &length))
            return false;
    }
    return fail_reader(reader, "the text has no end");
}

static size_t count_digits(struct str text)
{
    size_t count = 0;

    while (count < text.length && text.data[count] >= '0' && text.data[count] <= '9')
        count++;
    return count;
}

/* Returns the length of the number at the start of `text`; 0: there is none (RFC 8259 6). */
static size_t number_length(struct str text)
{
    size_t at = str_starts(text, STR("-"));
    size_t digits = count_digits(str_skip(text, at));

    if (digits == 0 || (digits > 1 && text.data[at] == '0'))
        return 0;
    at += digits;
    if (at < text.length && text.data[at] == '.') {
        digits = count_digits(str_skip(text, at + 1));
        if (digits == 0)
            return 0;
        at += 1 + digits;
    }
    if (at < text.length && (text.data[at] == 'e' || text.data[at] == 'E')) {
        at += 1;
        at += at < text.length && (text.data[at] == '+' || text.data[at] == '-');
        digits = count_digits(str_skip(text, at));
        at = digits == 0 ? 0 : at + digits;
    }
    return at;
}

static bool read_value(struct json_reader *reader, struct json_member *member)
{
    static const struct {
        const char *word;
        enum json_kind kind;
    } words[] = {{"true", JSON_SWITCH}, {"false", JSON_SWITCH}, {"null", JSON_NULL}};
    size_t length;

    if (accept_byte(reader, '"')) {
        member->kind = JSON_TEXT;
        return read_text(reader, &member->text);
    }
    member->kind = JSON_NUMBER;
    length = number_length(reader->rest);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (!str_starts(reader->rest, str_from(words[i].word)))
            continue;
        member->kind = words[i].kind;
        length = strlen(words[i].word);
    }
    if (length == 0)
        return fail_reader(reader, "a text in quotation marks, a number, true or false is expected");
    member->text = str_slice(reader->rest, 0, length);
    reader->rest = str_skip(reader->rest, length);
    return true;
}

static bool read_member(struct json_reader *reader, struct json_object *out)
{
    struct json_member *member = &out->members[out->count];

    if (out->count == JSON_MEMBERS_MAX)
        return fail_reader(reader, "the object has too many members");
    if (!accept_byte(reader, '"'))
        return fail_reader(reader, "a name in quotation marks is expected");
    if (!read_text(reader, &member->name))
        return false;
    for (size_t i = 0; i < out->count; i++) {
        if (str_equal(out->members[i].name, member->name))
            return fail_reader(reader, "the name before is used twice");
    }
    out->count++;
    return accept_byte(reader, ':') ? read_value(reader, member) : fail_reader(reader, "a colon is expected");
}

static bool read_object(struct json_reader *reader, struct json_object *out)
{
    if (!accept_byte(reader, '{'))
        return fail_reader(reader, "{ is expected");
    if (!accept_byte(reader, '}')) {
        do {
            if (!read_member(reader, out))
                return false;
        } while (accept_byte(reader, ','));
        if (!accept_byte(reader, '}'))
            return fail_reader(reader, "a comma or } is expected");
    }
    skip_space(reader);
    return reader->rest.length == 0 || fail_reader(reader, "the end is expected");
}

int json_object_parse(struct arena *arena, struct str text, struct json_object *out, struct json_fault *out_fault)
{
    struct json_reader reader = {.arena = arena, .rest = text};
    struct json_object object = {.count = 0};

    if (!read_object(&reader, &object)) {
        *out_fault = (struct json_fault){reader.reason, text.length - reader.rest.length + 1};
        return reader.out_of_memory ? -ENOMEM : -EINVAL;
    }
    *out = object;
    return 0;
}
