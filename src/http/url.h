/*
 * Parses and normalises request targets and Host (RFC 9112 3.2, RFC 3986). A normalised path cannot leave a document
 * root.
 */
#ifndef HTTP_URL_H
#define HTTP_URL_H

#include "base/arena.h"

struct url_target {
    /* Origin-form as received; absolute-form reduced to path and query (at least "/"). */
    struct str target;
    struct str path;                /* decoded, dot segments removed, begins with "/" */
    struct str query;               /* raw; data NULL: none */
    struct str authority;           /* of absolute-form; else empty */
    bool asterisk;                  /* OPTIONS * */
    bool bare;                      /* absolute-form without path and query */
    bool traverses;                 /* the path had a ".." segment before normalisation */
};

/*
 * Splits and normalises a request target: percent-decoding (malformed escapes, %00 and control bytes are rejected),
 * dot segments (RFC 3986 5.2.4; a path above "/" is rejected), repeated slashes merged if `merge_slashes`,
 * fragments rejected. 0, -EINVAL (400), or -ENOMEM.
 */
MUST_CHECK int url_target_parse(struct arena *arena, struct str target, bool merge_slashes,
                                struct url_target *out_target);
/* Normalises a decoded path ("/a/../b" of a rewrite or error_page). 0, -EINVAL or -ENOMEM. */
MUST_CHECK int url_path_normalise(struct arena *arena, struct str path, bool merge_slashes, struct str *out_path);
/* Parses Host (RFC 9110 7.2): name in lower case, IPv6 in brackets, port. 0, -EINVAL or -ENOMEM. */
MUST_CHECK int url_host_parse(struct arena *arena, struct str text, struct str *out_host, uint16_t *out_port);
/* True if a segment begins with a dot (.git, .env), except .well-known (RFC 8615). */
bool url_path_hidden(struct str path);
/* True if a segment is "..". */
bool url_path_traverses(struct str path);
/* Percent-encodes a path for Location or a link (RFC 3986 3.3). data NULL when out of memory. */
struct str url_path_encode(struct arena *arena, struct str path);
/* Removes the port of "name:port" or "[::1]:port", for SNI and certificates; data NULL stays NULL. */
struct str url_without_port(struct str authority);

#endif
