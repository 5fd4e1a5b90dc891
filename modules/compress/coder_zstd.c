/*
 * zstd (RFC 8878) by libzstd. A small window keeps the memory of both peers low (RFC 9659 limits it to 8 MB).
 */
#include "coder.h"

#include <errno.h>
#include <zstd.h>

/* Powers of two, except TABLES_FIT: the highest level whose default tables do not exceed the window. */
enum { WINDOW_MAX = 17, HASH_MAX = 17, CHAIN_MAX = 16, TABLES_FIT = 3 };

static int set_sizes(ZSTD_CCtx *stream, unsigned level)
{
    const int sizes[][2] = {
        {ZSTD_c_windowLog, WINDOW_MAX}, {ZSTD_c_hashLog, HASH_MAX}, {ZSTD_c_chainLog, CHAIN_MAX}};

    for (size_t i = 0; i < (level > TABLES_FIT ? 3 : 1); i++) {
        if (ZSTD_isError(ZSTD_CCtx_setParameter(stream, (ZSTD_cParameter)sizes[i][0], sizes[i][1])))
            return -EINVAL;
    }
    return 0;
}

static void *zstd_open(unsigned level, uint64_t length)
{
    ZSTD_CCtx *stream = ZSTD_createCCtx();

    if (!stream)
        return NULL;
    if (ZSTD_isError(ZSTD_CCtx_setParameter(stream, ZSTD_c_compressionLevel, (int)level)) ||
        set_sizes(stream, level) < 0 ||
        ZSTD_isError(
            ZSTD_CCtx_setPledgedSrcSize(stream, length < UINT64_MAX ? length : ZSTD_CONTENTSIZE_UNKNOWN))) {
        ZSTD_freeCCtx(stream);
        return NULL;
    }
    return stream;
}

static int zstd_step(void *coder, struct str *in, enum coder_flush flush, char *out, size_t room,
                     size_t *out_length)
{
    static const ZSTD_EndDirective directives[] = {
        [CODER_MORE] = ZSTD_e_continue, [CODER_FLUSH] = ZSTD_e_flush, [CODER_END] = ZSTD_e_end};
    ZSTD_inBuffer input = {.src = in->data, .size = in->length};
    ZSTD_outBuffer output = {.dst = out, .size = room};
    size_t left = ZSTD_compressStream2(coder, &output, &input, directives[flush]);

    if (ZSTD_isError(left))
        return -EIO;
    *in = str_skip(*in, input.pos);
    *out_length = output.pos;
    return flush == CODER_MORE ? in->length == 0 && output.pos < output.size : left == 0;
}

static void zstd_close(void *coder)
{
    ZSTD_freeCCtx(coder);
}

const struct coder_kind coder_zstd = {
    .memory = 3 * 1024 * 1024,
    .level_min = 1,
    .level_max = 9,
    .open = zstd_open,
    .step = zstd_step,
    .close = zstd_close,
};
