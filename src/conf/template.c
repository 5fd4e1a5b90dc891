/*
 * Compiles and evaluates templates: arrays of parts, each a constant or a variable. Constants are joined and
 * variables looked up at compile time.
 */
#include "conf/template.h"

#include "conf/environment.h"

#include <errno.h>
#include <stdlib.h>

#define STACK_PARTS 32 /* values on the stack; templates with more parts use the arena */

struct template_part {
    struct str text; /* a constant, or a family's parameter */
    const struct variable *variable;
    const void *(*subject)(const void *subject); /* `part` of the variable's table */
};

struct template
{
    struct str text;
    struct template_part *parts;
    size_t count;
    bool constant;
};

struct compiler {
    struct arena *arena;
    const struct variable_table *table;
    struct template *template;
    char *constant; /* the current constant; its memory is as long as the source */
    size_t length;
    size_t *out_at;
    struct str *out_error;
};

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static size_t name_length(struct str text)
{
    size_t length = 0;

    while (length < text.length && name_char(text.data[length]))
        length++;
    return length;
}

static void constant_close(struct compiler *compiler)
{
    struct template *template = compiler->template;

    if (!compiler->length)
        return;
    template->parts[template->count++] =
        (struct template_part){.text = {compiler->constant, compiler->length}};
    compiler->constant += compiler->length;
    compiler->length = 0;
}

static int unknown_variable(struct compiler *compiler, struct str name)
{
    const char *suggestion = variable_suggestion(compiler->table, name);

    if (name.data[0] >= '0' && name.data[0] <= '9')
        *compiler->out_error = arena_printf(compiler->arena,
                                            "$" STR_FMT " is a capture, but there is no regular expression here",
                                            STR_ARG(name));
    else if (suggestion)
        *compiler->out_error = arena_printf(
            compiler->arena, "unknown variable $" STR_FMT "; did you mean $%s?", STR_ARG(name), suggestion);
    else
        *compiler->out_error = arena_printf(compiler->arena, "unknown variable $" STR_FMT, STR_ARG(name));
    return compiler->out_error->data ? -EINVAL : -ENOMEM;
}

/* Compiles the variable at the start of `rest`, which begins with "$"; *out_taken is the length consumed. */
static int variable_compile(struct compiler *compiler, struct str rest, size_t *out_taken)
{
    struct template *template = compiler->template;
    bool braced = rest.length > 1 && rest.data[1] == '{';
    struct str name = str_skip(rest, braced ? 2 : 1);
    struct str parameter;
    const struct variable *variable;

    name.length = name_length(name);
    /* A capture: "$1st" is the first group followed by "st". */
    if (!braced && name.data[0] >= '0' && name.data[0] <= '9')
        name.length = 1;
    *out_taken = 1 + name.length + (braced ? 2 : 0);
    if (braced && (*out_taken > rest.length || rest.data[*out_taken - 1] != '}')) {
        *compiler->out_error =
            arena_printf(compiler->arena, "the variable that begins here has no closing }");
        return compiler->out_error->data ? -EINVAL : -ENOMEM;
    }
    variable = variable_find(compiler->table, name, &parameter);
    if (!variable)
        return unknown_variable(compiler, name);
    constant_close(compiler);
    /* The parameter of a family points into the caller's text, which the template may outlive. */
    if (variable->prefix)
        parameter = arena_copy(compiler->arena, parameter);
    if (variable->prefix && !parameter.data)
        return -ENOMEM;
    template->parts[template->count++] = (struct template_part){
        parameter, variable, variable_table_of(compiler->table, variable)->part};
    template->constant = false;
    return 0;
}

static bool variable_begins(struct str rest)
{
    size_t at = rest.length > 1 && rest.data[1] == '{' ? 2 : 1;

    return at < rest.length && name_char(rest.data[at]) && !environment_reference(rest);
}

static int parts_compile(struct compiler *compiler, struct str text)
{
    size_t at = 0;

    while (at < text.length) {
        struct str rest = str_skip(text, at);
        size_t taken = 1;

        if (rest.data[0] == '$' && variable_begins(rest)) {
            int error = variable_compile(compiler, rest, &taken);

            if (error < 0) {
                *compiler->out_at = at;
                return error;
            }
        } else {
            compiler->constant[compiler->length++] = rest.data[0];
            if (rest.data[0] == '$' && rest.length > 1 && rest.data[1] == '$')
                taken = 2;
        }
        at += taken;
    }
    constant_close(compiler);
    return 0;
}

/* An upper bound of the parts: each "$" begins at most one variable, and one constant may follow each of them. */
static size_t parts_max(struct str text)
{
    size_t dollars = 0;

    for (size_t i = 0; i < text.length; i++)
        dollars += text.data[i] == '$';
    return 2 * dollars + 1;
}

int template_compile(struct arena *arena, struct str text, const struct variable_table *table,
                     const struct template **out_template, size_t *out_at, struct str *out_error)
{
    struct template *template = arena_zalloc(arena, 1, sizeof(*template));
    struct compiler compiler = {arena, table,  template, arena_alloc(arena, text.length),
                                0,     out_at, out_error};
    int error;

    if (!template || !compiler.constant)
        return -ENOMEM;
    template->constant = true;
    template->text = arena_copy(arena, text);
    template->parts = arena_zalloc(arena, parts_max(text), sizeof(*template->parts));
    if (!template->parts || !template->text.data)
        return -ENOMEM;
    error = parts_compile(&compiler, text);
    if (error < 0)
        return error;
    if (template->constant && template->count)
        template->text = template->parts[0].text;
    *out_template = template;
    return 0;
}

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
