/*
 * Bodies of requests to the control socket: an object that is accepted has the same members after it is written and
 * read again, and ends with its last byte, so that no shorter text is accepted. A fault is at a byte of the text or its
 * end.
 */
#include "fuzz.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "conf/template.h"
#include "control/json_object.h"

#include <errno.h>

static bool is_utf8(struct str text)
{
    while (text.length > 0) {
        size_t length = utf8_length(text);

        if (length == 0)
            return false;
        text = str_skip(text, length);
    }
    return true;
}

static void append(struct buffer *out, struct str text)
{
    HOLDS(buffer_append(out, text) == 0);
}

static void append_text(struct buffer *out, struct str text)
{
    append(out, STR("\""));
    HOLDS(template_escape_json(out, text) == 0);
    append(out, STR("\""));
}

static void write_object(const struct json_object *object, struct buffer *out)
{
    append(out, STR("{"));
    for (size_t i = 0; i < object->count; i++) {
        const struct json_member *member = &object->members[i];

        append(out, i > 0 ? STR(",") : STR(""));
        append_text(out, member->name);
        append(out, STR(":"));
        if (member->kind == JSON_TEXT)
            append_text(out, member->text);
        else
            append(out, member->text);
    }
    append(out, STR("}"));
}

/* JSON is UTF-8 (RFC 8259 8.1); the writer replaces other bytes. */
static bool can_be_written(const struct json_object *object)
{
    for (size_t i = 0; i < object->count; i++) {
        if (!is_utf8(object->members[i].name) || !is_utf8(object->members[i].text))
            return false;
    }
    return true;
}

static void check_written(struct arena *arena, const struct json_object *object)
{
    struct json_object again;
    struct json_fault fault;
    struct buffer out = {0};

    if (!can_be_written(object))
        return;
    write_object(object, &out);
    HOLDS(json_object_parse(arena, buffer_str(&out), &again, &fault) == 0 && again.count == object->count);
    for (size_t i = 0; i < again.count; i++) {
        HOLDS(str_equal(again.members[i].name, object->members[i].name));
        HOLDS(again.members[i].kind == object->members[i].kind);
        HOLDS(str_equal(again.members[i].text, object->members[i].text));
    }
    buffer_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct str text = str_of((const char *)bytes, size);
    struct json_object object, shorter;
    struct json_fault fault;
    struct arena arena;
    int result;

    if (size > LIMIT_CONTROL_REQUEST)
        return 0;
    arena_init(&arena, NULL, 0);
    result = json_object_parse(&arena, text, &object, &fault);
    if (result == 0) {
        HOLDS(object.count <= JSON_MEMBERS_MAX);
        check_written(&arena, &object);
        while (!str_ends(text, STR("}")))
            text.length--;
        text.length--;
        HOLDS(json_object_parse(&arena, text, &shorter, &fault) == -EINVAL);
    }
    if (result < 0)
        HOLDS(result == -EINVAL && fault.reason && fault.at >= 1 && fault.at <= size + 1);
    arena_reset(&arena);
    return 0;
}
