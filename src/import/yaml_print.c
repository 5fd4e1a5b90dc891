/*
 * Prints the YAML of an import. conf_print_tree quotes the scalars, so that the loader reads the same texts.
 */
#include "import/yaml_builder.h"

#include "base/utf8.h"
#include "conf/conf_schema.h"
#include "conf/source_text.h"

#include <errno.h>

struct printer {
    struct buffer *out;
    unsigned line; /* current line */
};

static int end_line(struct printer *printer)
{
    printer->line++;
    return buffer_append(printer->out, STR("\n"));
}

static int indent_print(struct printer *printer, unsigned indent)
{
    return buffer_printf(printer->out, "%*s", (int)indent, "");
}

int yaml_builder_print_text(struct buffer *out, struct str text)
{
    int error = 0;

    for (size_t at = 0; at < text.length && error == 0;) {
        uint32_t code = 0;
        size_t length = utf8_decode(str_skip(text, at), &code);
        bool odd = length == 0 || !source_allowed(code) || code == '\n' || code == '\r';

        length = length ? length : 1;
        error = buffer_append(out, odd ? STR("?") : str_slice(text, at, at + length));
        at += length;
    }
    return error;
}

/* "# text", with or without the sign in the original. */
static int comment_print(struct printer *printer, struct str comment)
{
    struct str text = str_skip(comment, str_starts(comment, STR("#")));
    bool spaced = str_empty(text) || text.data[0] == ' ' || text.data[0] == '#';
    int error = buffer_append(printer->out, spaced ? STR("#") : STR("# "));

    return error == 0 ? yaml_builder_print_text(printer->out, text) : error;
}

static int comments_print(struct printer *printer, struct str comments, unsigned indent)
{
    int error = 0;

    while (comments.data && error == 0) {
        struct str line = str_cut(&comments, '\n');

        error = indent_print(printer, indent);
        if (error == 0)
            error = comment_print(printer, line);
        if (error == 0)
            error = end_line(printer);
    }
    return error;
}

static int trailing_comment_print(struct printer *printer, struct str comment)
{
    int error = 0;

    if (comment.data) {
        error = buffer_append(printer->out, STR(" "));
        if (error == 0)
            error = comment_print(printer, comment);
    }
    return error == 0 ? end_line(printer) : error;
}

static int scalar_print(struct printer *printer, struct str text)
{
    struct conf_node node = {.kind = CONF_SCALAR, .text = text};
    int error = conf_print_tree(&node, printer->out);

    if (error == 0)
        printer->out->length--; /* removes the line end: a comment may follow */
    return error;
}

/* Prints an omitted directive as a comment at its position, without the contents of its block. */
static int omitted_print(struct printer *printer, const struct yaml_builder *builder, unsigned indent)
{
    const struct nginx_directive *origin = builder->origin;
    int error = comments_print(printer, builder->comments_above, indent);

    if (error == 0)
        error = indent_print(printer, indent);
    if (error == 0)
        error = buffer_append(printer->out, STR("# not carried over: "));
    if (error == 0)
        error = yaml_builder_print_text(printer->out, origin ? origin->name : builder->key);
    for (size_t i = 0; origin && i < origin->count && error == 0; i++) {
        error = buffer_append(printer->out, STR(" "));
        if (error == 0)
            error = yaml_builder_print_text(printer->out, origin->words[i]);
    }
    if (error == 0 && origin && origin->block)
        error = buffer_append(printer->out, STR(" { }"));
    return error == 0 ? end_line(printer) : error;
}

static const struct yaml_builder *only_child(const struct yaml_builder *list)
{
    const struct yaml_builder *only = NULL;

    for (const struct yaml_builder *child = list->first; child; child = child->next) {
        if (only || child->omitted)
            return NULL;
        only = child;
    }
    return only;
}

static bool has_printed_child(const struct yaml_builder *builder)
{
    for (const struct yaml_builder *child = builder->first; child; child = child->next) {
        if (yaml_builder_has_output(child))
            return true;
    }
    return false;
}

bool yaml_builder_has_output(const struct yaml_builder *builder)
{
    if (builder->omitted)
        return false;
    if (builder->kind == YAML_BUILDER_TEXT || builder->origin)
        return true;
    return has_printed_child(builder);
}

static int children_print(struct printer *printer, struct yaml_builder *builder, unsigned indent, bool inline_start);

/* The only text of a list, printed on the line of the key; NULL: another kind of list. */
static const struct yaml_builder *only_text(const struct yaml_builder *builder)
{
    const struct yaml_builder *only = builder->kind == YAML_BUILDER_LIST ? only_child(builder) : NULL;

    return only && only->kind == YAML_BUILDER_TEXT ? only : NULL;
}

static int comments_above_print(struct printer *printer, const struct yaml_builder *child, unsigned indent)
{
    const struct yaml_builder *only = only_text(child);
    int error = comments_print(printer, child->comments_above, indent);

    return error == 0 && only ? comments_print(printer, only->comments_above, indent) : error;
}

static bool has_comments_above(const struct yaml_builder *child)
{
    const struct yaml_builder *only = only_text(child);

    return child->comments_above.data || (only && only->comments_above.data);
}

/* Prints the part after "key:" or "-" on the current line. */
static int value_print(struct printer *printer, struct yaml_builder *builder, unsigned indent)
{
    struct yaml_builder *only = (struct yaml_builder *)(uintptr_t)only_text(builder);
    int error;

    if (only) {
        only->line = only->last_line = printer->line;
        builder = only;
    }
    if (builder->kind != YAML_BUILDER_TEXT && has_printed_child(builder)) {
        error = trailing_comment_print(printer, builder->comment_beside);
        return error == 0 ? children_print(printer, builder, indent + 2, false) : error;
    }
    error = buffer_append(printer->out, STR(" "));
    if (error == 0)
        error = builder->kind == YAML_BUILDER_TEXT
                    ? scalar_print(printer, builder->text)
                    : buffer_append(printer->out, builder->kind == YAML_BUILDER_MAP ? STR("{}") : STR("[]"));
    if (error == 0)
        error = trailing_comment_print(printer, builder->comment_beside);
    /* Prints the comments of a block without directives. */
    return error == 0 && builder->kind != YAML_BUILDER_TEXT ? children_print(printer, builder, indent + 2, false)
                                                   : error;
}

static int item_print(struct printer *printer, struct yaml_builder *builder, unsigned indent)
{
    int error = buffer_append(printer->out, STR("-"));

    if (error == 0 && builder->kind == YAML_BUILDER_MAP && has_printed_child(builder) &&
        !has_comments_above(builder->first) && !builder->comment_beside.data &&
        yaml_builder_has_output(builder->first)) {
        error = buffer_append(printer->out, STR(" "));
        return error == 0 ? children_print(printer, builder, indent + 2, true) : error;
    }
    return error == 0 ? value_print(printer, builder, indent) : error;
}

static int pair_print(struct printer *printer, struct yaml_builder *builder, unsigned indent)
{
    bool simple = builder->key.length <= 240;
    int error = simple ? 0 : buffer_append(printer->out, STR("? "));

    if (error == 0)
        error = scalar_print(printer, builder->key);
    if (error == 0 && !simple) {
        error = end_line(printer);
        if (error == 0)
            error = indent_print(printer, indent);
    }
    if (error == 0)
        error = buffer_append(printer->out, STR(":"));
    return error == 0 ? value_print(printer, builder, indent) : error;
}

/* Prints the children. inline_start: the line of the first child has already begun. */
static int children_print(struct printer *printer, struct yaml_builder *builder, unsigned indent, bool inline_start)
{
    int error = 0;

    for (struct yaml_builder *child = builder->first; child && error == 0; child = child->next) {
        if (child->omitted) {
            error = omitted_print(printer, child, indent);
            continue;
        }
        if (!yaml_builder_has_output(child)) {
            child->line = child->last_line = 0;
            error = comments_print(printer, child->comments_above, indent);
            if (error == 0)
                error = children_print(printer, child, indent, false);
            continue;
        }
        if (!inline_start) {
            error = comments_above_print(printer, child, indent);
            if (error == 0)
                error = indent_print(printer, indent);
        }
        inline_start = false;
        child->line = printer->line;
        if (error == 0)
            error = builder->kind == YAML_BUILDER_MAP ? pair_print(printer, child, indent)
                                             : item_print(printer, child, indent);
        child->last_line = printer->line - 1;
    }
    return error == 0 ? comments_print(printer, builder->comments_below, indent) : error;
}

int yaml_builder_print(struct yaml_builder *root, struct buffer *out)
{
    struct printer printer = {.out = out, .line = 1};

    for (size_t i = 0; i < out->length; i++)
        printer.line += out->data[i] == '\n';
    return children_print(&printer, root, 0, false) < 0 ? -ENOMEM : 0;
}
