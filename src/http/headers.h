/*
 * Header fields in the order in which they came: an array in the exchange's arena.
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

/* The first field of that name (ASCII case does not matter), or NULL. */
struct header *headers_find(const struct headers *headers, struct str name);
/* The next one after `previous`. */
struct header *headers_next(const struct headers *headers, struct str name, const struct header *previous);
/* The value of the first one, or a str with data NULL. */
struct str headers_value(const struct headers *headers, struct str name);
/* Makes room for more; headers_add does where there is none. 0 or -ENOMEM. */
MUST_CHECK int headers_grow(struct headers *headers, struct arena *arena);
/* Appends; name and value are not copied. 0 or -ENOMEM. */
MUST_CHECK static inline int headers_add(struct headers *headers, struct arena *arena, struct str name, struct str value)
{
    int error = headers->count == headers->capacity ? headers_grow(headers, arena) : 0;

    if (error == 0)
        headers->items[headers->count++] = (struct header){name, value};
    return error;
}
/* Replaces all fields of that name by one. 0 or -ENOMEM. */
MUST_CHECK int headers_set(struct headers *headers, struct arena *arena, struct str name, struct str value);
/* Appends copies of all fields, which lie in the arena. 0 or -ENOMEM. */
MUST_CHECK int headers_copy(struct headers *headers, struct arena *arena, const struct headers *from);
/*
 * Joins the values of all fields whose name matches `wanted` (str_equal_nocase, or a rule of the caller's), with `separator` between them:
 * ", " (RFC 9110 5.3), "; " for Cookie (RFC 6265 4.2.1). A single value is returned as it is, not copied. 0 or -ENOMEM;
 * (*out_value).data is NULL where there is no such field.
 */
MUST_CHECK int headers_join(const struct headers *headers, bool (*matches)(struct str wanted, struct str name), struct str wanted,
                            struct str separator, struct arena *arena, struct str *out_value);
void headers_remove(struct headers *headers, struct str name);
/*
 * Removes every field whose name is one of those in `named`, by a hash index of these in the arena: the time is that of both lists, not
 * of their product. 0 or -ENOMEM.
 */
MUST_CHECK int headers_remove_named(struct headers *headers, struct arena *arena, const struct headers *named);

/* The same name for a CGI, for which "-" and "_" are equal (RFC 3875 4.1.18). */
bool header_same_variable(struct str a, struct str b);
/* The name is written with "_" and imitates a field that the server itself evaluates, sets or leaves out: "X_Forwarded_For". */
bool header_imitates(struct str name);

/* Walks a comma-separated list (RFC 9110 5.6.1) over all fields of one name: quoted strings kept whole, empty members skipped. */
struct header_list {
    const struct headers *headers;
    struct str name;
    const struct header *current;
    struct str rest;
};
/* Begins at the first field of that name; `headers` and `name` stay the caller's, and as they are. */
void header_list_start(struct header_list *list, const struct headers *headers, struct str name);
/* false at the end. */
bool header_list_next(struct header_list *list, struct str *out_member);
/* True where one member equals `token` without case (parameters after ';' are ignored). */
bool headers_list_has(const struct headers *headers, struct str name, struct str token);

#endif
