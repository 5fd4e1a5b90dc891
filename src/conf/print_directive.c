/*
 * Texts about a directive from its row: scopes, value, inheritance, example.
 */
#include "conf/print_directive.h"

static const enum conf_scope all_scopes[] = {
    SCOPE_MAIN,     SCOPE_EVENTS,   SCOPE_HTTP,   SCOPE_SERVER,
    SCOPE_LOCATION, SCOPE_UPSTREAM, SCOPE_STREAM, SCOPE_STREAM_SERVER,
};

int scopes_print(unsigned mask, struct buffer *out)
{
    const char *joint = "";
    int error = 0;

    for (size_t i = 0; i < sizeof(all_scopes) / sizeof(all_scopes[0]) && error == 0; i++) {
        if (!(mask & all_scopes[i]))
            continue;
        error = buffer_printf(out, "%s%s", joint, conf_scope_name(all_scopes[i]));
        joint = ", ";
    }
    return error;
}

static int choices_print(const char *before, const char *const *choices, struct buffer *out)
{
    int error = buffer_printf(out, "%s", before);

    for (size_t i = 0; choices[i] && error == 0; i++)
        error = buffer_printf(out, "%s%s", i ? ", " : "", choices[i]);
    return error;
}

static int number_print(const struct directive *directive, struct buffer *out)
{
    unsigned long long low = directive->low;
    unsigned long long high = directive->high;

    return high ? buffer_printf(out, "a number from %llu to %llu", low, high)
                : buffer_printf(out, "a number, at least %llu", low);
}

static int children_print(const struct directive *children, struct buffer *out)
{
    int error = buffer_printf(out, "a mapping of");

    for (const struct directive *child = children; child->name && error == 0; child++)
        error = buffer_printf(out, "%s %s", child == children ? "" : ",", child->name);
    return error;
}

int value_print(const struct directive *directive, const char *quote, struct buffer *out)
{
    static const char *const words[] = {
        [DIRECTIVE_TEXT] = "a text",
        [DIRECTIVE_PATH] = "a path; a relative one starts at the directory of the file, or at -p",
        [DIRECTIVE_SIZE] = "a size: 512, 4k, 10m, 1g",
        [DIRECTIVE_DURATION] = "a duration: 500ms, 30s, 1h30m",
        [DIRECTIVE_SWITCH] = "on or off",
        [DIRECTIVE_TEMPLATE] = "a text with variables",
        [DIRECTIVE_WORDS] = "words, or a list of them",
        [DIRECTIVE_TEMPLATES] = "words with variables, or a list of them",
    };

    switch (directive->type) {
    case DIRECTIVE_NUMBER:
        return number_print(directive, out);
    case DIRECTIVE_CHOICE:
        return choices_print("one of ", directive->choices, out);
    case DIRECTIVE_FLAGS:
        return choices_print("any of ", directive->choices, out);
    case DIRECTIVE_BLOCK:
        return children_print(directive->children, out);
    case DIRECTIVE_REPEAT:
    case DIRECTIVE_CUSTOM:
        return buffer_printf(out, "%s%s%s%s", quote, directive->syntax ? directive->syntax : "...", quote,
                             directive->type == DIRECTIVE_REPEAT ? ", or a list of these" : "");
    default:
        return buffer_printf(out, "%s", words[directive->type]);
    }
}

const char *inheritance_text(const struct directive *directive)
{
    switch (directive->merge) {
    case MERGE_APPEND:
        return "added to those of outer scopes";
    case MERGE_NONE:
        return "only where it is written";
    default:
        return "inner scopes replace it";
    }
}

int example_print(const struct directive *directive, struct buffer *out)
{
    const char *value = directive->type == DIRECTIVE_SWITCH ? "on" : directive->default_value;

    if (directive->example)
        return buffer_printf(out, "%s", directive->example);
    if (directive->choices && !value)
        value = directive->choices[0];
    if (!value || !*value)
        return buffer_printf(out, "%s: ...", directive->name);
    return buffer_printf(out, "%s: %s", directive->name, value);
}

unsigned block_scopes(const struct conf_schema *schema, const struct block_word *block)
{
    unsigned scopes = block->allowed_in & (conf_schema_scopes(schema) | SCOPE_MAIN);

    for (size_t slot = 0; slot < schema->count; slot++) {
        const struct directive *directives = schema->groups[slot]->directives;

        for (size_t i = 0; directives && directives[i].name; i++) {
            if (strcmp(directives[i].name, block->name) == 0)
                scopes &= ~directives[i].scopes;
        }
    }
    return scopes;
}
