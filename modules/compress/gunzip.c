/*
 * `gunzip`: decodes responses that were gzip-encoded by an upstream server or as precompressed files, if the client
 * does not accept gzip. Other clients get the encoded body.
 */
#include "compress.h"

#include "http/cache_control.h"

/* gzip as the only coding; combinations of codings are passed on unchanged. */
static bool is_gzip(const struct headers *headers)
{
    const struct header *field = headers_find(headers, STR("Content-Encoding"));

    return field && coding_by_name(str_trim(field->value)) == CODING_GZIP &&
           !headers_next(headers, STR("Content-Encoding"), field);
}

static bool may_be_changed(const struct exchange *x)
{
    struct cache_control request_control, headers;

    cache_control_read(&x->request.headers, CACHE_OF_REQUEST, &request_control);
    cache_control_read(&x->response.headers, CACHE_OF_RESPONSE, &headers);
    return !request_control.no_transform && !headers.no_transform;
}

static bool takes_gzip(const struct exchange *x)
{
    const enum coding gzip = CODING_GZIP;
    enum coding chosen[CODINGS];

    return coding_choose(&x->request.headers, &gzip, 1, chosen) > 0;
}

/* A part of an encoded body cannot be decoded, so modules call this before they create ranges. */
bool compress_needs_whole_body(const struct exchange *x, const void *conf)
{
    return ((const struct compress_conf *)conf)->gunzip && is_gzip(&x->response.headers) && !takes_gzip(x) &&
           may_be_changed(x);
}

static void remove_encoded_fields(struct headers *headers)
{
    static const char *const names[] = {"Content-Encoding", "Accept-Ranges", "Content-Digest",
                                        "Repr-Digest",      "Digest",        "Content-MD5"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        headers_remove(headers, str_from(names[i]));
}

int compress_decode(struct exchange *x, const struct compress_conf *conf, struct compress_worker *shared)
{
    struct response *response = &x->response;
    int error;

    if (!is_gzip(&response->headers))
        return 0;
    error = compress_add_vary(x);
    if (error < 0 || response->status == 206 || !compress_is_whole(x) || !compress_needs_whole_body(x, conf) ||
        !compress_wrap(x, shared, &coder_gunzip, 0))
        return error;
    remove_encoded_fields(&response->headers);
    return compress_weaken_etag(x);
}
