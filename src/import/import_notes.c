/*
 * Notes about lists (add_header and similar): in nginx a directive of an inner scope replaces all outer ones; in sluice
 * it is added to them, and replaces those with the same name.
 */
#include "import/import_scope.h"

static const char *const growing[] = {"add_header",          "add_trailer",        "proxy_set_header",
                                      "proxy_hide_header",   "proxy_pass_header",  "fastcgi_param",
                                      "fastcgi_hide_header", "fastcgi_pass_header"};

/* True if the scope itself has the directive for this name. */
static bool is_repeated(const struct nginx_directive *block, struct str directive, struct str name)
{
    for (const struct nginx_directive *child = block->first; child; child = child->next) {
        if (str_equal(child->name, directive) && child->count && str_equal_nocase(child->words[0], name))
            return true;
    }
    return false;
}

/* A directive of the nearest outer scope that remains effective here; NULL: none. */
static const struct nginx_directive *inherited_from(const struct scope *scope, struct str directive)
{
    const struct scope *outer = scope->outer;

    while (outer && !nginx_tree_find(outer->block, directive))
        outer = outer->outer;
    for (const struct nginx_directive *child = outer ? outer->block->first : NULL; child;
         child = child->next) {
        if (str_equal(child->name, directive) && child->count &&
            !is_repeated(scope->block, directive, child->words[0]))
            return child;
    }
    return NULL;
}

void check_inheritance(struct import *import, const struct scope *scope)
{
    for (size_t i = 0; i < sizeof(growing) / sizeof(growing[0]); i++) {
        struct str name = str_from(growing[i]);
        const struct nginx_directive *own = nginx_tree_find(scope->block, name);
        const struct nginx_directive *inherited = own ? inherited_from(scope, name) : NULL;

        if (inherited)
            import_add_note(import, IMPORT_CHANGED, own,
                            "in nginx this replaces the directives of outer scopes, such as " STR_FMT
                            " in line %u; in sluice it adds to them",
                            STR_ARG(inherited->words[0]), inherited->place.line);
    }
}
