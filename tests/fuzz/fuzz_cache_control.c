/*
 * Cache-Control, Vary, Age and Expires: each line of the input is a field line, used for the request and for the
 * response. A line that begins with '!' is CDN-Cache-Control (RFC 9213). No number leaves its bounds, and the lifetime
 * does not exceed its maximum.
 */
#include "fuzz.h"

#include "http/freshness.h"

#include <errno.h>

static const struct str names[] = {
    {"Cache-Control", 13}, {"Vary", 4}, {"Age", 3}, {"Expires", 7}, {"Date", 4}, {"Pragma", 6},
};

static bool is_delta(int64_t seconds)
{
    return seconds >= DELTA_NONE && seconds <= DELTA_MAX;
}

static struct str name_of(struct str line)
{
    if (str_starts(line, STR("!")))
        return STR("CDN-Cache-Control");
    return names[line.length ? (unsigned char)line.data[0] % 6 : 0];
}

/* A malformed field changes nothing. A member whose value is not of the type of its directive counts as absent. */
static void read_targeted(const struct headers *headers, const struct received_response *untargeted)
{
    struct cache_control targeted;
    struct received_response received = *untargeted;
    bool sent = headers_find(headers, STR("CDN-Cache-Control")) != NULL;
    int error = cache_control_read_targeted(headers, STR("CDN-Cache-Control"), &targeted);

    HOLDS(error == 0 || error == -ENOENT || error == -EINVAL);
    HOLDS(sent || error == -ENOENT);
    if (error < 0)
        return;
    HOLDS(is_delta(targeted.max_age) && is_delta(targeted.s_maxage));
    received.response_control = &targeted;
    HOLDS(is_delta(freshness_lifetime(&received)));
    HOLDS(!freshness_may_store(&received) || !targeted.is_private);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct str rest = str_of((const char *)bytes, size);
    struct headers headers = {0};
    struct cache_control request, response;
    struct received_response received = {.request_control = &request,
                                         .response_control = &response,
                                         .headers = &headers,
                                         .status = 200,
                                         .request_sent_s = 784111777,
                                         .received_s = 784111780};
    struct freshness stored;
    struct str vary = STR("");
    struct arena arena;

    if (size > 2000)
        return 0;
    arena_init(&arena, NULL, 0);
    while (rest.data) {
        struct str line = str_cut(&rest, '\n');

        HOLDS(headers_add(&headers, &arena, name_of(line), str_trim(str_skip(line, 1))) == 0);
    }
    cache_control_read(&headers, CACHE_OF_REQUEST, &request);
    cache_control_read(&headers, CACHE_OF_RESPONSE, &response);
    HOLDS(is_delta(response.max_age) && is_delta(response.s_maxage) && is_delta(request.max_stale) &&
          is_delta(request.min_fresh));
    HOLDS(is_delta(freshness_lifetime(&received)));
    read_targeted(&headers, &received);
    HOLDS(freshness_initial_age(&received) >= 0 && freshness_initial_age(&received) <= DELTA_MAX);
    HOLDS(!freshness_may_store(&received) || !response.is_private);
    freshness_init(&stored, &response);
    stored.lifetime_s = freshness_lifetime(&received);
    stored.age_s = freshness_initial_age(&received);
    HOLDS(freshness_evaluate(&stored, &request) != REUSE_FRESH ||
          (stored.age_s < stored.lifetime_s && !response.no_cache));
    HOLDS(!response.must_revalidate || !freshness_in_error(&stored, &request, true));
    if (vary_read(&headers, &arena, &vary) == 0)
        HOLDS(vary_text(vary, &headers, &arena).data);
    arena_reset(&arena);
    return 0;
}
