/*
 * Common to the exchanges of every protocol: memory, the limit of request bodies, method names.
 */
#include "http/exchange.h"

#include "base/limits.h"

#include <errno.h>

struct exchange *exchange_create(struct arena_pool *pool, size_t size)
{
    struct arena arena;
    struct exchange *x;

    arena_init(&arena, pool, LIMIT_EXCHANGE_MEMORY);
    x = arena_zalloc(&arena, 1, size);
    if (!x)
        return NULL;
    x->arena = arena;
    x->holds = 1;
    x->request.method = METHOD_OTHER;
    x->request.body = body_empty();
    return x;
}

void exchange_hold(struct exchange *x)
{
    x->holds++;
}

void exchange_release(struct exchange *x)
{
    struct arena arena;

    if (!x || --x->holds > 0)
        return;
    arena = x->arena; /* x itself is in it */
    arena_reset(&arena);
}

int exchange_limit_body(struct exchange *x, uint64_t bytes)
{
    x->request.body_limit = bytes;
    if (bytes == 0 || x->request.content_length == BODY_LENGTH_UNKNOWN || x->request.content_length <= bytes)
        return 0;
    return 413;
}

int exchange_body_status(int error)
{
    switch (error) {
    case -EMSGSIZE:
        return 413;
    case -ETIMEDOUT:
        return 408;
    case -ENOMEM:
        return 500;
    default:
        return 400;
    }
}

void exchange_respond(struct exchange *x)
{
    if (!x->cancelled)
        x->ops->respond(x);
}

int exchange_inform(struct exchange *x, int status, const struct headers *headers)
{
    return x->cancelled ? 0 : x->ops->inform(x, status, headers);
}

bool exchange_abort(struct exchange *x)
{
    return x->cancelled || (x->ops->abort && x->ops->abort(x));
}

enum method method_parse(struct str name)
{
    static const struct {
        struct str name;
        enum method method;
    } methods[] = {
        {{"GET", 3}, METHOD_GET},     {{"HEAD", 4}, METHOD_HEAD},       {{"POST", 4}, METHOD_POST},
        {{"PUT", 3}, METHOD_PUT},     {{"DELETE", 6}, METHOD_DELETE},   {{"OPTIONS", 7}, METHOD_OPTIONS},
        {{"PATCH", 5}, METHOD_PATCH}, {{"CONNECT", 7}, METHOD_CONNECT}, {{"TRACE", 5}, METHOD_TRACE},
    };

    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (str_equal(name, methods[i].name))
            return methods[i].method;
    }
    return METHOD_OTHER;
}
