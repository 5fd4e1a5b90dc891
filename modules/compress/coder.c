/*
 * Coder of each content coding.
 */
#include "coder.h"

const struct coder_kind *const coder_kinds[CODINGS] = {
    [CODING_BR] = &coder_brotli, [CODING_ZSTD] = &coder_zstd, [CODING_GZIP] = &coder_gzip};
