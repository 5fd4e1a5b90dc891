/*
 * A response body read as fast as the upstream server sends it (proxy_buffering), which frees the upstream server from
 * slow clients.
 */
#include "response.h"

#include "modules/gateway/spool.h"
#include "response_body.h"

#include <errno.h>

/*
 * True if there is a body and the upstream server does not disable buffering. Never for upgraded connections and gRPC.
 */
bool gateway_uses_spool(const struct gateway_request *p)
{
    bool ignored = p->conf->cache.ignore & IGNORE_X_ACCEL_BUFFERING;
    struct str value = ignored ? STR("") : headers_value(&p->reply.headers, STR("X-Accel-Buffering"));

    if (p->kind == RESPONSE_UPGRADED || p->kind == RESPONSE_TUNNEL || p->reply.bodiless ||
        p->conf->buffering.count == 0)
        return false;
    if (str_equal_nocase(value, STR("yes")))
        return true;
    return p->conf->buffering.responses && !str_equal_nocase(value, STR("no"));
}

static void response_spool_progressed(void *owner)
{
    struct gateway_request *p = owner;

    gateway_read(p);
    gateway_wake_body(p);
}

static void spooling_failed(void *owner, const char *doing, int error)
{
    struct gateway_request *p = owner;

    if (!exchange_may_log_error(p->x, error))
        return;
    exchange_log_error(p->x, LOG_ERROR,
                       "%s in \"" STR_FMT "\" failed (%d: %s): the response is passed on at the client's rate", doing,
                       STR_ARG(p->conf->buffering.directory), -error, strerror(-error));
}

int gateway_spool_append(struct gateway_request *p, struct str part)
{
    static const struct spool_events events = {.progress = response_spool_progressed, .failed = spooling_failed};
    const struct gateway_buffering *buffering = &p->conf->buffering;
    const struct spool_settings settings = {.memory = buffering->count * buffering->size,
                                            .block = buffering->size,
                                            .file_max = buffering->file_max,
                                            .directory = buffering->directory};

    if (!p->incoming.spool) {
        buffer_finish(&p->incoming.input); /* it contained only the head */
        p->incoming.spool = spool_create(exchange_worker(p->x), &settings, &events, p);
    }
    return p->incoming.spool ? spool_append(p->incoming.spool, part) : -ENOMEM;
}
