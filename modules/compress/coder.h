/*
 * Streaming encoders (and the gunzip decoder): bytes in, encoded (decoded) bytes out, as far as the output buffer
 * has room. A common interface of zlib, libbrotlienc and libzstd, independent of exchanges.
 */
#ifndef MODULES_COMPRESS_CODER_H
#define MODULES_COMPRESS_CODER_H

#include "http/coding.h"

enum coder_flush {
    CODER_MORE,                     /* more input follows */
    CODER_FLUSH,                    /* the output must be decodable up to the end of this input */
    CODER_END,                      /* end of the input */
};

struct coder_kind {
    size_t memory;                  /* upper bound of the memory of a coder in bytes, for any level and input */
    unsigned level_min, level_max;
    /* Opens a coder for `length` bytes of input; UINT64_MAX: unknown. NULL when out of memory. */
    void *(*open)(unsigned level, uint64_t length);
    /*
     * Consumes a prefix of *in, advancing it, and writes *out_length bytes to out, at most `room` (64 or more). 1:
     * all of *in is consumed and the flush is complete; 0: call again with the same flush and more room; -errno:
     * failed (-EBADMSG: the input is not gzip, or truncated).
     */
    int (*step)(void *coder, struct str *in, enum coder_flush flush, char *out, size_t room, size_t *out_length);
    void (*close)(void *coder);
};

/* Indexed by enum coding. */
extern const struct coder_kind *const coder_kinds[CODINGS];

extern const struct coder_kind coder_brotli, coder_gzip, coder_zstd;
/* Decodes gzip; `level` is ignored. */
extern const struct coder_kind coder_gunzip;

#endif
