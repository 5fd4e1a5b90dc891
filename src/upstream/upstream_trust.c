/*
 * TLS to servers: a context for each kind of settings. Those of the configuration are made with it, while keys
 * can still be read; a worker makes what nobody foresaw.
 */
#include "upstream/upstream_group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct tls_context *find(const struct upstream_trust *trusts, const struct tls_client_settings *settings)
{
    for (const struct upstream_trust *trust = trusts; trust; trust = trust->next) {
        if (tls_client_settings_equal(&trust->settings, settings))
            return trust->context;
    }
    return NULL;
}

/* NULL with a sentence. */
static struct tls_context *add(struct upstream_trust **trusts, const struct tls_client_settings *settings,
                               char *out_error, size_t error_size)
{
    struct upstream_trust *trust = calloc(1, sizeof(*trust));

    if (!trust) {
        snprintf(out_error, error_size, "out of memory");
        return NULL;
    }
    trust->settings = *settings;
    trust->context = tls_client_context_create(settings, out_error, error_size);
    if (!trust->context) {
        free(trust);
        return NULL;
    }
    trust->next = *trusts;
    *trusts = trust;
    return trust->context;
}

int upstreams_trust(struct upstreams *upstreams, const struct tls_client_settings *settings, char *out_error,
                    size_t error_size)
{
    bool good = find(upstreams->trusts, settings) || add(&upstreams->trusts, settings, out_error, error_size);

    return good ? 0 : -EINVAL;
}

struct tls_context *upstream_pool_tls(struct upstream_pool *pool, const struct tls_client_settings *settings)
{
    struct tls_context *context = find(pool->upstreams->trusts, settings);
    char error[256];

    if (!context)
        context = find(pool->trusts, settings);
    if (!context)
        context = add(&pool->trusts, settings, error, sizeof(error));
    if (!context)
        log_write(pool->log, LOG_ERROR, "TLS to upstreams cannot be set up: %s", error);
    return context;
}

void upstream_trusts_finish(struct upstream_trust **trusts)
{
    struct upstream_trust *trust;

    while ((trust = *trusts) != NULL) {
        *trusts = trust->next;
        tls_context_destroy(trust->context);
        free(trust);
    }
}

void upstreams_finish(struct upstreams *upstreams)
{
    upstream_trusts_finish(&upstreams->trusts);
}
