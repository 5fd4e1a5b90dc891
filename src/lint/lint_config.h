/*
 * How rules look things up: by the name of a directive, as it was written and where it is
 * inherited from, so that no rule needs to know a module's struct.
 */
#ifndef LINT_LINT_CONFIG_H
#define LINT_LINT_CONFIG_H

#include "lint/lint.h"

/* The value of a directive that holds in a scope, from there or from an outer one; NULL: nobody wrote it. */
const struct conf_node *config_find_inherited(const struct conf_scope_values *values, const char *name);
/* The same of this scope alone. */
const struct conf_node *config_find(const struct conf_scope_values *values, const char *name);
/* A scalar's text, or empty. */
struct str config_text(const struct conf_node *node);
/* True where a switch is written as on. */
bool config_is_on(const struct conf_node *node);
/* Calls `each` for every scalar of a value: itself, a list's items, a map's values. */
typedef void config_scalar_found(struct lint *lint, const struct conf_node *scalar, void *owner);
void config_each_scalar(struct lint *lint, const struct conf_node *node, config_scalar_found *each, void *owner);
/* True where `text` is a whole word of the scalars at `node`. */
bool config_has_word(const struct conf_node *node, struct str text);
/* Where a location's key stands. */
struct conf_mark config_mark(const struct lint_place *place);

/* True where a server listens on an address of that kind which others can reach: not on the loopback. */
bool config_listens(const struct lint *lint, const struct virtual_server *server, bool ssl);
bool config_listens_outside(const struct lint *lint, const struct virtual_server *server);
/* True where somebody is kept out of the location: allow and deny, a password, a request to another location, limits of `internal`. */
bool config_is_guarded(const struct conf_scope_values *values);

#endif
