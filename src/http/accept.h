/*
 * Media type preferences of a client (Accept, RFC 9110 12.5.1).
 */
#ifndef HTTP_ACCEPT_H
#define HTTP_ACCEPT_H

#include "http/headers.h"

/*
 * The weight of a type ("text/html") in thousandths: that of the most specific matching range; 1000 without the
 * field, 0 if not acceptable. Media type parameters are ignored.
 */
unsigned accept_weight(const struct headers *fields, struct str type);

#endif
