/*
 * br (RFC 7932) by libbrotlienc. The window is small: with a larger one an encoder of level 9 uses tens of megabytes.
 * Levels above 9 take a tenth of a second per piece of input, and suit precompressed files only.
 */
#include "coder.h"

#include <brotli/encode.h>
#include <errno.h>

enum { WINDOW_MAX = 16, BLOCK_MAX = 16 };

static void *brotli_open(unsigned level, uint64_t length)
{
    BrotliEncoderState *state = BrotliEncoderCreateInstance(NULL, NULL, NULL);
    uint32_t window = WINDOW_MAX;

    if (!state)
        return NULL;
    while (window > BROTLI_MIN_WINDOW_BITS && length < (1u << (window - 1)) - 16)
        window--;
    if (!BrotliEncoderSetParameter(state, BROTLI_PARAM_QUALITY, level) ||
        !BrotliEncoderSetParameter(state, BROTLI_PARAM_LGWIN, window) ||
        !BrotliEncoderSetParameter(state, BROTLI_PARAM_LGBLOCK, BLOCK_MAX) ||
        !BrotliEncoderSetParameter(state, BROTLI_PARAM_SIZE_HINT,
                                   length < UINT32_MAX ? (uint32_t)length : 0)) {
        BrotliEncoderDestroyInstance(state);
        return NULL;
    }
    return state;
}

static int brotli_step(void *coder, struct str *in, enum coder_flush flush, char *out, size_t room,
                       size_t *out_length)
{
    static const BrotliEncoderOperation operations[] = {[CODER_MORE] = BROTLI_OPERATION_PROCESS,
                                                        [CODER_FLUSH] = BROTLI_OPERATION_FLUSH,
                                                        [CODER_END] = BROTLI_OPERATION_FINISH};
    const uint8_t *next_in = (const uint8_t *)in->data;
    uint8_t *next_out = (uint8_t *)out;
    size_t left = in->length, free_room = room;

    if (!BrotliEncoderCompressStream(coder, operations[flush], &left, &next_in, &free_room, &next_out, NULL))
        return -EIO;
    *in = str_skip(*in, in->length - left);
    *out_length = room - free_room;
    if (flush == CODER_END)
        return BrotliEncoderIsFinished(coder);
    return left == 0 && !BrotliEncoderHasMoreOutput(coder);
}

static void brotli_close(void *coder)
{
    BrotliEncoderDestroyInstance(coder);
}

const struct coder_kind coder_brotli = {
    .memory = 3 * 1024 * 1024,
    .level_min = 0,
    .level_max = 9,
    .open = brotli_open,
    .step = brotli_step,
    .close = brotli_close,
};
