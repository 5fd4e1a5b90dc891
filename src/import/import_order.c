/*
 * Compares nginx's file order of set, if, rewrite, return and break with sluice's fixed order: marks directives that
 * are never reached or that become maps, and adds notes for those with another meaning.
 */
#include "import/import_script.h"

static bool has_flagless_rewrite(const struct nginx_directive *block, const struct nginx_directive *before)
{
    for (const struct nginx_directive *child = block->first; child != before; child = child->next) {
        if (directive_is(child, "rewrite") && !rewrite_ends(child))
            return true;
    }
    return false;
}

static void check_break(struct import *import, const struct scope *scope, struct nginx_directive *directive)
{
    directive->unreachable = true;
    if (has_flagless_rewrite(scope->block, directive))
        import_omit(import, scope->map, directive, "write break after the rewrite that it belongs to");
    else
        import_add_note(import, IMPORT_UNNEEDED, directive,
                        "the rewrite rules that it would skip are not carried over");
}

/* True if an earlier `if` or rewrite of the block sets or reads the variable of this `set`. */
static bool set_is_late(const struct nginx_directive *block, const struct nginx_directive *set)
{
    bool script = false;

    for (const struct nginx_directive *child = block->first; child != set; child = child->next) {
        const struct str name = set->count ? str_skip(set->words[0], 1) : STR("");

        if (child->sets)
            continue;
        script |= directive_is(child, "if") || directive_is(child, "rewrite");
        for (size_t i = 0; !directive_is(child, "set") && is_script(child) && i < child->count; i++) {
            if (word_has_variable(child->words[i], name))
                return true;
        }
        for (const struct nginx_directive *inner = child->first; directive_is(child, "if") && inner;
             inner = inner->next) {
            if (directive_is(inner, "set") && inner->count && set->count && str_equal(inner->words[0], set->words[0]))
                return true;
        }
    }
    return script && set->count > 1 && word_has_capture(set->words[1]);
}

/* True if the directive may end the server's rules without a response, so that the request reaches a location. */
static bool leads_to_location(const struct nginx_directive *directive)
{
    if (directive_is(directive, "rewrite"))
        return directive->count == 3 &&
               (str_equal(directive->words[2], STR("last")) || str_equal(directive->words[2], STR("break")));
    if (directive_is(directive, "break"))
        return true;
    for (const struct nginx_directive *child = directive_is(directive, "if") ? directive->first : NULL; child;
         child = child->next) {
        if (leads_to_location(child))
            return true;
    }
    return false;
}

/*
 * Marks the locations of a server whose `return` handles all requests as unreachable, except named ones, which
 * error_page uses without the server's rules.
 */
static void check_locations(struct import *import, const struct scope *scope, const struct nginx_directive *handler)
{
    for (const struct nginx_directive *child = scope->block->first; child && child != handler; child = child->next) {
        if (leads_to_location(child))
            return;
    }
    for (struct nginx_directive *child = scope->block->first; child; child = child->next) {
        if (!directive_is(child, "location") || (child->count == 1 && str_starts(child->words[0], STR("@"))))
            continue;
        child->unreachable = true;
        import_add_note(import, IMPORT_UNNEEDED, child, "never reached: line %u answers all requests of the server",
                        handler->place.line);
    }
}

/* Marks conditions that only set variables, to become maps, if several may be true: in nginx all of them apply. */
static void check_sets(struct import *import, const struct scope *scope)
{
    unsigned conditions = scope->kind == SCOPE_SERVER && conditions_below(scope->block) ? 2 : 0;

    for (const struct nginx_directive *child = scope->block->first; child; child = child->next)
        conditions += directive_is(child, "if");
    for (struct nginx_directive *child = scope->block->first; child && conditions > 1; child = child->next) {
        if (directive_is(child, "if") && !(rewrite_before(scope, child) && tests_path(child)))
            child->sets = becomes_set(import, child);
    }
}

void check_order(struct import *import, const struct scope *scope)
{
    const struct nginx_directive *end = NULL;

    if (!(scope->kind & (SCOPE_SERVER | SCOPE_LOCATION)))
        return;
    check_sets(import, scope);
    for (struct nginx_directive *child = scope->block->first; child; child = child->next) {
        if (!is_script(child))
            continue;
        if (end) {
            child->unreachable = true;
            import_add_note(import, IMPORT_UNNEEDED, child, "never reached: line %u ends the rewrite rules",
                            end->place.line);
        } else if (directive_is(child, "break")) {
            check_break(import, scope, child);
            end = child;
        } else if (directive_is(child, "return")) {
            end = child;
        } else if (directive_is(child, "set") && set_is_late(scope->block, child)) {
            import_add_note(import, IMPORT_CHANGED, child, "in sluice all set directives precede when and rewrite");
        }
    }
    if (!end || !directive_is(end, "return"))
        return;
    if (scope->kind == SCOPE_SERVER)
        check_locations(import, scope, end);
    if (has_access_rules(scope))
        import_add_note(import, IMPORT_CHANGED, end,
                        "sluice checks access rules before return, nginx after it");
}
