/*
 * The module compress' own: its directives as read, what a worker shares among the bodies that it encodes, and such a body.
 */
#ifndef MODULES_COMPRESS_COMPRESS_H
#define MODULES_COMPRESS_COMPRESS_H

#include "base/list.h"
#include "coder.h"
#include "server/module.h"

enum compress_proxied {             /* `gzip_proxied`: bits, in the order of its words */
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
        struct conf_words types;    /* beside text/html; "*": all */
        uint64_t min_length;
        uint64_t level;
    } codings[CODINGS];
    unsigned proxied;               /* enum compress_proxied */
    int least_version;              /* index of `gzip_http_version` */
    bool gunzip;
    bool any;                       /* one of the codings is on */
};

extern const struct module module_compress;
extern const struct directive compress_directives[];
int compress_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at);

/* What the encoding bodies of a worker have together: memory, and work in each turn of the loop. */
struct compress_worker;

int compress_worker_start(struct worker *worker, void **out_state);
void compress_worker_stop(void *state);

/*
 * A body that gives what `inner` gives, encoded; it owns that one from then on. Where it pauses and nobody knows how long it is, what has come until then is
 * sent at once. NULL, with `inner` still the caller's: out of memory, or the worker encodes as much as it may.
 */
struct body *compress_body(struct compress_worker *shared, const struct coder_kind *kind, unsigned level, struct body *inner);

/* It has content, and all of it that there is. */
bool compress_is_whole(const struct exchange *x);
/* The answer's body becomes the one that such a coder makes of it; a HEAD has none, and says what a GET would. False: it stays as it is. */
bool compress_wrap(struct exchange *x, struct compress_worker *shared, const struct coder_kind *kind, unsigned level);
/* Vary: Accept-Encoding, unless it is said already. 0 or -ENOMEM. */
MUST_CHECK int compress_add_vary(struct exchange *x);
/* The same content, but no longer the same bytes (RFC 9110 8.8.1). 0 or -ENOMEM. */
MUST_CHECK int compress_weaken_etag(struct exchange *x);
/* A 304 stands for the answer that the client keeps: one with the weak form of the ETag was encoded, or decoded, here. 0 or -ENOMEM. */
MUST_CHECK int compress_confirm(struct exchange *x);

/* `gunzip`: an answer that is encoded with gzip is decoded for who does not take it. 0 or -ENOMEM. */
MUST_CHECK int compress_decode(struct exchange *x, const struct compress_conf *conf, struct compress_worker *shared);
/* For struct module: it will be decoded. */
bool compress_needs_whole_body(const struct exchange *x, const void *conf);

#endif
