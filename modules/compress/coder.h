/*
 * One coding of a stream: bytes in, encoded bytes out (or, of gunzip, decoded ones), at the pace of whoever has room. zlib, libbrotlienc and libzstd,
 * told alike; none of them sees an exchange.
 */
#ifndef MODULES_COMPRESS_CODER_H
#define MODULES_COMPRESS_CODER_H

#include "http/coding.h"

enum coder_flush {
    CODER_MORE,                     /* more will come */
    CODER_FLUSH,                    /* what has come must be readable from what leaves */
    CODER_END,                      /* nothing more will come */
};

struct coder_kind {
    size_t memory;                  /* bytes that a coder needs at most, whatever its level and what it is fed with */
    unsigned level_least, level_most;
    /* `length` bytes will come, UINT64_MAX: nobody knows. NULL: out of memory. */
    void *(*open)(unsigned level, uint64_t length);
    /*
     * Takes of *in, which becomes the rest of it, and writes *out_length bytes to out, at most `room` (64 or more). 1: all of *in was taken, and what was asked is done;
     * 0: it wants to be called again with the same flush and more room; -errno: broken (-EBADMSG: what came is no gzip, or not all of it).
     */
    int (*step)(void *coder, struct str *in, enum coder_flush flush, char *out, size_t room, size_t *out_length);
    void (*close)(void *coder);
};

/* By enum coding. */
extern const struct coder_kind *const coder_kinds[CODINGS];

extern const struct coder_kind coder_brotli, coder_gzip, coder_zstd;
/* The way back from gzip; it has no levels. */
extern const struct coder_kind coder_gunzip;

#endif
