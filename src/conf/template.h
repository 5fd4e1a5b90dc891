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
    struct str parameter;           /* what `get` is told where it is no family */
    bool late;                      /* its value may change up to the end of the subject's life: bytes, times */
    const char *type;               /* for the reference: text, number, bytes, seconds, address; NULL: of the configuration's own */
    const char *help;               /* one line */
};

/* Tables of variables: the server's and the modules'. */
struct variable_table {
    const struct variable *variables;
    size_t count;
    const struct variable_table *next;
};

/*
 * The variable of that name (without "$"): an exact name before a family, the longest family first;
 * for a family *out_parameter is the rest of `name` (never empty), otherwise the variable's own. NULL: none.
 */
const struct variable *variable_find(const struct variable_table *table, struct str name,
                                     struct str *out_parameter);
/* The nearest known name for a hint, or NULL. */
const char *variable_suggestion(const struct variable_table *table, struct str name);

struct template;                    /* immutable, in the configuration's arena */

/*
 * Compiles `text`, which is copied. "$name" and "${name}" are variables; "$$" is one dollar sign;
 * a "$" before anything else is itself; of "$12" the digit 1 is the name. "${UPPER}" is text: the environment was read before.
 * 0, -ENOMEM, or -EINVAL with the offset of the bad variable in *out_at and a sentence in *out_error (arena).
 */
MUST_CHECK int template_compile(struct arena *arena, struct str text, const struct variable_table *table,
                                const struct template **out_template, size_t *out_at,
                                struct str *out_error);
/*
 * The value for one subject (an exchange): a constant template costs nothing, and one variable alone
 * costs only its getter. Absent variables are empty. data NULL when out of memory.
 */
struct str template_eval(const struct template *template, const void *subject, struct arena *arena);

/* Its parts in their order: a constant, or the value of a variable, which may be absent (data NULL). */
size_t template_part_count(const struct template *template);
struct str template_part(const struct template *template, size_t index, const void *subject, struct arena *arena,
                         bool *out_variable);

/* Appends `value` to `out` in some notation: 0, -ENOMEM or -ENOBUFS. */
typedef int template_escape(struct buffer *out, struct str value);
/*
 * Appends the whole to a buffer, or nothing: each variable's value passes through `escape` (NULL: as it is),
 * the constant parts do not; an absent value gives `absent`. 0, -ENOMEM or -ENOBUFS.
 */
MUST_CHECK int template_write(const struct template *template, const void *subject, struct arena *arena,
                              struct buffer *out, template_escape *escape, struct str absent);
/*
 * The rest of a template, for a subject of which most is soon forgotten: late variables stay, all others are replaced by their values as template_write
 * writes them. Another template, which template_write takes; to be freed by free(). NULL when out of memory.
 */
struct template *template_settle(const struct template *template, const void *subject, struct arena *arena,
                                 template_escape *escape, struct str absent);
/* For access logs: quotes, backslashes, control bytes and bytes above 126 become \xHH. */
MUST_CHECK int template_escape_log(struct buffer *out, struct str value);
/* For the inside of a JSON string (RFC 8259 7); bytes that are no UTF-8 become U+FFFD. */
MUST_CHECK int template_escape_json(struct buffer *out, struct str value);

/* True where no variable is in it; then template_text is its value (otherwise its source). */
bool template_constant(const struct template *template);
struct str template_text(const struct template *template);
/* The text before the first variable. */
struct str template_front(const struct template *template);

#endif
