/*
 * The decoder's table is connection state: every block is decoded to its end, also that of a rejected request.
 */
#include "http/h2/header_block.h"

#include "base/limits.h"

#include <nghttp2/nghttp2.h>

enum h2_error h2_header_block_start(struct h2_header_block *block, uint32_t stream)
{
    if (!block->inflater && nghttp2_hd_inflate_new(&block->inflater) != 0)
        return H2_INTERNAL_ERROR;
    block->stream = stream;
    block->encoded = block->decoded = 0;
    return H2_NO_ERROR;
}

/* A small block can refer to large fields of the dynamic table many times: the decoded size is limited, too. */
static enum h2_error count_decoded(struct h2_header_block *block, const nghttp2_nv *field)
{
    size_t bytes = field->namelen + field->valuelen + 32; /* RFC 9113 10.5.1 */

    if (bytes > LIMIT_H2_HEADER_LIST - block->decoded)
        return H2_ENHANCE_YOUR_CALM;
    block->decoded += (uint32_t)bytes;
    return H2_NO_ERROR;
}

static enum h2_error count_encoded(struct h2_header_block *block, struct str fragment)
{
    if (fragment.length > LIMIT_H2_HEADER_BLOCK - block->encoded)
        return H2_ENHANCE_YOUR_CALM;
    block->encoded += (uint32_t)fragment.length;
    return H2_NO_ERROR;
}

enum h2_error h2_header_block_decode(struct h2_header_block *block, struct str fragment, bool last,
                                     void (*field)(void *owner, struct str name, struct str value), void *owner)
{
    enum h2_error error = count_encoded(block, fragment);
    int flags = 0;

    while (!error && !(flags & NGHTTP2_HD_INFLATE_FINAL)) {
        nghttp2_nv nv;
        ssize_t taken = nghttp2_hd_inflate_hd2(block->inflater, &nv, &flags, (const uint8_t *)fragment.data,
                                               fragment.length, last);

        if (taken < 0)
            return taken == NGHTTP2_ERR_NOMEM ? H2_INTERNAL_ERROR : H2_COMPRESSION_ERROR;
        fragment = str_skip(fragment, (size_t)taken);
        if (flags & NGHTTP2_HD_INFLATE_EMIT) {
            error = count_decoded(block, &nv);
            if (!error)
                field(owner, str_of((char *)nv.name, nv.namelen), str_of((char *)nv.value, nv.valuelen));
        } else if (str_empty(fragment) && !(flags & NGHTTP2_HD_INFLATE_FINAL)) {
            break;
        }
    }
    if (!error && last) {
        nghttp2_hd_inflate_end_headers(block->inflater);
        block->stream = 0;
    }
    return error;
}

void h2_header_block_close(struct h2_header_block *block)
{
    if (block->inflater)
        nghttp2_hd_inflate_del(block->inflater);
    block->inflater = NULL;
}
