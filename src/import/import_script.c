/*
 * Properties of set, if, rewrite, return and break, for import_order.c and the rules of conditions.
 */
#include "import/import_script.h"

bool directive_is(const struct nginx_directive *directive, const char *name)
{
    return str_equal(directive->name, str_from(name));
}

bool is_script(const struct nginx_directive *directive)
{
    return directive_is(directive, "set") || directive_is(directive, "if") || directive_is(directive, "rewrite") ||
           directive_is(directive, "return") || directive_is(directive, "break");
}

static bool always_matches(struct str pattern)
{
    static const char *const patterns[] = {"^",     ".*",     "^.*",   "^.*$",    "(.*)",    "^(.*)$",
                                           "^(.*)", "^/",     "^/.*$", "^/(.*)",  "^/(.*)$", "/(.*)",
                                           "/",     "^(.+)$", "^(.+)", "^/?(.*)$"};

    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        if (str_equal(pattern, str_from(patterns[i])))
            return true;
    }
    return false;
}

bool rewrite_ends(const struct nginx_directive *rewrite)
{
    return rewrite->count == 3 || (rewrite->count == 2 && (str_starts(rewrite->words[1], STR("http://")) ||
                                                           str_starts(rewrite->words[1], STR("https://")) ||
                                                           str_starts(rewrite->words[1], STR("$scheme"))));
}

struct nginx_directive *find_reachable(const struct nginx_directive *block, const char *name)
{
    struct nginx_directive *child = block->first;

    while (child && (child->unreachable || !directive_is(child, name)))
        child = child->next;
    return child;
}

bool body_ends(const struct nginx_directive *body)
{
    for (const struct nginx_directive *child = body->first; child; child = child->next) {
        if (directive_is(child, "return") || directive_is(child, "break") ||
            (directive_is(child, "rewrite") && child->count >= 2 && rewrite_ends(child) &&
             always_matches(child->words[0])))
            return true;
    }
    return false;
}

static bool block_has_access_rules(const struct nginx_directive *block)
{
    static const char *const names[] = {"deny", "auth_basic", "auth_request"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (nginx_tree_find(block, str_from(names[i])))
            return true;
    }
    return false;
}

bool has_access_rules(const struct scope *scope)
{
    for (; scope; scope = scope->outer) {
        if (block_has_access_rules(scope->block))
            return true;
    }
    return false;
}

bool conditions_below(const struct nginx_directive *block)
{
    for (const struct nginx_directive *child = block->first; child; child = child->next) {
        if (directive_is(child, "location") &&
            (find_reachable(child, "if") || find_reachable(child, "limit_except") || conditions_below(child)))
            return true;
    }
    return false;
}

bool tests_path(const struct nginx_directive *directive)
{
    static const char *const names[] = {"uri", "document_uri", "request_filename", "fastcgi_script_name"};

    for (size_t i = 0; i < directive->count; i++) {
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
            if (word_has_variable(directive->words[i], str_from(names[k])))
                return true;
        }
        if (word_has_capture(directive->words[i]))
            return true;
    }
    return false;
}

const struct nginx_directive *rewrite_before(const struct scope *scope,
                                             const struct nginx_directive *directive)
{
    const struct nginx_directive *rewrite = find_reachable(scope->block, "rewrite");

    for (const struct nginx_directive *child = rewrite; child; child = child->next) {
        if (child == directive)
            return rewrite;
    }
    return NULL;
}

bool condition_words(struct import *import, const struct nginx_directive *directive, struct str **out_words,
                     size_t *out_count)
{
    struct str *words = arena_zalloc(import->arena, directive->count + 1, sizeof(*words));
    size_t count = 0;

    import->out_of_memory |= !words;
    if (!words || directive->count == 0 || !str_starts(directive->words[0], STR("(")))
        return false;
    for (size_t i = 0; i < directive->count; i++) {
        struct str word = directive->words[i];
        bool first = i == 0, last = i + 1 == directive->count;

        word = str_skip(word, first);
        if (last) {
            if (!str_ends(word, STR(")")))
                return false;
            word.length--;
        }
        if (word.length || !(first || last))
            words[count++] = word;
    }
    if (count == 0 || count > 3 || str_equal(words[0], STR("-x")) || str_equal(words[0], STR("!-x")))
        return false;
    for (size_t i = 0; i < count; i++) {
        bool regex = i == 2 && str_find(words[1], '~') >= 0;

        if (!regex)
            words[i] = word_variables(import, words[i]);
    }
    *out_words = words;
    *out_count = count;
    return true;
}
