/*
 * A shared cache's judgement (RFC 9111 3 and 4, RFC 5861): whether an answer may be stored, how old it is, and
 * whether it may be said again. Pure: times come in as seconds of the wall clock.
 */
#ifndef HTTP_FRESHNESS_H
#define HTTP_FRESHNESS_H

#include "http/cache_control.h"

/* An answer as it came, and the request to it. */
struct arrival {
    bool authorized;                /* the request had Authorization */
    const struct cache_control *asked;
    const struct cache_control *said;
    const struct headers *headers;  /* of the answer */
    int status;
    int64_t asked_s;                /* when the request left */
    int64_t came_s;                 /* when the answer's head came */
};

/* True where one Date, that is a date, is among them. */
bool headers_have_date(const struct headers *headers, int64_t now_s);
/* How long the answer says that it is fresh (4.2.1): s-maxage, max-age, Expires. DELTA_NONE: it says nothing. */
int64_t freshness_lifetime(const struct arrival *arrival);
/*
 * The lifetime of an answer that says nothing of it (4.2.2): a tenth of the time between Last-Modified and Date, at most `most_s`. DELTA_NONE where it has no
 * Last-Modified, or a status that is not heuristically cacheable (RFC 9110 15.1) without `public`.
 */
int64_t freshness_heuristic(const struct arrival *arrival, int64_t most_s);
/* How old it was when it came (4.2.3), by Age and Date. */
int64_t freshness_initial_age(const struct arrival *arrival);

/*
 * True where a shared cache may keep it (3), but for its lifetime: no-store, private, a malformed Cache-Control, Authorization, must-understand, and statuses that it does
 * not know how to combine or repeat (1xx, 206, 304).
 */
bool freshness_may_store(const struct arrival *arrival);

/* An answer in store. */
struct freshness {
    int64_t lifetime_s;
    int64_t age_s;                  /* now */
    bool no_cache;                  /* it said no-cache: never without asking */
    bool never_stale;               /* must-revalidate, proxy-revalidate, s-maxage */
    int64_t stale_while_revalidate; /* seconds past its lifetime; DELTA_NONE */
    int64_t stale_if_error;
};

/* What an answer says of itself, for `never_stale`, `no_cache` and the two of RFC 5861. */
void freshness_init(struct freshness *freshness, const struct cache_control *said);
/*
 * Notes lifetime and age of an answer as it came; after freshness_init. One that was never fresh counts as no-cache, unless it allows in words (RFC 5861) that
 * it is served stale: RFC 9111 4.2.4 is about answers that have been fresh.
 */
void freshness_arrived(struct freshness *freshness, int64_t lifetime_s, int64_t age_s);

enum reuse {
    REUSE_FRESH,                    /* as it is */
    REUSE_STALE,                    /* stale, but the client takes it (max-stale) */
    REUSE_UPDATING,                 /* stale, but it may be said while it is asked for anew (stale-while-revalidate) */
    REUSE_NOT,                      /* the origin is to be asked first */
};

/* Whether it may be said to who asks so (4.2, 5.2.1). */
enum reuse freshness_judge(const struct freshness *stored, const struct cache_control *asked);
/* True where it may be said though the origin could not be asked (4.2.4, RFC 5861 4); `wanted`: the configuration says so. */
bool freshness_in_error(const struct freshness *stored, const struct cache_control *asked, bool wanted);

#endif
