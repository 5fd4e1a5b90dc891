/*
 * The three forms of an environment reference; ":-" and ":?" treat an empty value as unset, as shells do.
 */
#include "conf/environment.h"

#include "base/buffer.h"

#include <errno.h>
#include <stdlib.h>

struct reference {
    struct str name;
    char form;       /* '-', '?', or 0 for "${NAME}" */
    struct str word; /* default or message */
    size_t length;
    bool closed;
};

static size_t upper_name(struct str text)
{
    size_t length = 0;

    while (length < text.length) {
        char c = text.data[length];
        bool upper = c >= 'A' && c <= 'Z';

        if (!upper && (length == 0 || ((c < '0' || c > '9') && c != '_')))
            break;
        length++;
    }
    return length;
}

static bool reference_parse(struct str text, struct reference *out)
{
    struct str rest;
    ssize_t end;

    if (text.length < 3 || text.data[0] != '$' || text.data[1] != '{')
        return false;
    *out = (struct reference){.closed = true};
    rest = str_skip(text, 2);
    out->name = str_slice(rest, 0, upper_name(rest));
    rest = str_skip(rest, out->name.length);
    if (!out->name.length)
        return false;
    if (rest.length >= 1 && rest.data[0] == '}') {
        out->length = out->name.length + 3;
        return true;
    }
    if (rest.length >= 2 && rest.data[0] == ':' && (rest.data[1] == '-' || rest.data[1] == '?'))
        out->form = rest.data[1];
    else if (rest.length)
        return false;
    end = str_find(rest, '}');
    out->closed = end >= 0;
    out->word = str_slice(rest, 2, out->closed ? (size_t)end : rest.length);
    out->length = out->closed ? out->name.length + 2 + (size_t)end + 1 : text.length;
    return true;
}

size_t environment_reference(struct str text)
{
    struct reference reference;

    return reference_parse(text, &reference) ? reference.length : 0;
}

static int report_substitution_error(struct str *out_error, struct str error, struct str *out_hint, struct str hint)
{
    if (!error.data || !hint.data)
        return -ENOMEM;
    *out_error = error;
    *out_hint = hint;
    return -EINVAL;
}

static int reference_value(struct arena *arena, const struct reference *reference, struct str *out_value,
                           struct str *out_error, struct str *out_hint)
{
    struct str name = arena_copy(arena, reference->name);
    const char *value = name.data ? getenv(name.data) : NULL;

    if (!name.data)
        return -ENOMEM;
    if (!reference->closed)
        return report_substitution_error(out_error, arena_printf(arena, "${%s has no closing }", name.data), out_hint,
                                         arena_printf(arena, "write ${%s} or ${%s:-default}", name.data, name.data));
    if (value && (*value || !reference->form)) {
        *out_value = arena_copy(arena, str_from(value));
        return out_value->data ? 0 : -ENOMEM;
    }
    if (reference->form == '-') {
        *out_value = reference->word;
        return 0;
    }
    if (reference->form == '?' && reference->word.length)
        return report_substitution_error(out_error,
                                         arena_printf(arena,
                                                      "the environment variable %s is not set: " STR_FMT,
                                                      name.data, STR_ARG(reference->word)),
                                         out_hint, STR(""));
    return report_substitution_error(
        out_error, arena_printf(arena, "the environment variable %s is not set", name.data), out_hint,
        arena_printf(arena, "set it, or give a default: ${%s:-default}", name.data));
}

static int expand_into(struct arena *arena, struct str text, struct buffer *out, size_t *out_at,
                       struct str *out_error, struct str *out_hint)
{
    size_t at = 0;

    while (at < text.length) {
        struct str rest = str_skip(text, at);
        struct reference reference;
        struct str piece = str_slice(rest, 0, 1);
        size_t taken = 1;
        int error = 0;

        if (rest.data[0] == '$' && environment_reference(str_skip(rest, 1))) {
            taken = 1 + environment_reference(str_skip(rest, 1));
            piece = str_slice(rest, 1, taken);
        } else if (reference_parse(rest, &reference)) {
            taken = reference.length;
            error = reference_value(arena, &reference, &piece, out_error, out_hint);
        }
        if (error == 0)
            error = buffer_append(out, piece);
        if (error < 0) {
            *out_at = at;
            return error;
        }
        at += taken;
    }
    return 0;
}

int environment_expand(struct arena *arena, struct str text, struct str *out_text, size_t *out_at,
                       struct str *out_error, struct str *out_hint)
{
    struct buffer expanded = {0};
    int error;

    if (str_search(text, STR("${")) < 0) {
        *out_text = text;
        return 0;
    }
    error = expand_into(arena, text, &expanded, out_at, out_error, out_hint);
    if (error == 0) {
        *out_text = arena_copy(arena, buffer_str(&expanded));
        error = out_text->data ? 0 : -ENOMEM;
    }
    buffer_finish(&expanded);
    return error;
}
