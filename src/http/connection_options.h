/*
 * The options of Connection (RFC 9110 7.6.1), read once for a message: three that HTTP/1.1 defines, and names of
 * fields that are meant for the next hop alone.
 */
#ifndef HTTP_CONNECTION_OPTIONS_H
#define HTTP_CONNECTION_OPTIONS_H

#include "base/limits.h"
#include "http/headers.h"

struct connection_options {
    bool close, keep_alive, upgrade;
    unsigned count;                 /* of `names` */
    struct str names[LIMIT_CONNECTION_OPTIONS]; /* the other options: slices of the field values, without parameters */
};

/*
 * Reads all Connection fields of `headers`. 0, or -E2BIG where they have more than LIMIT_CONNECTION_OPTIONS members, repeated ones
 * counted: a message is compared with each option, field by field, so their number is bounded. Then *out_options is not to be used.
 */
MUST_CHECK int connection_options_read(const struct headers *headers, struct connection_options *out_options);

/* True where `name` is among options->names (ASCII case does not matter): such a field is not forwarded. */
bool connection_options_name(const struct connection_options *options, struct str name);

#endif
