/*
 * Lookups for rules: directives by name, as written, with inheritance, so that rules are independent of modules'
 * structs.
 */
#ifndef LINT_LINT_CONFIG_H
#define LINT_LINT_CONFIG_H

#include "lint/lint.h"

/* The value of a directive in effect in a scope, its own or inherited; NULL: not written. */
const struct conf_node *config_find_inherited(const struct conf_scope_values *values, const char *name);
/* The value written in this scope itself. */
const struct conf_node *config_find(const struct conf_scope_values *values, const char *name);
/* A scalar's text, or empty. */
struct str config_text(const struct conf_node *node);
/* True if a switch is written as on. */
bool config_is_on(const struct conf_node *node);
/* Calls `each` for every scalar of a value: itself, a list's items, a map's values. */
typedef void config_scalar_found(struct lint *lint, const struct conf_node *scalar, void *owner);
void config_each_scalar(struct lint *lint, const struct conf_node *node, config_scalar_found *each, void *owner);
/* True if `text` is a whole word of the scalars at `node`. */
bool config_has_word(const struct conf_node *node, struct str text);
/* The position of a location's key. */
struct conf_mark config_mark(const struct lint_place *place);

/* True if the server has an address with ssl, or with `ssl` false, one without it. */
bool config_listens(const struct lint *lint, const struct virtual_server *server, bool ssl);
/* True if the server has an address other than loopback. */
bool config_listens_outside(const struct lint *lint, const struct virtual_server *server);
/*
 * True if access to the location is restricted: deny, a password, a subrequest, a signed link, a client certificate, or
 * `internal`.
 */
bool config_is_guarded(const struct conf_scope_values *values);

#endif
