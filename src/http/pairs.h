/*
 * Lists of name=value pairs: the query of a URL ("a=1&b=2") and the field Cookie ("a=1; b=2").
 */
#ifndef HTTP_PAIRS_H
#define HTTP_PAIRS_H

#include "base/str.h"

/*
 * The value of the first parameter of this name (ignoring ASCII case, as nginx does): a slice of `query`; data NULL:
 * none.
 */
struct str query_find(struct str query, struct str name);
/*
 * The value of the first cookie of this name: a slice of `cookies`; data NULL: none. White space around a pair is
 * skipped.
 */
struct str cookie_find(struct str cookies, struct str name);

#endif
