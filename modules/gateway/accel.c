/*
 * Response fields that control this server: X-Accel-Redirect, X-Accel-Limit-Rate and X-Accel-Charset. (The cache
 * evaluates X-Accel-Expires, response_spool.c X-Accel-Buffering.)
 */
#include "response.h"

#include "connection.h"
#include "http/h1_parse.h"
#include "http/url.h"

#include <errno.h>

void gateway_accel_rate(struct gateway_request *p, const struct headers *response_headers)
{
    struct str text = headers_value(response_headers, STR("X-Accel-Limit-Rate"));
    uint64_t rate;

    if (!(p->conf->cache.ignore & IGNORE_X_ACCEL_LIMIT_RATE) && text.data && str_to_u64(text, &rate) == 0)
        exchange_set_rate(p->x, rate);
}

/* True if the media type has a charset parameter. */
static bool has_charset(struct str type)
{
    (void)str_cut(&type, ';');
    while (type.data) {
        struct str parameter = str_cut(&type, ';');

        if (str_equal_nocase(str_trim(str_cut(&parameter, '=')), STR("charset")))
            return true;
    }
    return false;
}

/* X-Accel-Charset in `response_headers` becomes the charset of the type, if that has none. 0 or -ENOMEM. */
static int add_accel_charset(struct gateway_request *p, const struct headers *response_headers, struct str *type)
{
    struct str charset = headers_value(response_headers, STR("X-Accel-Charset"));
    struct str value;

    if (!h1_is_token(charset) || (p->conf->cache.ignore & IGNORE_X_ACCEL_CHARSET) || has_charset(*type))
        return 0;
    value = arena_join(&p->x->arena, (const struct str[]){*type, STR("; charset="), charset}, 3);
    if (!value.data)
        return -ENOMEM;
    *type = value;
    return 0;
}

int gateway_set_charset(struct gateway_request *p, const struct headers *response_headers, struct headers *headers)
{
    struct header *type = headers_find(headers, STR("Content-Type"));
    int error = type ? add_accel_charset(p, response_headers, &type->value) : 0;

    return error < 0 || !type ? error : exchange_add_charset(p->x, &type->value);
}

/* Fields of the application's response that also apply to the response of the redirect's target. */
static int set_accel_headers(struct gateway_request *p)
{
    static const char *const names[] = {"Content-Type", "Content-Disposition", "Content-Language", "Cache-Control",
                                        "Expires",      "Set-Cookie"};
    struct headers fields = {0};
    struct header *type;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct str name = str_from(names[i]);
        const struct header *field = headers_find(&p->reply.headers, name);

        for (; field; field = headers_next(&p->reply.headers, name, field)) {
            if (headers_add(&fields, &p->x->arena, name, field->value) < 0)
                return -ENOMEM;
        }
    }
    type = headers_find(&fields, STR("Content-Type"));
    if (type && add_accel_charset(p, &p->reply.headers, &type->value) < 0)
        return -ENOMEM;
    return exchange_override_headers(p->x, &fields);
}

enum outcome gateway_accel_follow(struct gateway_request *p)
{
    struct exchange *x = p->x;
    struct str place = headers_value(&p->reply.headers, STR("X-Accel-Redirect"));
    struct url_target target;

    if (set_accel_headers(p) < 0)
        return exchange_error_response(x, 500);
    if (str_starts(place, STR("@")))
        return exchange_internal_redirect_named(x, place);
    if (url_target_parse(&x->arena, place, true, &target) < 0 || !str_starts(place, STR("/")) || target.traverses)
        return exchange_error_response_log(x, 500, LOG_ERROR, "X-Accel-Redirect: \"" STR_FMT "\" is not a path or a "
                                                                                             "named location",
                                           STR_ARG(place));
    exchange_change_to_get(x);
    return exchange_internal_redirect(x, target.path, target.query.data ? target.query : STR(""));
}

/* The response of the subrequest is not used: access to the redirect's target is checked only for the parent. */
static enum outcome leave_redirect_to_parent(struct gateway_request *p)
{
    if (p->for_head)
        p->for_head = FOR_HEAD_REDIRECTED;
    p->slice.redirected = p->slice.of;
    p->x->response.status = 200;
    return OUTCOME_RESPONDED;
}

bool gateway_accel_redirect(struct gateway_request *p)
{
    struct str place = headers_value(&p->reply.headers, STR("X-Accel-Redirect"));
    enum outcome outcome;

    if (!place.data || (p->conf->cache.ignore & IGNORE_X_ACCEL_REDIRECT))
        return false;
    outcome = p->for_head || p->slice.of ? leave_redirect_to_parent(p) : gateway_accel_follow(p);
    if (p->cached)
        p->cache->release_lock(p);
    gateway_discard(p);
    buffer_finish(&p->incoming.input);
    p->stage = GATEWAY_DONE;
    exchange_resume(p->x, outcome);
    return true;
}
