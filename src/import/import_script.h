/*
 * Properties of the directives that nginx runs in file order: set, if, rewrite, return, break. These functions write
 * nothing.
 */
#ifndef IMPORT_IMPORT_SCRIPT_H
#define IMPORT_IMPORT_SCRIPT_H

#include "import/import_scope.h"

/* True if the directive has this name. */
bool directive_is(const struct nginx_directive *directive, const char *name);
/* True for set, if, rewrite, return and break. */
bool is_script(const struct nginx_directive *directive);
/* The first directive of that name that is not marked unreachable; NULL: none. */
struct nginx_directive *find_reachable(const struct nginx_directive *block, const char *name);

/* True if a matching rewrite ends the sequence. */
bool rewrite_ends(const struct nginx_directive *rewrite);
/* True if nginx runs nothing after the `if` when its condition is true. */
bool body_ends(const struct nginx_directive *body);
/* A rewrite of the scope that precedes the directive and is reachable; NULL: none. */
const struct nginx_directive *rewrite_before(const struct scope *scope, const struct nginx_directive *directive);
/* True if the words of the condition depend on the path or on captures. */
bool tests_path(const struct nginx_directive *directive);

/* True if a location of the block, at any depth, has an `if` or another condition. */
bool conditions_below(const struct nginx_directive *block);
/* True if the scope or an outer one restricts access. */
bool has_access_rules(const struct scope *scope);

/*
 * The words of an `if` without its parentheses, at least one: "$a", "=", "b" of "($a", "=", "b)". False: not a
 * condition that sluice supports.
 */
bool condition_words(struct import *import, const struct nginx_directive *directive, struct str **out_words,
                     size_t *out_count);

#endif
