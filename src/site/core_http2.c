/*
 * Directives of HTTP/2.
 */
#include "base/limits.h"
#include "site/core.h"

#include <stddef.h>

#define AT(field) offsetof(struct core_http2, field)

static const struct directive directives[] = {
    {.name = "http2",
     .scopes = SCOPE_HTTP | SCOPE_SERVER,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(enabled),
     .default_value = "on",
     .example = "http2: off",
     .help = "Offer HTTP/2 (RFC 9113): by ALPN where a connection has TLS, and on plain connections to clients "
             "that begin with it (prior knowledge). For plain connections to an address with several servers, the "
             "value of the default server applies."},
    {.name = "http2_max_concurrent_streams",
     .scopes = SCOPE_HTTP | SCOPE_SERVER,
     .type = DIRECTIVE_NUMBER,
     .offset = AT(max_concurrent_streams),
     .low = 1,
     .high = LIMIT_H2_STREAMS,
     .default_value = "128",
     .example = "http2_max_concurrent_streams: 100",
     .help = "Requests of one HTTP/2 connection that are processed at once; further ones are rejected "
             "(REFUSED_STREAM), and clients repeat them."},
    {.name = "http2_body_preread_size",
     .scopes = SCOPE_HTTP | SCOPE_SERVER,
     .type = DIRECTIVE_SIZE,
     .offset = AT(body_preread_size),
     .low = 1024,
     .high = LIMIT_H2_WINDOW,
     .default_value = "64k",
     .example = "http2_body_preread_size: 128k",
     .help = "Bytes of a request body that an HTTP/2 client may send before the body is read: the initial window "
             "of a stream. While a body is read, the window grows with the measured bandwidth-delay product."},
    {.name = "http2_chunk_size",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SIZE,
     .offset = AT(chunk_size),
     .low = 1,
     .high = LIMIT_H2_FRAME,
     .default_value = "16k",
     .example = "http2_chunk_size: 8k",
     .help = "Maximum length of an HTTP/2 DATA frame. 16k: a frame fills one TLS record together with its head. A "
             "smaller value sends urgent responses sooner, and takes more CPU time per byte."},
    {.name = "http2_recv_buffer_size",
     .scopes = SCOPE_HTTP,
     .type = DIRECTIVE_SIZE,
     .ignored = &(const struct directive_ignored){"all connections of a worker receive into one buffer", "delete it"},
     .default_value = "256k",
     .example = "http2_recv_buffer_size: 256k",
     .help = "Accepted for compatibility with nginx, without effect: all connections of a worker receive into one "
             "buffer."},
    {0},
};

const struct conf_group core_http2_group = {
    .name = "http2",
    .directives = directives,
    .size = sizeof(struct core_http2),
};
