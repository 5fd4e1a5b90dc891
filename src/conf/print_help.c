/*
 * The tables in words: `sluice help DIRECTIVE`, and the reference that conf/README.md
 * is made of.
 */
#include "conf/conf_schema.h"
#include "conf/conf_vocabulary.h"

#include <errno.h>

#define NEAREST_MAX 3

static const enum conf_scope scopes[] = {
    SCOPE_MAIN,     SCOPE_EVENTS,   SCOPE_HTTP,   SCOPE_SERVER,
    SCOPE_LOCATION, SCOPE_UPSTREAM, SCOPE_STREAM, SCOPE_STREAM_SERVER,
};

static int scopes_print(unsigned mask, struct buffer *out)
{
    const char *joint = "";
    int error = 0;

    for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]) && error == 0; i++) {
        if (!(mask & scopes[i]))
            continue;
        error = buffer_printf(out, "%s%s", joint, conf_scope_name(scopes[i]));
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

static int value_print(const struct directive *directive, struct buffer *out)
{
    static const char *const words[] = {
        [DIRECTIVE_TEXT] = "a text",
        [DIRECTIVE_PATH] = "a path; a relative one starts at the folder of the file, or at -p",
        [DIRECTIVE_SIZE] = "a size: 512, 4k, 10m, 1g",
        [DIRECTIVE_DURATION] = "a duration: 500ms, 30s, 1h30m",
        [DIRECTIVE_SWITCH] = "on or off",
        [DIRECTIVE_TEMPLATE] = "a text with variables",
        [DIRECTIVE_WORDS] = "words, or a list of them",
        [DIRECTIVE_TEMPLATES] = "words with variables, or a list of them",
        [DIRECTIVE_REPEAT] = "as in the example; may be repeated as a list",
        [DIRECTIVE_CUSTOM] = "as in the example",
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
    default:
        return buffer_printf(out, "%s", words[directive->type]);
    }
}

static const char *inheritance(const struct directive *directive)
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

/* A word as YAML would take it, for examples made of fallbacks. */
static int example_print(const struct directive *directive, struct buffer *out)
{
    const char *value = directive->type == DIRECTIVE_SWITCH ? "on" : directive->fallback;

    if (directive->example)
        return buffer_printf(out, "%s", directive->example);
    if (directive->choices && !value)
        value = directive->choices[0];
    if (!value || !*value)
        return buffer_printf(out, "%s: ...", directive->name);
    return buffer_printf(out, "%s: %s", directive->name, value);
}

static int directive_help(const struct directive *directive, struct buffer *out)
{
    int error = buffer_printf(out, "%s\n  %s\n\n  where     ", directive->name, directive->help);

    if (error == 0)
        error = scopes_print(directive->scopes, out);
    if (error == 0)
        error = buffer_append(out, STR("\n  value     "));
    if (error == 0)
        error = value_print(directive, out);
    if (error == 0)
        error = buffer_printf(out, "\n  default   %s\n  inherits  %s\n  example   ",
                              directive->fallback && *directive->fallback ? directive->fallback : "none",
                              inheritance(directive));
    if (error == 0)
        error = example_print(directive, out);
    return error == 0 ? buffer_append(out, STR("\n")) : error;
}

struct near_name {
    const char *name;
    size_t distance;
};

static void near_insert(struct near_name *near, const char *name, size_t distance)
{
    struct near_name entry = {name, distance};

    for (size_t i = 0; i < NEAREST_MAX; i++) {
        struct near_name moved = near[i];

        if (near[i].name && strcmp(near[i].name, name) == 0)
            return;
        if (near[i].name && near[i].distance <= entry.distance)
            continue;
        near[i] = entry;
        entry = moved;
        if (!entry.name)
            return;
    }
}

/* Names that contain the word count as near too: "timeout" finds keepalive_timeout. */
static int nearest_print(const struct conf_schema *schema, struct str name, struct buffer *out)
{
    struct near_name near[NEAREST_MAX] = {0};
    struct str instead;
    enum vocabulary_word word = vocabulary_look_up(schema, name, &instead);
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
                near_insert(near, directives[i].name, within ? distance / 4 : distance);
        }
    }
    error = buffer_printf(out, "no directive is named '" STR_FMT "'", STR_ARG(name));
    for (size_t i = 0; i < NEAREST_MAX && near[i].name && error == 0; i++)
        error = buffer_printf(out, "%s%s", i ? ", " : "; did you mean ", near[i].name);
    if (error == 0)
        error = buffer_append(out, near[0].name ? STR("?\n") : STR("\n"));
    return error;
}

/* `sluice help server`: the scopes have no table, since others read them. */
static int block_help(const struct conf_schema *schema, const struct block_word *block, struct buffer *out)
{
    int error = buffer_printf(out, "%s\n  %s\n\n  where     ", block->name, block->help);

    if (error == 0)
        error = scopes_print(block->stands & (conf_schema_scopes(schema) | SCOPE_MAIN), out);
    return error == 0 ? buffer_printf(out, "\n  example   %s\n", block->example) : error;
}

static const struct block_word *block_find(struct str name)
{
    const struct block_word *block;

    for (size_t i = 0; (block = vocabulary_block(i)); i++) {
        if (str_equal(name, str_from(block->name)))
            return block;
    }
    return NULL;
}

int conf_print_help(const struct conf_schema *schema, struct str name, struct buffer *out)
{
    bool found = false;

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
    if (found)
        return 0;
    if (block_find(name))
        return block_help(schema, block_find(name), out);
    return nearest_print(schema, name, out) < 0 ? -ENOMEM : -ENOENT;
}

/* The reference. */

static const char introduction[] =
    "# The directives of sluice\n"
    "\n"
    "This page is made from the tables in the sources (`sluice help NAME` prints the same); a test keeps it "
    "true.\n"
    "The files beside it in the sources, and where `meson setup --prefix=/usr` has them installed:\n"
    "\n"
    "| file | what | installed in |\n"
    "|-|-|-|\n"
    "| `sluice.yaml` | the configuration that runs as it stands, on loopback only | `/etc/sluice` |\n"
    "| `types.yaml` | media types for `include:` below `types:` | `/etc/sluice` |\n"
    "| `sluice.schema.json` | what `sluice schema` prints, for editors | `/usr/share/sluice` |\n"
    "| `www/` | the page that the default configuration serves | `/usr/share/sluice` |\n"
    "| `examples/` | configurations to begin with | `/usr/share/doc/sluice` |\n"
    "| `../modules/README.md` | what the modules do | `/usr/share/doc/sluice/modules.md` |\n"
    "\n"
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
    "Of the locations an exact one answers first; else the longest prefix, where it is `^~`; else the first\n"
    "regular expression of the file that fits (`~*`: letters of either case); else that longest prefix. What a\n"
    "regular expression captures is `$1` to `$9`, and `$name` for `(?<name>...)`, until another one captures\n"
    "something.\n"
    "\n"
    "## How values are written\n"
    "\n"
    "| kind | written | |\n"
    "|-|-|-|\n"
    "| size | `512`, `4k`, `10m`, `1g` | bytes; `10MiB` too |\n"
    "| duration | `500ms`, `30s`, `1h30m`, `7d` | a unit is required (but for `0`); larger units first |\n"
    "| switch | `on`, `off` | `true`, `false`, `yes`, `no` too |\n"
    "| words | `index: a.html b.html`, or `[a.html, b.html]` | in a scalar, quotes group words as in nginx "
    "|\n"
    "| text with variables | `https://$host$request_uri` | `${name}` where a letter follows; `$$` is a "
    "dollar sign |\n"
    "| environment | `${PORT}`, `${PORT:-8080}`, `${PORT:?say which}` | upper case, inside any value; unset "
    "is an error |\n"
    "\n"
    "`include: conf.d/*.yaml` (one pattern, or a list) merges mappings where it stands; lists append, and so "
    "does\n"
    "`server`; anything given twice is an error. `- !include file.yaml` takes a list into a list. Anchors "
    "and `<<`\n"
    "work, and keys that begin with `x-` are free for them. Relative paths start at the folder of the file "
    "they\n"
    "stand in, or at `-p`. Inner scopes inherit from outer ones: `http`, then `server`, then `location`.\n"
    "\n"
    "Quote what begins with `*`, `@`, `%`, `!`, `` ` ``, `[` or `{`, what holds `: `, and what holds `,` "
    "inside `{}`.\n"
    "A `#` behind a blank begins a comment: behind a text, write a blank after it too, or quote the text.\n";

static int reference_entry(const struct directive *directive, struct buffer *out)
{
    int error = buffer_printf(out, "\n### `%s`\n\n%s\n\nWhere: ", directive->name, directive->help);

    if (error == 0)
        error = scopes_print(directive->scopes, out);
    if (error == 0)
        error = buffer_append(out, STR(". Value: "));
    if (error == 0)
        error = value_print(directive, out);
    if (error == 0 && directive->fallback && *directive->fallback)
        error = buffer_printf(out, ". Default: `%s`", directive->fallback);
    if (error == 0 && directive->scopes & ~(unsigned)(SCOPE_MAIN | SCOPE_EVENTS))
        error = buffer_printf(out, ". Inheritance: %s", inheritance(directive));
    if (error == 0)
        error = buffer_append(out, STR(".\n\n```yaml\n"));
    if (error == 0)
        error = example_print(directive, out);
    return error == 0 ? buffer_append(out, STR("\n```\n")) : error;
}

static int refused_print(struct buffer *out)
{
    const char *hint;
    const char *name;
    int error =
        buffer_append(out, STR("\n## Known from nginx, and not carried\n\n| directive | instead |\n|-|-|\n"));

    for (size_t i = 0; error == 0 && (name = vocabulary_refused(i, &hint)); i++)
        error = buffer_printf(out, "| `%s` | %s |\n", name, hint);
    return error;
}

int conf_print_reference(const struct conf_schema *schema, struct buffer *out)
{
    int error = buffer_append(out, str_of(introduction, sizeof(introduction) - 1));

    for (size_t slot = 0; slot < schema->count && error == 0; slot++) {
        const struct conf_group *group = schema->groups[slot];

        if (!group->directives || !group->directives[0].name)
            continue;
        error = buffer_printf(out, "\n## %s\n", group->name);
        for (size_t i = 0; group->directives[i].name && error == 0; i++)
            error = reference_entry(&group->directives[i], out);
    }
    return error == 0 ? refused_print(out) : error;
}
