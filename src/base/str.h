/*
 * A string view: pointer and length, without a terminating NUL, not owned. All parsers use it, so that no length
 * depends on a NUL.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include "base/must_check.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

struct str {
    const char *data;
    size_t length;
};

#define STR(literal)      ((struct str){"" literal, sizeof(literal) - 1})
#define STR_FMT           "%.*s"
#define STR_ARG(s)        (int)((s).length > INT_MAX ? INT_MAX : (s).length), (s).data

/* s, or an empty text if its data is NULL. */
static inline struct str str_or_empty(struct str s)
{
    return s.data ? s : STR("");
}

/* A view of `length` bytes owned by the caller. */
static inline struct str str_of(const char *data, size_t length)
{
    return (struct str){data, length};
}

/* A view of a terminated string; NULL gives the empty str. */
static inline struct str str_from(const char *text)
{
    return (struct str){text, text ? strlen(text) : 0};
}

/* True if the length is 0, also with a pointer. */
static inline bool str_empty(struct str s)
{
    return s.length == 0;
}

/* Bytes [from, to) of s, both clamped to its length; empty where from >= to. */
static inline struct str str_slice(struct str s, size_t from, size_t to)
{
    if (to > s.length)
        to = s.length;
    if (from > to)
        from = to;
    return (struct str){from ? s.data + from : s.data, to - from};
}

/* s without its first `count` bytes (all of them where it is shorter). */
static inline struct str str_skip(struct str s, size_t count)
{
    return str_slice(s, count, s.length);
}

/* Compares byte for byte. */
static inline bool str_equal(struct str a, struct str b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}
/* Compares `length` bytes of each, ignoring ASCII case; independent of the locale. */
bool str_same_letters(const char *a, const char *b, size_t length);
/* Compares whole strings, ignoring ASCII case (field names, RFC 9110 5.1). */
static inline bool str_equal_nocase(struct str a, struct str b)
{
    return a.length == b.length && str_same_letters(a.data, b.data, a.length);
}
static inline bool str_starts(struct str s, struct str prefix)
{
    return s.length >= prefix.length && (prefix.length == 0 || memcmp(s.data, prefix.data, prefix.length) == 0);
}
/* True if s ends with `suffix`. */
bool str_ends(struct str s, struct str suffix);
/* Orders as memcmp; a prefix comes first. */
int str_compare(struct str a, struct str b);

/* The index of the first `byte` or `needle` in s (str_rfind: of the last `byte`), or -1. */
ssize_t str_find(struct str s, char byte);
ssize_t str_rfind(struct str s, char byte);
ssize_t str_search(struct str s, struct str needle);

/* s without leading and trailing spaces and tabs (OWS, RFC 9110 5.6.3). */
struct str str_trim(struct str s);

/*
 * Cuts `*rest` at the first `separator`: returns the part before it and sets `*rest` to the part after it, or to
 * data NULL at the end. A loop `while (rest.data)` visits every part, empty ones included.
 */
struct str str_cut(struct str *rest, char separator);

/*
 * Parses s as decimal digits, without sign or space. 0, -EINVAL if it is empty or has another character, -ERANGE
 * past UINT64_MAX.
 */
MUST_CHECK int str_to_u64(struct str s, uint64_t *out_value);

#define STR_U64_DIGITS 20           /* of UINT64_MAX in decimal */
/* Writes a number in decimal at `at`, which has room for STR_U64_DIGITS bytes; returns the end. */
char *str_write_u64(char *at, uint64_t number);

/* The edit distance of two words, for "did you mean"; SIZE_MAX if one of them is longer than 64 bytes. */
size_t str_distance(struct str a, struct str b);

/* Lowers ASCII letters, independent of the locale. */
static inline char str_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

/* The value of a hexadecimal digit in either case, or -1. */
static inline int str_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = str_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
