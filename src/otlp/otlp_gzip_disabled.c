/*
 * Replaces otlp_gzip.c in a build without zlib.
 */
#include "otlp/otlp_gzip.h"

#include <errno.h>

const bool otlp_gzip_built = false;

int otlp_gzip(struct str body, struct buffer *out)
{
    return -ENOTSUP;
}
