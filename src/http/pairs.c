/*
 * Finds a pair by its name. A member without "=" is not a pair.
 */
#include "http/pairs.h"

#define ABSENT ((struct str){NULL, 0})

struct str query_find(struct str query, struct str name)
{
    while (query.data) {
        struct str value = str_cut(&query, '&');
        struct str key = str_cut(&value, '=');

        if (value.data && str_equal_nocase(key, name))
            return value;
    }
    return ABSENT;
}

struct str cookie_find(struct str cookies, struct str name)
{
    while (cookies.data) {
        struct str value = str_trim(str_cut(&cookies, ';'));
        struct str key = str_cut(&value, '=');

        if (value.data && str_equal(key, name))
            return value;
    }
    return ABSENT;
}
