/*
 * Evaluates templates.
 */
#include "conf/template_private.h"

#include <stdlib.h>

#define STACK_PARTS 32 /* values on the stack; templates with more parts use the arena */

static struct str part_value(const struct template_part *part, const void *subject, struct arena *arena)
{
    if (!part->variable)
        return part->text;
    if (part->subject)
        subject = part->subject(subject);
    return subject ? part->variable->get(subject, part->text, arena) : (struct str){NULL, 0};
}

size_t template_part_count(const struct template *template)
{
    return template->count;
}

struct str template_part(const struct template *template, size_t index, const void *subject, struct arena *arena,
                         bool *out_variable)
{
    *out_variable = template->parts[index].variable != NULL;
    return part_value(&template->parts[index], subject, arena);
}

static struct str values_join(const struct str *values, size_t count, size_t length, struct arena *arena)
{
    char *joined = arena_alloc(arena, length);
    size_t at = 0;

    if (!joined)
        return (struct str){NULL, 0};
    for (size_t i = 0; i < count; i++) {
        if (values[i].length)
            memcpy(joined + at, values[i].data, values[i].length);
        at += values[i].length;
    }
    return str_of(joined, length);
}

struct str template_eval(const struct template *template, const void *subject, struct arena *arena)
{
    struct str stack_values[STACK_PARTS];
    struct str *values = stack_values;
    size_t length = 0;

    if (template->constant)
        return template->text;
    if (template->count == 1) {
        struct str value = part_value(&template->parts[0], subject, arena);

        return value.data ? value : STR("");
    }
    if (template->count > STACK_PARTS)
        values = arena_zalloc(arena, template->count, sizeof(*values));
    if (!values)
        return (struct str){NULL, 0};
    for (size_t i = 0; i < template->count; i++) {
        values[i] = part_value(&template->parts[i], subject, arena);
        if (__builtin_add_overflow(length, values[i].length, &length))
            return (struct str){NULL, 0};
    }
    return values_join(values, template->count, length, arena);
}

static int part_write(const struct template_part *part, const void *subject, struct arena *arena,
                      struct buffer *out, template_escape *escape, struct str absent)
{
    struct str value = part_value(part, subject, arena);

    if (!value.data)
        return buffer_append(out, absent);
    if (part->variable && escape)
        return escape(out, value);
    return buffer_append(out, value);
}

int template_write(const struct template *template, const void *subject, struct arena *arena,
                   struct buffer *out, template_escape *escape, struct str absent)
{
    size_t start = out->length;

    for (size_t i = 0; i < template->count; i++) {
        int error = part_write(&template->parts[i], subject, arena, out, escape, absent);

        if (error < 0) {
            out->length = start;
            return error;
        }
    }
    return 0;
}

static bool is_late(const struct template_part *part)
{
    return part->variable && part->variable->late;
}

/* Copies a template into one block of memory. `text` holds the constants of `parts` one after the other. */
static struct template *template_copy(const struct template_part *parts, size_t count, struct str text)
{
    struct template *made = malloc(sizeof(*made) + count * sizeof(*parts) + text.length);
    char *at;

    if (!made)
        return NULL;
    *made = (struct template){.parts = (struct template_part *)(made + 1), .count = count};
    at = (char *)(made->parts + count);
    made->text = str_of(at, text.length);
    if (text.length)
        memcpy(at, text.data, text.length);
    for (size_t i = 0; i < count; i++) {
        made->parts[i] = parts[i];
        if (parts[i].variable)
            continue;
        made->parts[i].text.data = at;
        at += parts[i].text.length;
    }
    return made;
}

struct template *template_finish(const struct template *template, const void *subject, struct arena *arena,
                                 template_escape *escape, struct str absent)
{
    struct template_part *parts = arena_zalloc(arena, 2 * template->count + 1, sizeof(*parts));
    struct template *made = NULL;
    struct buffer text = {0};
    size_t count = 0, before = 0;

    if (!parts)
        return NULL;
    for (size_t i = 0; i < template->count; i++) {
        const struct template_part *part = &template->parts[i];

        if (!is_late(part) && part_write(part, subject, arena, &text, escape, absent) < 0)
            goto done;
        if (!is_late(part) && i + 1 < template->count)
            continue;
        if (text.length > before)
            parts[count++].text.length = text.length - before;
        before = text.length;
        if (is_late(part))
            parts[count++] = *part;
    }
    made = template_copy(parts, count, buffer_str(&text));
done:
    buffer_finish(&text);
    return made;
}

bool template_constant(const struct template *template)
{
    return template->constant;
}

struct str template_text(const struct template *template)
{
    return template->text;
}

struct str template_front(const struct template *template)
{
    if (template->constant)
        return template->text;
    return template->parts[0].variable ? STR("") : template->parts[0].text;
}
