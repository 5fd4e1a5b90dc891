/*
 * `sluice help NAME`: directives, blocks and variables, or suggestions.
 */
#include "conf/conf_vocabulary.h"
#include "conf/print_directive.h"

#include <errno.h>

#define SUGGESTIONS_MAX 3

static int directive_help(const struct directive *directive, struct buffer *out)
{
    int error = buffer_printf(out, "%s\n  %s\n", directive->name, directive->help);

    if (error == 0 && directive->deprecated)
        error = buffer_printf(out, "  Deprecated: %s.\n", directive->deprecated);
    if (error == 0)
        error = buffer_append(out, STR("\n  where     "));
    if (error == 0)
        error = scopes_print(directive->scopes, out);
    if (error == 0)
        error = buffer_append(out, STR("\n  value     "));
    if (error == 0)
        error = value_print(directive, "", out);
    if (error == 0)
        error = buffer_printf(out, "\n  default   %s\n  inherits  %s\n  example   ",
                              directive->default_value && *directive->default_value ? directive->default_value : "none",
                              inheritance_text(directive));
    if (error == 0)
        error = example_print(directive, out);
    return error == 0 ? buffer_append(out, STR("\n")) : error;
}

struct suggestion {
    const char *name;
    size_t distance;
};

static void suggestion_insert(struct suggestion *suggestions, const char *name, size_t distance)
{
    struct suggestion entry = {name, distance};

    for (size_t i = 0; i < SUGGESTIONS_MAX; i++) {
        struct suggestion moved = suggestions[i];

        if (suggestions[i].name && strcmp(suggestions[i].name, name) == 0)
            return;
        if (suggestions[i].name && suggestions[i].distance <= entry.distance)
            continue;
        suggestions[i] = entry;
        entry = moved;
        if (!entry.name)
            return;
    }
}

/* Prints similar names. A name that contains the word is similar: "timeout" finds keepalive_timeout. */
static int suggestions_print(const struct conf_schema *schema, struct str name, struct buffer *out)
{
    struct suggestion suggestions[SUGGESTIONS_MAX] = {0};
    struct str instead;
    enum vocabulary_word word = vocabulary_find(schema, name, &instead);
    int error;

    if (word != VOCABULARY_UNKNOWN)
        return buffer_printf(out, "'" STR_FMT "' is not %s: " STR_FMT "\n", STR_ARG(name),
                             word == VOCABULARY_LEFT_OUT ? "in this build of sluice" : "supported by sluice",
                             STR_ARG(instead));
    for (size_t slot = 0; slot < schema->count; slot++) {
        const struct directive *directives = schema->groups[slot]->directives;

        for (size_t i = 0; directives && directives[i].name; i++) {
            struct str own = str_from(directives[i].name);
            size_t distance = str_distance(name, own);
            bool within = name.length > 2 && str_search(own, name) >= 0;

            if (within || distance <= name.length / 3 + 1)
                suggestion_insert(suggestions, directives[i].name, within ? distance / 4 : distance);
        }
    }
    error = buffer_printf(out, "no directive is named '" STR_FMT "'", STR_ARG(name));
    for (size_t i = 0; i < SUGGESTIONS_MAX && suggestions[i].name && error == 0; i++)
        error = buffer_printf(out, "%s%s", i ? ", " : "; did you mean ", suggestions[i].name);
    if (error == 0)
        error = buffer_append(out, suggestions[0].name ? STR("?\n") : STR("; sluice help lists all\n"));
    return error;
}

/* Help for a block (`sluice help server`): the tables have no rows for blocks. */
static int block_help(const struct conf_schema *schema, const struct block_word *block, struct buffer *out)
{
    int error = buffer_printf(out, "%s\n  %s\n\n  where     ", block->name, block->help);

    if (error == 0)
        error = scopes_print(block_scopes(schema, block), out);
    return error == 0 ? buffer_printf(out, "\n  example   %s\n", block->example) : error;
}

static const struct block_word *block_find(const struct conf_schema *schema, struct str name)
{
    const struct block_word *block;

    for (size_t i = 0; (block = vocabulary_block(i)); i++) {
        if (str_equal(name, str_from(block->name)) && block_scopes(schema, block))
            return block;
    }
    return NULL;
}

/* Topics that are in no table. */
static const struct {
    const char *name, *text;
} topics[] = {
    {"include",
     "include\n  Other files, by a pattern or a list of patterns: their mappings are merged here, lists are "
     "appended, and a key that is\n  given twice is an error. `- !include FILE` inserts a list into a list.\n\n"
     "  where     any mapping\n  value     a path with *, ? and []; a relative one starts at the directory of the "
     "file\n"
     "  example   include: conf.d/*.yaml\n"},
};

int conf_print_help(const struct conf_schema *schema, struct str name, struct buffer *out)
{
    const struct block_word *block = block_find(schema, name);
    bool found = false;

    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
        if (str_equal(name, str_from(topics[i].name)))
            return buffer_append(out, str_from(topics[i].text));
    }

    for (size_t slot = 0; slot < schema->count; slot++) {
        const struct directive *directives = schema->groups[slot]->directives;

        for (size_t i = 0; directives && directives[i].name; i++) {
            int error = 0;

            if (!str_equal(name, str_from(directives[i].name)))
                continue;
            if (found)
                error = buffer_append(out, STR("\n"));
            if (error == 0)
                error = directive_help(&directives[i], out);
            if (error < 0)
                return error;
            found = true;
        }
    }
    if (block) {
        int error = found ? buffer_append(out, STR("\n")) : 0;

        return error == 0 ? block_help(schema, block, out) : error;
    }
    if (found)
        return 0;
    return suggestions_print(schema, name, out) < 0 ? -ENOMEM : -ENOENT;
}
