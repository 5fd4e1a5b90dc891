/*
 * Prints findings as text (with a caret, like the loader), one line each for editors, JSON, and SARIF 2.1.0 (OASIS).
 */
#include "lint/lint.h"

#include "build_options.h"
#include "http/url.h"

#include <errno.h>

/* The path as compilers print it. */
static struct str path_of(const struct lint_finding *finding)
{
    return finding->mark.file ? finding->mark.file->path : STR("(none)");
}

static int text_print(const struct lint *lint, const struct lint_finding *finding, struct buffer *out)
{
    struct conf_errors one = {.arena = lint->arena};

    if (strcmp(finding->level, "error") == 0)
        conf_error(&one, finding->mark, finding->hint, STR_FMT " [%s]", STR_ARG(finding->message),
                   lint_rule_name(finding));
    else
        conf_warning(&one, finding->mark, finding->hint, STR_FMT " [%s]", STR_ARG(finding->message),
                     lint_rule_name(finding));
    return conf_errors_print(&one, out);
}

static int gcc_print(const struct lint_finding *finding, struct buffer *out)
{
    return buffer_printf(out, STR_FMT ":%u:%u: %s: " STR_FMT "%s" STR_FMT " [%s]\n",
                         STR_ARG(path_of(finding)), finding->mark.line, finding->mark.column, finding->level,
                         STR_ARG(finding->message), finding->hint.length ? "; " : "", STR_ARG(finding->hint),
                         lint_rule_name(finding));
}

/* Prints `before`, and the text as a JSON string. */
static int print_json_string(struct buffer *out, const char *before, struct str text)
{
    int error = buffer_printf(out, "%s\"", before);

    if (error == 0)
        error = template_escape_json(out, text);
    return error == 0 ? buffer_append(out, STR("\"")) : error;
}

static int json_print(const struct lint_finding *finding, struct buffer *out)
{
    int error = print_json_string(out, "  {\"file\": ", path_of(finding));

    if (error == 0)
        error =
            buffer_printf(out, ", \"line\": %u, \"column\": %u, \"level\": \"%s\", \"rule\": \"%s\"",
                          finding->mark.line, finding->mark.column, finding->level, lint_rule_name(finding));
    if (error == 0)
        error = print_json_string(out, ", \"message\": ", finding->message);
    if (error == 0)
        error = print_json_string(out, ", \"hint\": ", finding->hint);
    return error == 0 ? buffer_append(out, STR("}")) : error;
}

/* Columns count characters (columnKind unicodeCodePoints); a finding without a position has no region. */
static int sarif_print(const struct lint *lint, const struct lint_finding *finding, struct buffer *out)
{
    struct str uri = url_path_encode(lint->arena, path_of(finding));
    int error = buffer_printf(out, "      {\"ruleId\": \"%s\", \"level\": \"%s\", \"message\": {",
                              lint_rule_name(finding), finding->level);

    if (error == 0)
        error = uri.data ? print_json_string(out, "\"text\": ", finding->message) : -ENOMEM;
    if (error == 0 && finding->mark.file)
        error =
            print_json_string(out, "}, \"locations\": [{\"physicalLocation\": {\"artifactLocation\": {\"uri\": ", uri);
    if (error == 0 && finding->mark.file)
        error = buffer_printf(out, "}, \"region\": {\"startLine\": %u, \"startColumn\": %u}}}]}",
                              finding->mark.line, finding->mark.column);
    else if (error == 0)
        error = buffer_append(out, STR("}}"));
    return error;
}

static int rules_print(struct buffer *out)
{
    int error = buffer_append(
        out, STR("        {\"id\": \"load\", \"shortDescription\": {\"text\": \"An error or a warning of the "
                 "configuration loader.\"}}"));

    for (size_t table = 0; lint_tables[table]; table++) {
        for (const struct lint_rule *rule = lint_tables[table]; rule->name && error == 0; rule++) {
            error = buffer_printf(out, ",\n        {\"id\": \"%s\", \"shortDescription\": {", rule->name);
            if (error == 0)
                error = print_json_string(out, "\"text\": ", str_from(rule->help));
            if (error == 0)
                error = buffer_append(out, STR("}}"));
        }
    }
    return error;
}

static int sarif_begin(struct buffer *out)
{
    int error = buffer_append(
        out, STR("{\"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\", \"version\": \"2.1.0\", "
                 "\"runs\": [{\n"
                 "  \"columnKind\": \"unicodeCodePoints\",\n"
                 "  \"tool\": {\"driver\": {\"name\": \"sluice\", \"version\": \"" SLUICE_VERSION
                 "\", \"rules\": [\n"));

    if (error == 0)
        error = rules_print(out);
    return error == 0 ? buffer_append(out, STR("]}},\n    \"results\": [\n")) : error;
}

static int finding_print(const struct lint *lint, enum output_format format,
                         const struct lint_finding *finding, struct buffer *out)
{
    switch (format) {
    case OUTPUT_TEXT:
        return text_print(lint, finding, out);
    case OUTPUT_GCC:
        return gcc_print(finding, out);
    case OUTPUT_JSON:
        return json_print(finding, out);
    case OUTPUT_SARIF:
        return sarif_print(lint, finding, out);
    }
    return 0;
}

int lint_print(const struct lint *lint, enum output_format format, struct buffer *out)
{
    bool listed = format == OUTPUT_JSON || format == OUTPUT_SARIF;
    int error = 0;

    if (format == OUTPUT_JSON)
        error = buffer_append(out, STR("[\n"));
    else if (format == OUTPUT_SARIF)
        error = sarif_begin(out);
    for (size_t i = 0; i < lint->count && error == 0; i++) {
        error = finding_print(lint, format, &lint->items[i], out);
        if (error == 0 && listed)
            error = buffer_append(out, i + 1 < lint->count ? STR(",\n") : STR("\n"));
    }
    if (error == 0 && listed)
        error = buffer_append(out, format == OUTPUT_JSON ? STR("]\n") : STR("    ]}]}\n"));
    return error;
}
