/*
 * gzip (RFC 1952) of the body of a request: by zlib, or in a build without it (otlp_gzip_disabled.c) not at all.
 */
#ifndef OTLP_OTLP_GZIP_H
#define OTLP_OTLP_GZIP_H

#include "base/buffer.h"

extern const bool otlp_gzip_built;

/* Compresses `body` into `out`, which is empty. 0, -ENOMEM, -ENOBUFS past its cap, or -ENOTSUP without zlib. */
MUST_CHECK int otlp_gzip(struct str body, struct buffer *out);

#endif
