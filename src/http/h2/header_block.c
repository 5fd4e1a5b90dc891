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
    block->strings = (struct hpack_strings){0};
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

static struct str value_of(const struct h2_header_block *block, const nghttp2_nv *field)
{
    char *bytes = block->strings.shortened ? NULL : (char *)field->value;

    return str_of(bytes, field->valuelen);
}

/* Passes bytes to the decoder. `last`: no bytes of the block follow. */
static enum h2_error decode_bytes(struct h2_header_block *block, struct str bytes, bool last, h2_field_decoded *field,
                                  void *owner)
{
    enum h2_error error = H2_NO_ERROR;
    int flags = 0;

    while (!error && !(flags & NGHTTP2_HD_INFLATE_FINAL)) {
        nghttp2_nv nv;
        ssize_t taken = nghttp2_hd_inflate_hd2(block->inflater, &nv, &flags, (const uint8_t *)bytes.data, bytes.length,
                                               last);

        if (taken < 0)
            return taken == NGHTTP2_ERR_NOMEM ? H2_INTERNAL_ERROR : H2_COMPRESSION_ERROR;
        bytes = str_skip(bytes, (size_t)taken);
        if (flags & NGHTTP2_HD_INFLATE_EMIT) {
            error = count_decoded(block, &nv);
            if (!error)
                field(owner, str_of((char *)nv.name, nv.namelen), value_of(block, &nv));
        } else if (str_empty(bytes) && !(flags & NGHTTP2_HD_INFLATE_FINAL)) {
            break;
        }
    }
    return error;
}

static enum h2_error decode_shortened(struct h2_header_block *block, struct str fragment, bool last,
                                      h2_field_decoded *field, void *owner)
{
    enum h2_error error = H2_NO_ERROR;

    while (!error && !str_empty(fragment)) {
        struct str bytes;

        error = hpack_strings_next(&block->strings, &fragment, &bytes);
        if (!error && !str_empty(bytes))
            error = decode_bytes(block, bytes, false, field, owner);
    }
    if (!error && last && hpack_strings_incomplete(&block->strings))
        return H2_COMPRESSION_ERROR;
    return error || !last ? error : decode_bytes(block, STR(""), true, field, owner);
}

enum h2_error h2_header_block_decode(struct h2_header_block *block, struct str fragment, bool last,
                                     h2_field_decoded *field, void *owner)
{
    bool whole = last && block->encoded == 0;
    enum h2_error error = count_encoded(block, fragment);

    if (!error)
        error = (whole ? decode_bytes : decode_shortened)(block, fragment, last, field, owner);
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
