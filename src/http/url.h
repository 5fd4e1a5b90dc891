/*
 * Request targets and Host (RFC 9112 3.2, RFC 3986): parsing and normalising.
 * Nothing that comes out of here can leave a document root.
 */
#ifndef HTTP_URL_H
#define HTTP_URL_H

#include "base/arena.h"

struct url_target {
    struct str target;              /* origin-form, as it came: absolute-form reduced to path and query (at least "/") */
    struct str path;                /* decoded, dot segments removed, begins with "/" */
    struct str query;               /* raw, data NULL where there is none */
    struct str authority;           /* of absolute-form and authority-form, else empty */
    bool asterisk;                  /* OPTIONS * */
    bool bare;                      /* absolute-form with neither path nor query */
    bool climbs;                    /* a segment of the path was ".." before it was normalised */
};

/*
 * Splits and normalises a request target: percent-decoding (bad escapes, %00 and control bytes are refused), dot segments (RFC 3986
 * 5.2.4; climbing above "/" is refused), repeated slashes merged when `merge_slashes`, fragments refused. 0, or -EINVAL (400).
 */
MUST_CHECK int url_target_parse(struct arena *arena, struct str target, bool merge_slashes, struct url_target *out_target);
/* The same for an internal path ("/a/../b" of a rewrite or error_page). */
MUST_CHECK int url_path_normalise(struct arena *arena, struct str path, bool merge_slashes, struct str *out_path);
/* Host (RFC 9110 7.2): name in lower case, IPv6 in brackets, port. 0, or -EINVAL. */
MUST_CHECK int url_host_parse(struct arena *arena, struct str text, struct str *out_host, uint16_t *out_port);
/* A segment begins with a dot (.git, .env), but for .well-known (RFC 8615): it is private. */
bool url_path_hidden(struct str path);
/* A segment is "..": such a path may lead out of where it begins. */
bool url_path_climbs(struct str path);
/* Percent-encodes a path for a Location header or a link (RFC 3986 3.3). data NULL when out of memory. */
struct str url_path_encode(struct arena *arena, struct str path);
/* "name:port", "[::1]:port" without its port, for SNI and certificates; data NULL stays so. */
struct str url_without_port(struct str authority);

#endif
