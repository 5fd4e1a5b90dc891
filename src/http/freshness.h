/*
 * The rules of a shared cache (RFC 9111 3 and 4, RFC 5861): whether a response may be stored, its age, and whether
 * it may be reused. Times are seconds of the wall clock, passed by the caller.
 */
#ifndef HTTP_FRESHNESS_H
#define HTTP_FRESHNESS_H

#include "http/cache_control.h"

/* A response as received, with facts of its request. */
struct received_response {
    bool authorized;                /* the request had an Authorization field */
    const struct cache_control *request_control;
    const struct cache_control *response_control;
    const struct headers *headers;  /* of the response */
    int status;
    int64_t request_sent_s;         /* time the request was sent */
    int64_t received_s;             /* time the response head arrived */
};

/* True if there is a valid Date, and repetitions are equal. */
bool headers_have_date(const struct headers *headers, int64_t now_s);
/* The explicit freshness lifetime (4.2.1): s-maxage, max-age, Expires. DELTA_NONE: none. */
int64_t freshness_lifetime(const struct received_response *response);
/*
 * The heuristic lifetime (4.2.2): a tenth of the time between Last-Modified and Date, at most `max_s`. DELTA_NONE
 * without Last-Modified, or for a status that is not heuristically cacheable (RFC 9110 15.1) without `public`.
 */
int64_t freshness_heuristic(const struct received_response *response, int64_t max_s);
/* The age when received (4.2.3), from Age and Date. */
int64_t freshness_initial_age(const struct received_response *response);

/*
 * True if a shared cache may store the response (3), regardless of its lifetime. False for:
 * - no-store in the request; no-store in the response, unless it has must-understand;
 * - must-understand with an unknown status;
 * - private, or a malformed Cache-Control;
 * - 1xx, 206 and 304, which are not complete final responses;
 * - a request with Authorization, unless the response has public, must-revalidate or s-maxage (3.5).
 */
bool freshness_may_store(const struct received_response *response);
/* The same regardless of the request's Cache-Control and Authorization. */
bool freshness_is_storable(const struct received_response *response);

/* A stored response. */
struct freshness {
    int64_t lifetime_s;
    int64_t age_s;                  /* now */
    bool no_cache;                  /* no-cache: revalidate on every use */
    bool never_stale;               /* must-revalidate, proxy-revalidate, s-maxage */
    int64_t stale_while_revalidate; /* seconds past its lifetime, or DELTA_NONE */
    int64_t stale_if_error;
};

/* Sets `never_stale`, `no_cache` and the two values of RFC 5861 from the response's Cache-Control. */
void freshness_init(struct freshness *freshness, const struct cache_control *response_control);
/*
 * Sets lifetime and age of a response when it is received; after freshness_init. A response that was never fresh counts
 * as no-cache unless it permits stale use (RFC 5861): RFC 9111 4.2.4 concerns responses that were fresh once.
 */
void freshness_set_received(struct freshness *freshness, int64_t lifetime_s, int64_t age_s);

enum reuse {
    REUSE_FRESH,                    /* unchanged */
    REUSE_STALE,                    /* stale, accepted by the client (max-stale) */
    REUSE_UPDATING,                 /* stale, usable during revalidation (stale-while-revalidate) */
    REUSE_REVALIDATE,               /* must be revalidated first */
};

/* Determines the reuse of a stored response for a request with these directives (4.2, 5.2.1). */
enum reuse freshness_evaluate(const struct freshness *stored, const struct cache_control *request_control);
/*
 * True if the stored response may be used after an error of the origin (4.2.4, RFC 5861 4); `allowed`: the
 * configuration permits it.
 */
bool freshness_in_error(const struct freshness *stored, const struct cache_control *request_control, bool allowed);

#endif
