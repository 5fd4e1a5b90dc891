/*
 * Rules for single directives. Every rule adds a note if sluice has no directive of that name.
 */
#include "import/import_scope.h"

/* The value in the form of sluice's directive type. */
static struct str value_text(struct import *import, const struct directive *own,
                             const struct nginx_directive *directive)
{
    struct str *words;

    if (directive->count == 0)
        return STR("on");
    if (directive->count == 1 && (own->type == DIRECTIVE_TEXT || own->type == DIRECTIVE_TEMPLATE))
        return word_variables(import, own->line ? word_fold(import, directive->words[0]) : directive->words[0]);
    if (directive->count == 1 && own->type == DIRECTIVE_PATH)
        return word_path(import, import->prefix, directive->words[0]);
    words = arena_zalloc(import->arena, directive->count, sizeof(*words));
    import->out_of_memory |= !words;
    for (size_t i = 0; words && i < directive->count; i++) {
        words[i] = own->line ? word_fold(import, directive->words[i]) : directive->words[i];
        words[i] = word_variables(import, word_option(import, words[i]));
        if (own->type == DIRECTIVE_DURATION)
            words[i] = word_time(import, words[i]);
    }
    return words ? words_join(import, words, directive->count) : STR("");
}

/* Collects several lines of nginx in one list of words. */
static void add_words(struct import *import, struct yaml_builder *map, const char *name, struct str text,
                      const struct nginx_directive *directive)
{
    struct yaml_builder *known = yaml_builder_find(map, str_from(name));

    if (known && known->kind == YAML_BUILDER_TEXT) {
        known->text = arena_join(import->arena, (const struct str[]){known->text, STR(" "), text}, 3);
        import->out_of_memory |= !known->text.data;
    } else {
        import_put(import, map, name, text, directive);
    }
}

void import_add_value(struct import *import, const struct scope *scope,
                      const struct nginx_directive *directive, struct str text)
{
    const struct directive *own = find_sluice_directive(import, directive->name, scope->kind);

    if (!own) {
        struct str why = missing_reason(import, directive->name);

        import_omit(import, scope->map, directive, STR_FMT,
                    STR_ARG(why.data ? why : STR("sluice has no directive of that name here")));
        return;
    }
    switch (own->type) {
    case DIRECTIVE_REPEAT:
        import_put_item(import, scope->map, own->name, text, directive);
        break;
    case DIRECTIVE_WORDS:
    case DIRECTIVE_FLAGS:
    case DIRECTIVE_TEMPLATES:
        add_words(import, scope->map, own->name, text, directive);
        break;
    default:
        import_put(import, scope->map, own->name, text, directive);
    }
}

void translate_unchanged(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                         const struct rule *rule)
{
    const struct directive *own = find_sluice_directive(import, directive->name, scope->kind);

    import_add_value(import, scope, directive, own ? value_text(import, own, directive) : STR(""));
}

void omit_unneeded(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                   const struct rule *rule)
{
    if (find_sluice_directive(import, directive->name, scope->kind))
        translate_unchanged(import, scope, directive, rule);
    else
        import_add_note(import, IMPORT_UNNEEDED, directive, "%s", rule->text);
}

void omit_unsupported(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                      const struct rule *rule)
{
    import_omit(import, scope->map, directive, "%s", rule->text);
}

/* Carries over a header field. Fields that frame the message are not needed, since the server sets them itself. */
void translate_set_header(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                          const struct rule *rule)
{
    static const char *const framing[] = {"Content-Length", "Transfer-Encoding", "TE", "Expect", "Keep-Alive"};

    for (size_t i = 0; i < sizeof(framing) / sizeof(framing[0]); i++) {
        if (directive->count == 2 && str_equal_nocase(directive->words[0], str_from(framing[i]))) {
            import_add_note(import, IMPORT_UNNEEDED, directive, "%s", rule->text);
            return;
        }
    }
    translate_unchanged(import, scope, directive, rule);
}

/* True if the directive has a word; otherwise omits the directive. */
bool import_has_word(struct import *import, const struct scope *scope,
                     const struct nginx_directive *directive)
{
    if (directive->count > 0)
        return true;
    import_omit(import, scope->map, directive, "its value is missing");
    return false;
}

/* Carries over a path without the words after it: directory levels, which sluice's temporary files do not have. */
void translate_path(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                    const struct rule *rule)
{
    if (import_has_word(import, scope, directive))
        import_add_value(import, scope, directive,
                  word_path(import, import->prefix, word_variables(import, directive->words[0])));
}

void translate_alias(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                     const struct rule *rule)
{
    const struct nginx_directive *location = scope->block;
    struct str sign = location->count ? location->words[0] : STR("");
    struct str path = location->count ? location->words[location->count - 1] : STR("");

    translate_path(import, scope, directive, rule);
    if (str_starts(sign, STR("~")) || !str_ends(path, STR("/")) || directive->count != 1 ||
        str_ends(directive->words[0], STR("/")))
        return;
    import_add_note(import, IMPORT_CHANGED, directive,
                    "nginx joins \"" STR_FMT "\" and the path after \"" STR_FMT "\" without a slash; in sluice it "
                    "is a directory, or one file",
                    STR_ARG(directive->words[0]), STR_ARG(path));
}

void translate_conf_path(struct import *import, const struct scope *scope,
                         const struct nginx_directive *directive, const struct rule *rule)
{
    if (!import_has_word(import, scope, directive))
        return;
    if (str_find(directive->words[0], '$') >= 0 || str_starts(directive->words[0], STR("engine:")) ||
        str_starts(directive->words[0], STR("data:")) || str_starts(directive->words[0], STR("store:")))
        import_omit(import, scope->map, directive, "it takes the name of a file, which is read at the start");
    else
        import_add_value(import, scope, directive, word_path(import, import->directory, directive->words[0]));
}

void translate_word(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                    const struct rule *rule)
{
    if (import_has_word(import, scope, directive))
        import_add_value(import, scope, directive, directive->words[0]);
}

/* The text as one value, with its blanks. */
void translate_text(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                    const struct rule *rule)
{
    if (import_has_word(import, scope, directive))
        import_add_value(import, scope, directive, word_variables(import, directive->words[0]));
}

void translate_limit(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                     const struct rule *rule)
{
    import->limits = true;
    translate_unchanged(import, scope, directive, rule);
}

void translate_autoindex(struct import *import, const struct scope *scope,
                         const struct nginx_directive *directive, const struct rule *rule)
{
    import->lists = true;
    translate_unchanged(import, scope, directive, rule);
}

void translate_first_time(struct import *import, const struct scope *scope,
                          const struct nginx_directive *directive, const struct rule *rule)
{
    if (!import_has_word(import, scope, directive))
        return;
    import_add_value(import, scope, directive, word_time(import, directive->words[0]));
    if (directive->count > 1)
        import_add_note(import, IMPORT_CHANGED, directive, "%s", rule->text);
}

void translate_last_time(struct import *import, const struct scope *scope,
                         const struct nginx_directive *directive, const struct rule *rule)
{
    struct str last;
    struct str text;

    if (!import_has_word(import, scope, directive))
        return;
    last = word_time(import, directive->words[directive->count - 1]);
    text = words_join(import, directive->words, directive->count - 1);
    import_add_value(import, scope, directive,
              str_empty(text) ? last
                              : words_print(import, STR_FMT " " STR_FMT, STR_ARG(text), STR_ARG(last)));
}

void translate_http_version(struct import *import, const struct scope *scope,
                            const struct nginx_directive *directive, const struct rule *rule)
{
    if (directive->count > 0 && str_equal(directive->words[0], STR("2"))) {
        import_add_value(import, scope, directive, STR("\"2\""));
        return;
    }
    import_add_note(import, IMPORT_UNNEEDED, directive,
                    "requests to servers use HTTP/1.1 and persistent connections");
}

/* The regular expression is unchanged. */
void translate_rewrite(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                       const struct rule *rule)
{
    struct str text;

    if (!import_has_word(import, scope, directive))
        return;
    text = word_quote(import, directive->words[0]);
    for (size_t i = 1; i < directive->count; i++)
        text = words_print(import, STR_FMT " " STR_FMT, STR_ARG(text),
                           STR_ARG(word_quote(import, word_variables(import, directive->words[i]))));
    import_add_value(import, scope, directive, text);
}

static bool scope_has(const struct scope *scope, struct str name)
{
    for (; scope; scope = scope->outer) {
        if (nginx_tree_find(scope->block, name))
            return true;
    }
    return false;
}

/* nginx does not verify certificates of servers by default. */
static void add_verify_off(struct import *import, const struct scope *scope, const char *name)
{
    struct yaml_builder *verify;

    if (scope_has(scope, str_from(name)) || !find_sluice_directive(import, str_from(name), scope->kind))
        return;
    verify = import_put(import, scope->map, name, STR("off"), NULL);
    if (verify)
        verify->comment_beside = STR("# as in nginx: the server's certificate is not verified; on is better");
}

/* Carries over proxy_pass and fastcgi_pass; adds proxy_ssl_verify: off for https, as is nginx's default. */
void translate_pass(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                    const struct rule *rule)
{
    bool fastcgi = str_equal(directive->name, STR("fastcgi_pass"));

    if (!import_has_word(import, scope, directive))
        return;
    import->fastcgi |= fastcgi;
    import->proxies |= !fastcgi;
    import_add_value(import, scope, directive, word_variables(import, directive->words[0]));
    if (str_starts(directive->words[0], STR("https://")))
        add_verify_off(import, scope, "proxy_ssl_verify");
}

void translate_grpc_pass(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                         const struct rule *rule)
{
    if (!import_has_word(import, scope, directive))
        return;
    import_add_value(import, scope, directive, word_variables(import, directive->words[0]));
    if (str_starts(directive->words[0], STR("grpcs://")))
        add_verify_off(import, scope, "grpc_ssl_verify");
}

/* Keeps TLSv1.2 and TLSv1.3. */
void translate_protocols(struct import *import, const struct scope *scope,
                         const struct nginx_directive *directive, const struct rule *rule)
{
    struct str text = STR("");
    size_t kept = 0;

    for (size_t i = 0; i < directive->count; i++) {
        if (!str_equal(directive->words[i], STR("TLSv1.2")) &&
            !str_equal(directive->words[i], STR("TLSv1.3")))
            continue;
        text = kept++ ? words_print(import, STR_FMT " " STR_FMT, STR_ARG(text), STR_ARG(directive->words[i]))
                      : directive->words[i];
    }
    if (kept == 0) {
        import_omit(import, scope->map, directive, "%s", rule->text);
        return;
    }
    import_add_value(import, scope, directive, text);
    if (kept < directive->count)
        import_add_note(import, IMPORT_CHANGED, directive, "%s", rule->text);
}

/* `ssl on` becomes a word of listen: see translate_listen. */
void translate_ssl(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                   const struct rule *rule)
{
    if (scope->kind != SCOPE_SERVER)
        import_omit(import, scope->map, directive, "write it after the port: listen: 443 ssl");
}

void translate_names(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                     const struct rule *rule)
{
    for (size_t i = 0; i < directive->count; i++) {
        if (str_starts(directive->words[i], STR("$"))) {
            import_omit(import, scope->map, directive,
                        "the name of the machine ($hostname) is not supported: write it out");
            return;
        }
    }
    import_add_value(import, scope, directive, words_join(import, directive->words, directive->count));
}

void translate_in_http(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                       const struct rule *rule)
{
    const struct scope *http = scope;

    while (http && http->kind != SCOPE_HTTP)
        http = http->outer;
    if (!http)
        return;
    if (nginx_tree_find(http->block, directive->name) || yaml_builder_find(http->map, directive->name)) {
        import_omit(import, scope->map, directive, "it applies to all servers in sluice, and is set already");
        return;
    }
    translate_unchanged(import, http, directive, rule);
    import_add_note(import, IMPORT_CHANGED, directive, "in sluice it is set in http, for all servers");
}
