/*
 * Carries over access_log and error_log.
 */
#include "import/import_scope.h"

/* True if one of the words of a syslog receiver begins with `name`. */
static bool has_parameter(struct str syslog, struct str name)
{
    struct str rest = str_skip(syslog, STR("syslog:").length);

    while (rest.data) {
        if (str_starts(str_cut(&rest, ','), name))
            return true;
    }
    return false;
}

/* The path of a log. A syslog receiver gets nginx's tag, by which rules of the receiver may select the lines. */
static struct str log_path(struct import *import, struct str word)
{
    if (!str_starts(word, STR("syslog:")))
        return word_path(import, import->prefix, word);
    return has_parameter(word, STR("tag=")) ? word : words_print(import, STR_FMT ",tag=nginx", STR_ARG(word));
}

/* A path, a format if one is named, and the condition; other words are not needed. */
void translate_log(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                   const struct rule *rule)
{
    bool http = scope->kind & SCOPE_SITE;
    struct str format = http ? STR("combined") : STR("basic");
    struct str condition = STR("");
    struct str path;

    if (!import_has_word(import, scope, directive))
        return;
    path = log_path(import, directive->words[0]);
    if (str_find(path, '$') >= 0) {
        import_omit(import, scope->map, directive, "a log has one name, without variables");
        return;
    }
    for (size_t i = 1; i < directive->count; i++) {
        struct str word = directive->words[i];

        if (str_starts(word, STR("if=")))
            condition = words_print(import, " " STR_FMT,
                                    STR_ARG(word_quote(import, word_variables(import, word))));
        else if (str_starts(word, STR("gzip")))
            import_add_note(import, IMPORT_CHANGED, directive, "logs are not compressed while they are written");
        else if (i == 1 && str_find(word, '=') < 0)
            format = word;
    }
    if (str_equal(path, STR("off")))
        import_add_value(import, scope, directive, path);
    else
        import_add_value(
            import, scope, directive,
            words_print(import, STR_FMT " " STR_FMT STR_FMT, STR_ARG(word_quote(import, path)), STR_ARG(format),
                        STR_ARG(condition)));
}

/* Moves an error_log to the main scope if it has none: sluice has one error log for all servers. */
void translate_error_log(struct import *import, const struct scope *scope,
                         const struct nginx_directive *directive, const struct rule *rule)
{
    bool own = scope->kind == SCOPE_MAIN;
    struct str text;

    if (!import_has_word(import, scope, directive))
        return;
    if (!own &&
        (nginx_tree_find(import->root, STR("error_log")) || yaml_builder_find(import->main, STR("error_log")))) {
        import_omit(import, scope->map, directive, "there is one error log for all servers, in the main scope");
        return;
    }
    text = word_quote(import, log_path(import, directive->words[0]));
    if (directive->count > 1)
        text = words_print(import, STR_FMT " " STR_FMT, STR_ARG(text), STR_ARG(directive->words[1]));
    import_put(import, import->main, "error_log", text, directive);
    if (!own)
        import_add_note(import, IMPORT_CHANGED, directive, "it applies to all servers in sluice");
}
