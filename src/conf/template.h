/*
 * Values with variables: "https://$host${uri}?x=$arg_x", compiled at load time. The caller supplies the table of
 * variables.
 */
#ifndef CONF_TEMPLATE_H
#define CONF_TEMPLATE_H

#include "base/arena.h"
#include "base/buffer.h"

/* One variable, or a family ("arg_", "http_"): prefix is true, and `parameter` is the part after the prefix. */
struct variable {
    const char *name;
    bool prefix;
    /* Returns the value, or data NULL: undefined. May allocate from `arena`, or point into the subject. */
    struct str (*get)(const void *subject, struct str parameter, struct arena *arena);
    struct str parameter;           /* passed to `get` unless it is a family */
    bool late;                      /* its value changes until the end of the subject: bytes, times */
    /* For the reference: text, number, bytes, seconds, address; NULL: defined by the configuration. */
    const char *type;
    const char *help;               /* one line */
};

/* Tables of variables of the server and of modules. */
struct variable_table {
    const struct variable *variables;
    size_t count;
    const struct variable_table *next;
    /*
     * Returns the object of the subject that `get` takes, or NULL: the variables are undefined. Subjects of different
     * types can thus share rows. NULL: `get` takes the subject itself.
     */
    const void *(*part)(const void *subject);
};

/*
 * The variable of that name (without "$"): an exact name before a family, the longest family first;
 * for a family *out_parameter is the rest of `name` (never empty), otherwise the variable's own. NULL: none.
 */
const struct variable *variable_find(const struct variable_table *table, struct str name,
                                     struct str *out_parameter);
/* The table that contains a variable found by variable_find. */
const struct variable_table *variable_table_of(const struct variable_table *table, const struct variable *variable);
/* The most similar name for a hint, or NULL. */
const char *variable_suggestion(const struct variable_table *table, struct str name);

struct template;                    /* immutable, in the configuration's arena */

/*
 * Compiles a copy of `text`. "$name" and "${name}" are variables; "$$" is a dollar sign; "$" before other characters
 * is itself; in "$12" the name is "1". "${UPPER}" is text: the environment is already expanded. 0, -ENOMEM, or
 * -EINVAL with the offset of the unknown variable in *out_at and an error text in *out_error (arena).
 */
MUST_CHECK int template_compile(struct arena *arena, struct str text, const struct variable_table *table,
                                const struct template **out_template, size_t *out_at,
                                struct str *out_error);
/*
 * Evaluates the template for a subject (an exchange), without a copy if it is a constant or a single variable.
 * Undefined variables are empty. data is NULL when out of memory.
 */
struct str template_eval(const struct template *template, const void *subject, struct arena *arena);

/* The parts in order: a constant, or the value of a variable, which may be undefined (data NULL). */
size_t template_part_count(const struct template *template);
struct str template_part(const struct template *template, size_t index, const void *subject, struct arena *arena,
                         bool *out_variable);

/* Appends `value` to `out` in some notation: 0, -ENOMEM or -ENOBUFS. */
typedef int template_escape(struct buffer *out, struct str value);
/*
 * Appends the whole value or nothing: variables pass through `escape` (NULL: unchanged), constants do not; an
 * undefined value gives `absent`. 0, -ENOMEM or -ENOBUFS.
 */
MUST_CHECK int template_write(const struct template *template, const void *subject, struct arena *arena,
                              struct buffer *out, template_escape *escape, struct str absent);
/*
 * Evaluates all but the late variables, so that the memory of the other values can be freed. The result is a template
 * for template_write with the same `escape` and `absent`; it must not outlive the configuration of `template`. The
 * caller frees it by free(). NULL when out of memory.
 */
struct template *template_finish(const struct template *template, const void *subject, struct arena *arena,
                                 template_escape *escape, struct str absent);
/* For access logs: quotes, backslashes, control bytes and bytes above 126 become \xHH. */
MUST_CHECK int template_escape_log(struct buffer *out, struct str value);
/* For JSON strings (RFC 8259 7); invalid UTF-8 becomes U+FFFD. */
MUST_CHECK int template_escape_json(struct buffer *out, struct str value);

/* True if the template has no variable. template_text returns the value of such a template, the source of others. */
bool template_constant(const struct template *template);
struct str template_text(const struct template *template);
/* The text before the first variable. */
struct str template_front(const struct template *template);

#endif
