/*
 * The calculations of RFC 9111 4.2 and the conditions of sections 3 and 4. The cache applies the results.
 */
#include "http/freshness.h"

#include "http/date.h"
#include "http/status.h"

/* The date of a field; false if it is absent, invalid, or repeated with different values. */
static bool single_date(const struct headers *headers, struct str name, int64_t now_s, int64_t *out_seconds)
{
    const struct header *field = headers_find(headers, name);
    const struct header *next = field ? headers_next(headers, name, field) : NULL;

    for (; next; next = headers_next(headers, name, next)) {
        if (!str_equal(next->value, field->value))
            return false;
    }
    return field && date_parse(field->value, now_s, out_seconds) == 0;
}

bool headers_have_date(const struct headers *headers, int64_t now_s)
{
    int64_t date;

    return single_date(headers, STR("Date"), now_s, &date);
}

static int64_t date_of(const struct received_response *response)
{
    int64_t date = response->received_s;

    return single_date(response->headers, STR("Date"), response->received_s, &date) ? date : response->received_s;
}

static int64_t clamp_delta(int64_t seconds)
{
    return seconds < 0 ? 0 : seconds > DELTA_MAX ? DELTA_MAX : seconds;
}

int64_t freshness_lifetime(const struct received_response *response)
{
    const struct cache_control *response_control = response->response_control;
    int64_t expires;

    if (response_control->s_maxage != DELTA_NONE)
        return response_control->s_maxage;
    if (response_control->max_age != DELTA_NONE)
        return response_control->max_age;
    if (!headers_find(response->headers, STR("Expires")))
        return DELTA_NONE;
    if (!single_date(response->headers, STR("Expires"), response->received_s, &expires))
        return 0; /* 5.3: an invalid date is in the past */
    return clamp_delta(expires - date_of(response));
}

static bool is_heuristically_cacheable(int status)
{
    static const int statuses[] = {200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        if (statuses[i] == status)
            return true;
    }
    return false;
}

int64_t freshness_heuristic(const struct received_response *response, int64_t max_s)
{
    int64_t modified, lifetime;

    if (!is_heuristically_cacheable(response->status) && !response->response_control->is_public)
        return DELTA_NONE;
    if (!single_date(response->headers, STR("Last-Modified"), response->received_s, &modified))
        return DELTA_NONE;
    lifetime = clamp_delta((date_of(response) - modified) / 10);
    return lifetime < max_s ? lifetime : max_s;
}

/* The first value counts (5.1); an invalid one is ignored. */
static int64_t parse_age(const struct headers *headers)
{
    struct header_list list;
    struct str member;
    int64_t seconds;

    header_list_start(&list, headers, STR("Age"));
    return header_list_next(&list, &member) && delta_seconds_parse(member, &seconds) == 0 ? seconds : 0;
}

int64_t freshness_initial_age(const struct received_response *response)
{
    int64_t apparent = clamp_delta(response->received_s - date_of(response));
    int64_t corrected =
        clamp_delta(parse_age(response->headers) + clamp_delta(response->received_s - response->request_sent_s));

    return apparent > corrected ? apparent : corrected;
}

/* 1xx are not final, a 206 is incomplete, and 304 has no content. */
static bool status_is_storable(int status)
{
    return status >= 200 && status < 600 && status != 206 && status != 304;
}

bool freshness_is_storable(const struct received_response *response)
{
    const struct cache_control *control = response->response_control;

    if (!status_is_storable(response->status) || control->is_private || control->malformed)
        return false;
    return control->must_understand ? !str_empty(status_reason(response->status)) : !control->no_store;
}

bool freshness_may_store(const struct received_response *response)
{
    const struct cache_control *response_control = response->response_control;

    if (!freshness_is_storable(response) || response->request_control->no_store)
        return false;
    return !response->authorized || response_control->is_public || response_control->must_revalidate ||
           response_control->s_maxage != DELTA_NONE;
}

void freshness_init(struct freshness *freshness, const struct cache_control *response_control)
{
    *freshness = (struct freshness){
        .no_cache = response_control->no_cache,
        .never_stale = response_control->must_revalidate || response_control->proxy_revalidate ||
                       response_control->s_maxage != DELTA_NONE,
        .stale_while_revalidate = response_control->stale_while_revalidate,
        .stale_if_error = response_control->stale_if_error,
    };
    /* s-maxage forbids stale use only implicitly: the same response may permit it explicitly. */
    if (response_control->s_maxage != DELTA_NONE && !response_control->must_revalidate &&
        !response_control->proxy_revalidate &&
        (response_control->stale_while_revalidate > 0 || response_control->stale_if_error > 0))
        freshness->never_stale = false;
}

void freshness_set_received(struct freshness *freshness, int64_t lifetime_s, int64_t age_s)
{
    freshness->lifetime_s = lifetime_s;
    freshness->age_s = age_s;
    if (lifetime_s <= age_s && freshness->stale_while_revalidate <= 0 && freshness->stale_if_error <= 0)
        freshness->no_cache = true;
}

/* 5.2.1.1: max-stale extends the requested max-age, too. */
static bool is_too_old(const struct freshness *stored, const struct cache_control *request_control)
{
    int64_t over = stored->age_s - request_control->max_age;

    return request_control->max_age != DELTA_NONE && over > 0 && over > request_control->max_stale;
}

enum reuse freshness_evaluate(const struct freshness *stored, const struct cache_control *request_control)
{
    int64_t left = stored->lifetime_s - stored->age_s; /* 4.2: fresh while its lifetime exceeds its age */

    if (stored->no_cache || request_control->no_cache)
        return REUSE_REVALIDATE;
    if (request_control->max_age == 0 || is_too_old(stored, request_control)) /* max-age=0 requires revalidation */
        return REUSE_REVALIDATE;
    if (left > 0)
        return request_control->min_fresh != DELTA_NONE && left < request_control->min_fresh
                   ? REUSE_REVALIDATE
                   : REUSE_FRESH;
    if (stored->never_stale || request_control->min_fresh != DELTA_NONE)
        return REUSE_REVALIDATE;
    if (request_control->max_stale != DELTA_NONE && -left <= request_control->max_stale)
        return REUSE_STALE;
    return request_control->max_age == DELTA_NONE && stored->stale_while_revalidate > -left ? REUSE_UPDATING
                                                                                            : REUSE_REVALIDATE;
}

bool freshness_in_error(const struct freshness *stored, const struct cache_control *request_control, bool allowed)
{
    int64_t past = stored->age_s - stored->lifetime_s;

    if (stored->no_cache || stored->never_stale || request_control->no_cache)
        return false;
    return allowed || past < stored->stale_if_error || past < request_control->stale_if_error;
}
