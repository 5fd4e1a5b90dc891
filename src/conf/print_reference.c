/*
 * Generates the reference and the table of unsupported nginx directives in Markdown; docs/site/pages.py divides them
 * into pages. Headings are unique, so that their anchors are unique, too.
 */
#include "conf/conf_vocabulary.h"
#include "conf/print_directive.h"

static const char introduction[] = "# The directives of sluice\n\n";

static const char notation[] =
    "## Scopes\n"
    "\n"
    "```yaml\n"
    "worker_processes: auto        # the main scope\n"
    "events: {worker_connections: 4096}\n"
    "http:\n"
    "  keepalive_timeout: 75s      # http: for all servers\n"
    "  server:                     # one mapping, or a list of them\n"
    "    - listen: 8443 ssl\n"
    "      location:               # a prefix, '= exact', '^~ prefix', '~ regex', '@name'\n"
    "        /images/: {root: media}\n"
    "```\n"
    "\n"
    "An exact location is selected first; else the longest prefix, if it has `^~`; else the first regular\n"
    "expression in the order of the file that matches (`~*` ignores case); else that longest prefix. The captures\n"
    "of a regular expression are `$1` to `$9`, and `$name` for `(?<name>...)`, until another one sets them.\n"
    "\n"
    "## How values are written\n"
    "\n"
    "| kind | written | |\n"
    "|-|-|-|\n"
    "| size | `512`, `4k`, `10m`, `1g` | bytes; `10MiB` too |\n"
    "| duration | `500ms`, `30s`, `1h30m`, `7d` | a unit is required (except for `0`); larger units first |\n"
    "| switch | `on`, `off` | `true`, `false`, `yes`, `no` too |\n"
    "| words | `index: a.html b.html`, or `[a.html, b.html]` | in a scalar, quotes group words as in nginx "
    "|\n"
    "| text with variables | `https://$host$request_uri` | `${name}` where a letter follows; `$$` is a "
    "dollar sign |\n"
    "| environment | `${PORT}`, `${PORT:-8080}`, `${PORT:?say which}` | upper case, inside any value; unset "
    "is an error |\n"
    "\n"
    "`include: conf.d/*.yaml` (one pattern, or a list) merges the mappings of the files; lists are appended, and so\n"
    "is `server`; a key that is given twice is an error. `- !include file.yaml` inserts a list into a list. Anchors\n"
    "and `<<` work; keys that begin with `x-` are ignored and can hold them. Relative paths start at the folder of\n"
    "the file that contains them, or at `-p`. Inner scopes inherit from outer ones: `http`, `server`, `location`.\n"
    "\n"
    "Quote values that begin with `*`, `@`, `%`, `!`, `` ` ``, `[` or `{`, values that contain `: `, and values\n"
    "that contain `,` inside `{}`. A `#` after a blank begins a comment. After a text,\n"
    "a comment needs a blank after `#`; quote a text that contains ` #`.\n";

/* The number of entries with this name: rows of the tables, and the block of that name. */
static unsigned entries_named(const struct conf_schema *schema, const char *name)
{
    const struct block_word *block;
    unsigned count = 0;

    for (size_t slot = 0; slot < schema->count; slot++) {
        const struct directive *directives = schema->groups[slot]->directives;

        for (size_t i = 0; directives && directives[i].name; i++)
            count += strcmp(directives[i].name, name) == 0;
    }
    for (size_t i = 0; (block = vocabulary_block(i)); i++)
        count += strcmp(block->name, name) == 0;
    return count;
}

/* "`root`", or "`server` (upstream)" if several entries share the name. */
static int heading_print(const struct conf_schema *schema, const char *name, unsigned scopes, struct buffer *out)
{
    int error = buffer_printf(out, "`%s`", name);

    if (error < 0 || entries_named(schema, name) < 2)
        return error;
    error = buffer_append(out, STR(" ("));
    if (error == 0)
        error = scopes_print(scopes, out);
    return error == 0 ? buffer_append(out, STR(")")) : error;
}

static int blocks_print(const struct conf_schema *schema, struct buffer *out)
{
    const struct block_word *block;
    int error = buffer_append(out, STR("\n## Blocks\n"));

    for (size_t i = 0; error == 0 && (block = vocabulary_block(i)); i++) {
        error = buffer_append(out, STR("\n### "));
        if (error == 0)
            error = heading_print(schema, block->name, block_scopes(schema, block), out);
        if (error == 0)
            error = buffer_printf(out, "\n\n%s\n\nWhere: ", block->help);
        if (error == 0)
            error = scopes_print(block_scopes(schema, block), out);
        if (error == 0)
            error = buffer_printf(out, ".\n\n```yaml\n%s\n```\n", block->example);
    }
    return error;
}

static int reference_entry(const struct conf_schema *schema, const struct directive *directive, struct buffer *out)
{
    int error = buffer_append(out, STR("\n### "));

    if (error == 0)
        error = heading_print(schema, directive->name, directive->scopes, out);
    if (error == 0)
        error = buffer_printf(out, "\n\n%s", directive->help);
    if (error == 0 && directive->deprecated)
        error = buffer_printf(out, "\n\nDeprecated: %s.", directive->deprecated);
    if (error == 0)
        error = buffer_append(out, STR("\n\nWhere: "));
    if (error == 0)
        error = scopes_print(directive->scopes, out);
    if (error == 0)
        error = buffer_append(out, STR(". Value: "));
    if (error == 0)
        error = value_print(directive, "`", out);
    if (error == 0 && directive->default_value && *directive->default_value)
        error = buffer_printf(out, ". Default: `%s`", directive->default_value);
    if (error == 0 && directive->scopes & ~(unsigned)(SCOPE_MAIN | SCOPE_EVENTS))
        error = buffer_printf(out, ". Inheritance: %s", inheritance_text(directive));
    if (error == 0)
        error = buffer_append(out, STR(".\n\n```yaml\n"));
    if (error == 0)
        error = example_print(directive, out);
    return error == 0 ? buffer_append(out, STR("\n```\n")) : error;
}

int conf_print_unsupported(struct buffer *out)
{
    static const char text[] = "# Directives of nginx that sluice does not have\n\n| directive | instead |\n|-|-|\n";
    const char *hint;
    const char *name;
    int error = buffer_append(out, str_of(text, sizeof(text) - 1));

    for (size_t i = 0; error == 0 && (name = vocabulary_unsupported(i, &hint)); i++)
        error = buffer_printf(out, "| `%s` | %s |\n", name, hint);
    return error;
}

int conf_print_reference(const struct conf_schema *schema, struct buffer *out)
{
    int error = buffer_append(out, str_of(introduction, sizeof(introduction) - 1));

    if (error == 0)
        error = buffer_append(out, str_of(notation, sizeof(notation) - 1));
    if (error == 0)
        error = blocks_print(schema, out);
    for (size_t slot = 0; slot < schema->count && error == 0; slot++) {
        const struct conf_group *group = schema->groups[slot];

        if (!group->directives || !group->directives[0].name)
            continue;
        error = buffer_printf(out, "\n## Directives: %s\n", group->name);
        for (size_t i = 0; group->directives[i].name && error == 0; i++)
            error = reference_entry(schema, &group->directives[i], out);
    }
    return error;
}
