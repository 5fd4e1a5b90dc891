/*
 * Compiles templates at load: arrays of parts, each a constant or a variable. Constants are joined, and variables are
 * looked up.
 */
#include "conf/template_private.h"

#include "conf/environment.h"

#include <errno.h>

struct compiler {
    struct arena *arena;
    const struct variable_table *table;
    struct template *template;
    char *constant;                 /* the current constant; its memory is as long as the source */
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
