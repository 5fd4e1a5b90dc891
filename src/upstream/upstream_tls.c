/*
 * TLS contexts for upstreams, one for each set of settings. Those of the configuration are created with it, while key
 * files are readable; a worker creates others on demand.
 */
#include "upstream/upstream_group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct tls_context *find_tls_context(const struct upstream_tls_context *tls_contexts,
                                            const struct tls_client_settings *settings)
{
    for (const struct upstream_tls_context *tls_context = tls_contexts; tls_context; tls_context = tls_context->next) {
        if (tls_client_settings_equal(&tls_context->settings, settings))
            return tls_context->context;
    }
    return NULL;
}

/* NULL with an error text. */
static struct tls_context *add_tls_context(struct upstream_tls_context **tls_contexts,
                                           const struct tls_client_settings *settings, char *out_error,
                                           size_t error_size)
{
    struct upstream_tls_context *tls_context = calloc(1, sizeof(*tls_context));

    if (!tls_context) {
        snprintf(out_error, error_size, "out of memory");
        return NULL;
    }
    tls_context->settings = *settings;
    tls_context->context = tls_client_context_create(settings, out_error, error_size);
    if (!tls_context->context) {
        free(tls_context);
        return NULL;
    }
    tls_context->next = *tls_contexts;
    *tls_contexts = tls_context;
    return tls_context->context;
}

int upstreams_add_tls(struct upstreams *upstreams, const struct tls_client_settings *settings, char *out_error,
                      size_t error_size)
{
    bool good = find_tls_context(upstreams->tls_contexts, settings) ||
                add_tls_context(&upstreams->tls_contexts, settings, out_error, error_size);

    return good ? 0 : -EINVAL;
}

struct tls_context *upstream_pool_tls(struct upstream_pool *pool, const struct tls_client_settings *settings)
{
    struct tls_context *context = find_tls_context(pool->upstreams->tls_contexts, settings);
    char error[256];

    if (!context)
        context = find_tls_context(pool->tls_contexts, settings);
    if (!context)
        context = add_tls_context(&pool->tls_contexts, settings, error, sizeof(error));
    if (!context)
        log_write(pool->log, LOG_ERROR, "TLS to upstream servers cannot be set up: %s", error);
    return context;
}

void upstream_tls_contexts_finish(struct upstream_tls_context **tls_contexts)
{
    struct upstream_tls_context *tls_context;

    while ((tls_context = *tls_contexts) != NULL) {
        *tls_contexts = tls_context->next;
        tls_context_destroy(tls_context->context);
        free(tls_context);
    }
}

void upstreams_finish(struct upstreams *upstreams)
{
    upstream_tls_contexts_finish(&upstreams->tls_contexts);
}
