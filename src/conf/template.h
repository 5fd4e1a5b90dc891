/*
 * Values with variables: "https://$host${uri}?x=$arg_x", compiled at load. The
 * engine knows no variable itself: whoever compiles brings the table.
 */
#ifndef CONF_TEMPLATE_H
#define CONF_TEMPLATE_H

#include "base/arena.h"
#include "base/buffer.h"

/* One variable, or a family ("arg_", "http_": prefix true, `parameter` is what follows the prefix). */
struct variable {
    const char *name;
    bool prefix;
    /* The value; data NULL: there is none. May allocate from `arena`, or point into the subject. */
    struct str (*get)(const void *subject, struct str parameter, struct arena *arena);
};

/* Tables of variables: the server's and the modules'. */
struct variable_table {
    const struct variable *variables;
    size_t count;
    const struct variable_table *next;
};

const struct variable *variable_find(const struct variable_table *table, struct str name, struct str *out_parameter);
/* The nearest known name for a hint, or NULL. */
const char *variable_nearest(const struct variable_table *table, struct str name);

struct template;                    /* immutable, in the configuration's arena */

/*
 * Compiles `text`. A dollar sign is written "$$"... only where a name follows does "$" begin a variable. 0, -ENOMEM, or -EINVAL with the offset of the
 * bad variable in *out_at and a sentence in *out_error (arena).
 */
MUST_CHECK int template_compile(struct arena *arena, struct str text, const struct variable_table *table,
                                const struct template **out_template, size_t *out_at, struct str *out_error);
/* The value for one subject (an exchange): a constant template costs nothing. data NULL when out of memory. */
struct str template_eval(const struct template *template, const void *subject, struct arena *arena);
/* Appends to a buffer, each variable's value passed through `escape` (NULL: as it is; JSON and log escaping otherwise); absent values give `absent`. */
MUST_CHECK int template_write(const struct template *template, const void *subject, struct arena *arena, struct buffer *out,
                              int (*escape)(struct buffer *out, struct str value), struct str absent);
/* True where no variable is in it; then template_text is its text. */
bool template_constant(const struct template *template);
struct str template_text(const struct template *template);

#endif
