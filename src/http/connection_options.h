/*
 * The members of Connection (RFC 9110 7.6.1), parsed once per message: the options of HTTP/1.1, and names of
 * hop-by-hop fields.
 */
#ifndef HTTP_CONNECTION_OPTIONS_H
#define HTTP_CONNECTION_OPTIONS_H

#include "base/limits.h"
#include "http/headers.h"

struct connection_options {
    bool close, keep_alive, upgrade;
    unsigned count;                             /* of `names` */
    struct str names[LIMIT_CONNECTION_OPTIONS]; /* further options: slices of the field values, without parameters */
};

/*
 * Parses all Connection fields. 0, or -E2BIG with more than LIMIT_CONNECTION_OPTIONS members, repeated ones
 * included; *out_options is then invalid. The limit bounds the comparisons of every field with every option.
 */
MUST_CHECK int connection_options_read(const struct headers *headers, struct connection_options *out_options);

/* True if `name` is in options->names (ignoring ASCII case): the field must not be forwarded. */
bool connection_options_name(const struct connection_options *options, struct str name);

#endif
