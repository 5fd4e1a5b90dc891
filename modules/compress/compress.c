/*
 * `gzip`, `brotli`, `zstd`: encodes response bodies while they are sent, if the client accepts the coding. Applies
 * to every response: files, listings, error pages, upstream responses. Encoded responses and those that must not be
 * transformed are not changed.
 */
#include "compress.h"

#include "http/cache_control.h"
#include "http/date.h"

#include <errno.h>

/* The server's order of preference among codings with equal weight. */
static const enum coding preferred[CODINGS] = {CODING_BR, CODING_ZSTD, CODING_GZIP};

static bool fits_type(const struct compress_coding *coding, struct str type)
{
    if (str_equal_nocase(type, STR("text/html")))
        return true;
    for (size_t i = 0; i < coding->types.count; i++) {
        if (str_equal_nocase(type, coding->types.items[i]) || str_equal(coding->types.items[i], STR("*")))
            return true;
    }
    return false;
}

static struct str media_type(const struct exchange *x)
{
    struct str type = headers_value(&x->response.headers, STR("Content-Type"));

    return str_trim(str_cut(&type, ';'));
}

/* Returns the codings configured for this response, regardless of Accept-Encoding. Empty bodies are never encoded. */
static unsigned offered_codings(const struct exchange *x, const struct compress_conf *conf, enum coding out[CODINGS])
{
    struct str type = media_type(x);
    uint64_t length = x->response.body->length; /* BODY_LENGTH_UNKNOWN is the largest value */
    unsigned count = 0;

    for (unsigned i = 0; i < CODINGS; i++) {
        const struct compress_coding *coding = &conf->codings[preferred[i]];

        if (coding->on && length > 0 && length >= coding->min_length && fits_type(coding, type))
            out[count++] = preferred[i];
    }
    return count;
}

/* Fields that describe the exact bytes of the body, and no-transform, exclude encoding. */
static bool is_encoding_fixed(const struct response *response)
{
    static const char *const names[] = {"Content-Encoding", "Content-Range", "Content-Digest",
                                        "Repr-Digest",      "Digest",        "Content-MD5"};
    struct cache_control control;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (headers_find(&response->headers, str_from(names[i])))
            return true;
    }
    cache_control_read(&response->headers, CACHE_OF_RESPONSE, &control);
    return control.no_transform;
}

static bool is_expired(struct exchange *x)
{
    struct str expires = headers_value(&x->response.headers, STR("Expires"));
    struct str date = headers_value(&x->response.headers, STR("Date"));
    int64_t now = clock_wall_s(exchange_clock(x));
    int64_t then;

    if (!expires.data || date_parse(expires, now, &then) < 0)
        return false;
    if (date.data && date_parse(date, now, &now) < 0)
        return false;
    return then <= now;
}

/*
 * gzip_proxied, as in nginx: a request without Via always permits an encoded response; a request with Via permits it
 * with `any`, or if a configured condition on the response's fields or the request's Authorization is true.
 */
static bool serves_proxy(struct exchange *x, unsigned proxied)
{
    const struct headers *headers = &x->response.headers;
    struct cache_control control;

    if (!headers_find(&x->request.headers, STR("Via")) || (proxied & PROXIED_ANY))
        return true;
    if ((proxied & PROXIED_OFF) || !proxied)
        return false;
    cache_control_read(headers, CACHE_OF_RESPONSE, &control);
    return ((proxied & PROXIED_EXPIRED) && is_expired(x)) ||
           ((proxied & PROXIED_NO_CACHE) && control.no_cache) ||
           ((proxied & PROXIED_NO_STORE) && control.no_store) ||
           ((proxied & PROXIED_PRIVATE) && control.is_private) ||
           ((proxied & PROXIED_NO_LAST_MODIFIED) && !headers_find(headers, STR("Last-Modified"))) ||
           ((proxied & PROXIED_NO_ETAG) && !headers_find(headers, STR("ETag"))) ||
           ((proxied & PROXIED_AUTH) && headers_find(&x->request.headers, STR("Authorization")));
}

static bool may_negotiate(struct exchange *x, const struct compress_conf *conf)
{
    struct cache_control control;

    if (x->request.version < (conf->min_version == 0 ? HTTP_1_0 : HTTP_1_1) ||
        !serves_proxy(x, conf->proxied))
        return false;
    cache_control_read(&x->request.headers, CACHE_OF_REQUEST, &control);
    return !control.no_transform;
}

/*
 * Adds to a 206 the Vary field that the 200 would have (RFC 9110 15.3.7). Neither the length of the complete response
 * nor, with multipart/byteranges, its type is known here.
 */
static int vary_part(struct exchange *x, const struct compress_conf *conf)
{
    struct str type = media_type(x);
    bool may = str_equal_nocase(type, STR("multipart/byteranges"));

    for (enum coding coding = 0; coding < CODINGS; coding++)
        may = may || (conf->codings[coding].on && fits_type(&conf->codings[coding], type));
    return may ? compress_add_vary(x) : 0;
}

static struct compress_worker *shared_of(struct exchange *x)
{
    return worker_state(exchange_worker(x), &module_compress);
}

static int wrap_in_coder(struct exchange *x, const struct compress_conf *conf, enum coding coding)
{
    struct headers *headers = &x->response.headers;
    int error;

    if (!compress_wrap(x, shared_of(x), coder_kinds[coding], (unsigned)conf->codings[coding].level))
        return 0;
    headers_remove(headers, STR("Accept-Ranges"));
    error = headers_add(headers, &x->arena, STR("Content-Encoding"), coding_name(coding));
    return error < 0 ? error : compress_weaken_etag(x);
}

static int compress_filter(struct exchange *x, const void *own)
{
    const struct compress_conf *conf = own;
    enum coding offered[CODINGS], chosen[CODINGS];
    unsigned count;
    int error;

    if (x->response.status == 304)
        return compress_not_modified(x);
    if (conf->gunzip && (error = compress_decode(x, conf, shared_of(x))) < 0)
        return error;
    if (x->response.status == 206)
        return vary_part(x, conf);
    if (!compress_is_whole(x))
        return 0;
    count = offered_codings(x, conf, offered);
    if (count == 0 || is_encoding_fixed(&x->response))
        return 0;
    error = compress_add_vary(x);
    if (error < 0)
        return error;
    count = coding_choose(&x->request.headers, offered, count, chosen);
    return count > 0 && may_negotiate(x, conf) ? wrap_in_coder(x, conf, chosen[0]) : 0;
}

static bool compress_idle(const void *conf)
{
    const struct compress_conf *own = conf;

    return !own->any && !own->gunzip;
}

const struct module module_compress = {
    .name = "compress",
    .directives = compress_directives,
    .conf_size = sizeof(struct compress_conf),
    .conf_check = compress_conf_check,
    .idle = compress_idle,
    .worker_start = compress_worker_start,
    .worker_stop = compress_worker_stop,
    .filter = compress_filter,
    .needs_whole_body = compress_needs_whole_body,
};
