/*
 * The walk over nginx's blocks: each directive is carried by its rule, or unchanged if sluice has one of that name.
 */
#include "import/import_scope.h"

/* Handles a directive without a rule and without a directive of the same name in this scope. */
static void translate_unknown(struct import *import, const struct scope *scope,
                              const struct nginx_directive *directive)
{
    const struct directive *elsewhere = find_sluice_directive(import, directive->name, ~0u);
    struct str why = missing_reason(import, directive->name);

    if (str_equal(directive->name, STR("include")))
        import_omit(import, scope->map, directive, "the file does not exist or cannot be read");
    else if (elsewhere)
        import_omit(import, scope->map, directive, "in sluice it is not allowed in %s",
                    conf_scope_name(scope->kind));
    else if (why.data)
        import_omit(import, scope->map, directive, STR_FMT, STR_ARG(why));
    else
        import_omit(import, scope->map, directive, "sluice has no directive of that name");
}

void translate_directive(struct import *import, const struct scope *scope,
                         const struct nginx_directive *directive)
{
    const struct rule *rule = rule_find(import, directive->name, scope->kind);

    if (directive->unreachable)
        return;
    if (rule)
        rule->translate(import, scope, directive, rule);
    else if (find_sluice_directive(import, directive->name, scope->kind) && !directive->block)
        translate_unchanged(import, scope, directive, NULL);
    else
        translate_unknown(import, scope, directive);
}

/* The order of output: plain directives, then conditions and groups of servers, then blocks. */
static unsigned directive_rank(const struct nginx_directive *directive)
{
    static const char *const late[] = {"if", "limit_except", "upstream", "server", "location"};

    for (unsigned i = 0; directive->block && !directive->sets && i < sizeof(late) / sizeof(late[0]); i++) {
        if (str_equal(directive->name, str_from(late[i])))
            return i < 2 ? 1 : i < 3 ? 2 : 3;
    }
    return 0;
}

void translate_scope(struct import *import, const struct scope *outer, enum conf_scope kind,
                     const struct nginx_directive *block, struct yaml_builder *map)
{
    const struct scope scope = {.kind = kind,
                                .outer = outer,
                                .block = block,
                                .map = map,
                                .condition = outer && outer->kind != SCOPE_HTTP && kind == SCOPE_LOCATION &&
                                             !str_equal(block->name, STR("location"))};

    if (!map) {
        import->out_of_memory = true;
        return;
    }
    map->scope = kind;
    check_order(import, &scope);
    check_inheritance(import, &scope);
    for (unsigned turn = 0; turn < 4; turn++) {
        for (const struct nginx_directive *child = block->first; child; child = child->next) {
            if (directive_rank(child) == turn)
                translate_directive(import, &scope, child);
        }
    }
}
