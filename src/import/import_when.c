/*
 * nginx's `if` as `when`. nginx runs set, if, rewrite, return and break in file order, and continues after an `if`
 * that has not responded; sluice overlays the first true condition on its location, after all set and before rewrite
 * and return. Equivalent constructs are carried over, others are omitted or noted.
 */
#include "import/import_script.h"

/*
 * True for a server's `if` that redirects internally, after which nginx may continue in another location or with other
 * rules than sluice: if its rewrite does not match, the location's rules apply in nginx, but not in sluice.
 */
static bool leaves_location(const struct nginx_directive *directive)
{
    bool file = directive->count == 2 && str_search(directive->words[0], STR("-")) >= 0;
    bool fits = file || body_ends(directive);

    for (const struct nginx_directive *child = directive->first; child; child = child->next) {
        bool last = child->count == 3 && str_equal(child->words[2], STR("last"));
        bool outside =
            rewrite_ends(child) && !last && !(child->count == 3 && str_equal(child->words[2], STR("break")));

        if (directive_is(child, "rewrite") && !outside && !(last && fits))
            return true;
    }
    return false;
}

/* The reason why a `when` would behave differently; NULL: equivalent. */
static const char *unsafe_reason(const struct scope *scope, const struct nginx_directive *directive)
{
    bool ends = body_ends(directive);
    bool breaks = find_reachable(directive, "break") && !find_reachable(directive, "return") &&
                  !find_reachable(directive, "rewrite");

    if (rewrite_before(scope, directive) && tests_path(directive))
        return "its condition depends on a rewrite above it, but when precedes rewrite";
    for (const struct nginx_directive *later = directive->next; later; later = later->next) {
        if (later->unreachable || !is_script(later) || (later->sets && !find_reachable(directive, "set")))
            continue;
        if (directive_is(later, "if") && !ends)
            return "nginx also evaluates the next if, but when uses the first true condition: combine both in one "
                   "variable by map";
        if (breaks && !directive_is(later, "if"))
            return "there is no break that skips the directives after it: put the paths to be rewritten into a "
                   "condition";
    }
    if (scope->kind == SCOPE_SERVER && leaves_location(directive))
        return "nginx may continue in another location, or with its rewrites: write it in that location, or as a "
               "rewrite with last that always matches";
    if (scope->kind == SCOPE_SERVER && (!ends || breaks) && conditions_below(scope->block))
        return "locations have conditions, too, and when uses the first true one: make a variable by map";
    return NULL;
}

/* The condition as one text; data NULL: unsupported. */
static struct str condition_text(struct import *import, const struct nginx_directive *directive)
{
    struct str *words;
    size_t count;

    return condition_words(import, directive, &words, &count) ? words_join(import, words, count)
                                                              : (struct str){NULL, 0};
}

/* True if a location of the block rewrites, at any depth. */
static bool rewrites_below(const struct nginx_directive *block)
{
    for (const struct nginx_directive *child = block->first; child; child = child->next) {
        if (directive_is(child, "location") && (find_reachable(child, "rewrite") || rewrites_below(child)))
            return true;
    }
    return false;
}

/*
 * Carries over the body of the condition. An empty `rewrite` list disables the location's rewrites, which nginx would
 * not run before the return of the body.
 */
static void translate_condition(struct import *import, const struct scope *scope,
                                const struct nginx_directive *directive, const char *below, struct str condition)
{
    struct yaml_builder *conditions = yaml_builder_open(import->arena, scope->map, YAML_BUILDER_MAP, str_from(below));
    struct yaml_builder *body;

    if (yaml_builder_find(conditions, condition)) {
        import_omit(import, conditions, directive, "duplicate condition: merge both");
        return;
    }
    body = yaml_builder_add(import->arena, conditions, YAML_BUILDER_MAP, condition, directive);
    if (str_equal(directive->name, STR("limit_except")) && find_reachable(scope->block, "rewrite"))
        yaml_builder_add(import->arena, body, YAML_BUILDER_LIST, STR("rewrite"),
                         directive); /* nginx runs none for those methods */
    if (find_reachable(directive, "return") && !find_reachable(directive, "rewrite")) {
        if (rewrites_below(scope->block) || (scope->kind == SCOPE_LOCATION && find_reachable(scope->block, "rewrite")))
            yaml_builder_add(import->arena, body, YAML_BUILDER_LIST, STR("rewrite"), directive);
    }
    if (scope->kind != SCOPE_LOCATION && find_reachable(scope->block, "rewrite") &&
        (find_reachable(directive, "return") || find_reachable(directive, "rewrite")))
        import_add_note(import, IMPORT_CHANGED, directive, "in sluice rewrite of the server precedes it");
    if (scope->kind == SCOPE_SERVER && find_reachable(directive, "return") && has_access_rules(scope))
        import_add_note(import, IMPORT_CHANGED, directive,
                        "sluice checks access rules before return, nginx after it");
    translate_scope(import, scope, SCOPE_LOCATION, directive, body);
    if (rewrite_before(scope, directive))
        import_add_note(import, IMPORT_CHANGED, directive, "in sluice it is evaluated before the rewrite in line %u",
                        rewrite_before(scope, directive)->place.line);
    if (!body_ends(directive) && nginx_tree_find(scope->block, STR("try_files")))
        import_add_note(import, IMPORT_CHANGED, directive,
                        "nginx ignores try_files if this is true, sluice does not");
    if (find_reachable(scope->block, "location") && scope->kind == SCOPE_LOCATION)
        import_add_note(import, IMPORT_CHANGED, directive, "in sluice it applies to inner locations, too");
}

void translate_if(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                  const struct rule *rule)
{
    const char *why = directive->sets ? NULL : unsafe_reason(scope, directive);
    struct str condition = why ? STR("") : condition_text(import, directive);

    if (why)
        import_omit(import, scope->map, directive, "%s", why);
    else if (directive->sets)
        translate_set_if(import, scope, directive);
    else if (!condition.data)
        import_omit(import, scope->map, directive,
                    "there is no such condition: $name, =, !=, ~, ~*, -f, -d and -e are");
    else
        translate_condition(import, scope, directive, "when", condition);
}

void translate_limit_except(struct import *import, const struct scope *scope,
                            const struct nginx_directive *directive, const struct rule *rule)
{
    if (directive->count == 0) {
        import_omit(import, scope->map, directive, "it has no method");
        return;
    }
    translate_condition(import, scope, directive, "limit_except",
                        words_join(import, directive->words, directive->count));
    for (const struct scope *outer = scope; outer && outer->kind == SCOPE_LOCATION; outer = outer->outer) {
        if (find_reachable(outer->block, "if")) {
            import_add_note(import, IMPORT_CHANGED, directive, "in sluice no if is evaluated for the other methods");
            return;
        }
    }
}
