/*
 * The resolvers of the pool: one for each set of settings.
 */
#include "upstream/upstream_group.h"

#include <stdlib.h>

const struct resolver_settings *upstream_resolver_settings(const struct upstream_group *group)
{
    const struct resolver_settings *settings = group->upstream->resolver;

    return settings ? settings : &upstream_resolver_default;
}

/* Creates it on first use. NULL when out of memory. */
static struct resolver *find_resolver(struct upstream_pool *pool, const struct resolver_settings *settings)
{
    struct upstream_resolver *one;

    for (one = pool->resolvers; one; one = one->next) {
        if (one->settings == settings)
            return one->resolver;
    }
    one = calloc(1, sizeof(*one));
    if (!one)
        return NULL;
    one->settings = settings;
    one->resolver = resolver_create(pool->loop, settings);
    if (!one->resolver) {
        free(one);
        return NULL;
    }
    one->next = pool->resolvers;
    pool->resolvers = one;
    return one->resolver;
}

struct resolver *upstream_group_resolver(const struct upstream_group *group)
{
    return find_resolver(group->pool, upstream_resolver_settings(group));
}

void upstream_resolvers_finish(struct upstream_pool *pool)
{
    struct upstream_resolver *one;

    while ((one = pool->resolvers) != NULL) {
        pool->resolvers = one->next;
        resolver_destroy(one->resolver);
        free(one);
    }
}
