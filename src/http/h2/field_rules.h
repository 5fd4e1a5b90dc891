/*
 * The rules for fields that make a message malformed (RFC 9113 8.2).
 */
#ifndef HTTP_H2_FIELD_RULES_H
#define HTTP_H2_FIELD_RULES_H

#include "base/str.h"

#include <stdbool.h>

/* True if the name is a token without upper case (RFC 9113 8.2.1). */
bool h2_field_is_name(struct str name);
/* True if the value has no control byte, and no space at either end (RFC 9113 8.2.1). */
bool h2_field_is_value(struct str value);
/* True for connection-specific fields, and for TE with another value than "trailers" (RFC 9113 8.2.2). */
bool h2_field_is_connection_specific(struct str name, struct str value);

#endif
