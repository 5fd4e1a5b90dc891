/*
 * The directives as read, the state that a worker shares among encoding bodies, and the encoding body. Private to
 * the compress module.
 */
#ifndef MODULES_COMPRESS_COMPRESS_H
#define MODULES_COMPRESS_COMPRESS_H

#include "base/list.h"
#include "coder.h"
#include "server/module.h"

enum compress_proxied {             /* `gzip_proxied`: bits, in the order of its keywords */
    PROXIED_OFF = 1 << 0,
    PROXIED_EXPIRED = 1 << 1,
    PROXIED_NO_CACHE = 1 << 2,
    PROXIED_NO_STORE = 1 << 3,
    PROXIED_PRIVATE = 1 << 4,
    PROXIED_NO_LAST_MODIFIED = 1 << 5,
    PROXIED_NO_ETAG = 1 << 6,
    PROXIED_AUTH = 1 << 7,
    PROXIED_ANY = 1 << 8,
};

struct compress_conf {
    struct compress_coding {
        bool on;
        struct conf_words types;    /* in addition to text/html; "*": all */
        uint64_t min_length;
        uint64_t level;
    } codings[CODINGS];
    unsigned proxied;               /* enum compress_proxied */
    int min_version;                /* index of `gzip_http_version` */
    bool gunzip;
    bool any;                       /* at least one coding is on */
};

extern const struct module module_compress;
extern const struct directive compress_directives[];
int compress_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at);

/* State shared by the encoding bodies of a worker: the memory limit, and the work limit per iteration of the loop. */
struct compress_worker;

int compress_worker_start(struct worker *worker, void **out_state);
void compress_worker_stop(void *state);

/*
 * Creates a body that encodes `inner`, and owns it from then on. If the length of `inner` is unknown, the
 * encoder is flushed whenever `inner` returns -EAGAIN. NULL when out of memory or at the worker's memory limit; the
 * caller then still owns `inner`.
 */
struct body *compress_body(struct compress_worker *shared, const struct coder_kind *kind, unsigned level,
                           struct body *inner);

/* Returns true if the response has content, and all of it (not a part). */
bool compress_is_whole(const struct exchange *x);
/*
 * Replaces the response body by one encoded with `kind`; for HEAD, which has no body, only the length becomes
 * unknown, as for GET. False: the response is unchanged.
 */
bool compress_wrap(struct exchange *x, struct compress_worker *shared, const struct coder_kind *kind, unsigned level);
/* Adds Vary: Accept-Encoding, unless present. 0 or -ENOMEM. */
MUST_CHECK int compress_add_vary(struct exchange *x);
/* Makes the ETag weak: the encoded bytes differ from those of the original response (RFC 9110 8.8.1). 0 or -ENOMEM. */
MUST_CHECK int compress_weaken_etag(struct exchange *x);
/*
 * For a 304: if the client's conditional request has the weak form of the ETag, its stored response was encoded or
 * decoded here, and the 304 gets the weak ETag. Also adds Vary. 0 or -ENOMEM.
 */
MUST_CHECK int compress_not_modified(struct exchange *x);

/* `gunzip`: decodes a gzip-encoded response if the client does not accept gzip. 0 or -ENOMEM. */
MUST_CHECK int compress_decode(struct exchange *x, const struct compress_conf *conf, struct compress_worker *shared);
/* needs_whole_body of struct module: true if the response will be decoded. */
bool compress_needs_whole_body(const struct exchange *x, const void *conf);

#endif
