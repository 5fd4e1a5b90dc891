/*
 * Header fields in the order received: an array in the exchange's arena.
 */
#ifndef HTTP_HEADERS_H
#define HTTP_HEADERS_H

#include "base/arena.h"

struct header {
    struct str name;
    struct str value;
};

struct headers {
    struct header *items;
    unsigned count;
    unsigned capacity;
};

/* The first field with this name (ignoring ASCII case), or NULL. */
struct header *headers_find(const struct headers *headers, struct str name);
/* The next one after `previous`, or NULL. */
struct header *headers_next(const struct headers *headers, struct str name, const struct header *previous);
/* The value of the first one, or data NULL. */
struct str headers_value(const struct headers *headers, struct str name);
/* Makes room for more fields; headers_add calls it. 0 or -ENOMEM. */
MUST_CHECK int headers_grow(struct headers *headers, struct arena *arena);
/* Appends a field; name and value are not copied. 0 or -ENOMEM. */
MUST_CHECK static inline int headers_add(struct headers *headers, struct arena *arena, struct str name,
                                         struct str value)
{
    int error = headers->count == headers->capacity ? headers_grow(headers, arena) : 0;

    if (error == 0)
        headers->items[headers->count++] = (struct header){name, value};
    return error;
}
/* Replaces all fields with this name by one. 0 or -ENOMEM. */
MUST_CHECK int headers_set(struct headers *headers, struct arena *arena, struct str name, struct str value);
/* Appends all fields of `from`, copied to the arena. 0 or -ENOMEM. */
MUST_CHECK int headers_copy(struct headers *headers, struct arena *arena, const struct headers *from);
/*
 * Joins the values of all fields whose name matches `wanted` (by str_equal_nocase or a rule of the caller) with
 * `separator`: ", " (RFC 9110 5.3), "; " for Cookie (RFC 6265 4.2.1). A single value is not copied. 0 or -ENOMEM;
 * (*out_value).data is NULL without such a field.
 */
MUST_CHECK int headers_join(const struct headers *headers, bool (*matches)(struct str wanted, struct str name),
                            struct str wanted, struct str separator, struct arena *arena, struct str *out_value);
/* Removes all fields with this name. */
void headers_remove(struct headers *headers, struct str name);
/*
 * Removes every field whose name occurs in `named`, through a hash index in the arena: linear time in both lists. 0
 * or -ENOMEM.
 */
MUST_CHECK int headers_remove_named(struct headers *headers, struct arena *arena, const struct headers *named);

/* True if both names are the same CGI variable, for which "-" and "_" are equal (RFC 3875 4.1.18). */
bool header_same_variable(struct str a, struct str b);
/* True if the name imitates, with "_", a field that the server evaluates, sets or removes: "X_Forwarded_For". */
bool header_imitates(struct str name);

/*
 * Removes the bytes up to the separator, or all, from the front of a field value, and returns them, as str_cut does; a
 * separator in a quoted string (RFC 9110 5.6.4) is a part of it.
 */
struct str header_cut(struct str *rest, char separator);

/*
 * Iterates over the comma-separated list (RFC 9110 5.6.1) of all fields with one name. Quoted strings stay whole;
 * empty members are skipped.
 */
struct header_list {
    const struct headers *headers;
    struct str name;
    const struct header *current;
    struct str rest;
};
/* Starts at the first field with this name; `headers` and `name` must not change meanwhile. */
void header_list_start(struct header_list *list, const struct headers *headers, struct str name);
/* False at the end. */
bool header_list_next(struct header_list *list, struct str *out_member);
/* True if a member equals `token`, ignoring case and parameters after ';'. */
bool headers_list_has(const struct headers *headers, struct str name, struct str token);

#endif
