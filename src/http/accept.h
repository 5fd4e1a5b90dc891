/*
 * Which media types a client likes (Accept, RFC 9110 12.5.1).
 */
#ifndef HTTP_ACCEPT_H
#define HTTP_ACCEPT_H

#include "http/headers.h"

/*
 * How much the client likes a type ("text/html"), in thousandths: what the most exact range that holds it says, 1000 where nothing is said
 * of any type, 0 where it does not want it. Parameters of types do not count.
 */
unsigned accept_weight(const struct headers *fields, struct str type);

#endif
