/*
 * The steps of a request in a gateway: target, balancing, cache, first attempt, end.
 */
#include "gateway.h"

#include "attempt.h"
#include "connection.h"
#include "http/url.h"
#include "request_body.h"
#include "response.h"
#include "response_body.h"
#include "upstream/upstream_bind.h"

#include <errno.h>

/* Sets the group of the evaluated target; NULL with *out_error. */
static void set_group(struct gateway_request *p, int *out_error)
{
    const struct gateway *gateway = p->conf->gateway;
    struct upstream_pool *pool = worker_upstreams(exchange_worker(p->x));

    if (p->conf->pass.upstream)
        p->upstream.group = upstream_pool_group(pool, p->conf->pass.upstream);
    else
        p->upstream.group = upstream_pool_target(pool, p->target.authority,
                                                 gateway->port ? gateway->port : p->target.https ? 443 : 80,
                                                 out_error);
}

/* Sets the group again after a wait: without a connection, a group of a target with variables may have been freed. */
static int renew_group(struct gateway_request *p)
{
    int error = 0;

    set_group(p, &error);
    if (p->upstream.group)
        return 0;
    gateway_log(p, LOG_ERROR, "the upstream group cannot be created", error);
    return error == -ENOMEM ? 500 : 502;
}

/* Evaluates a target with variables. 0, or a status. */
static int find_group(struct gateway_request *p)
{
    const struct gateway *gateway = p->conf->gateway;
    const struct gateway_pass *pass = &p->conf->pass;
    struct str text;
    int error = -EINVAL;

    p->target = pass->target;
    if (pass->upstream) {
        set_group(p, &error);
        return 0;
    }
    text = exchange_eval(p->x, pass->text);
    if (!text.data)
        return 500;
    if (gateway->parse(text, &p->target) == 0)
        set_group(p, &error);
    if (p->upstream.group && exchange_path_traverses(p->x, pass->text, text, p->target.uri, true))
        return 404;
    if (p->upstream.group)
        return 0;
    exchange_log_error(p->x, LOG_ERROR, "%s_pass: \"" STR_FMT "\" is not an address of a server (%s)",
                       gateway->name, STR_ARG(text), strerror(-error));
    return error == -ENOMEM ? 500 : 502;
}

/* Sets up TLS to the upstream server. 0, or a status. */
static int set_upstream_tls(struct gateway_request *p)
{
    const struct gateway_conf *conf = p->conf;

    p->upstream.transport.local_address = upstream_bind_address(&conf->bind);
    if (!p->target.https)
        return 0;
    p->upstream.transport.context =
        upstream_pool_tls(worker_upstreams(exchange_worker(p->x)), &conf->ssl.settings);
    p->upstream.transport.name =
        url_without_port(conf->ssl.name ? exchange_eval(p->x, conf->ssl.name) : p->target.authority);
    return p->upstream.transport.context && p->upstream.transport.name.data ? 0 : 500;
}

/* Formats the PROXY protocol header, which is sent first. */
static void set_upstream_proxy_header(struct gateway_request *p)
{
    union proxy_address own;

    if (!p->conf->proxy_protocol)
        return;
    exchange_local_address(p->x, &own);
    p->upstream.transport.proxy_header =
        str_of(p->upstream.proxy_header,
               proxy_header_write(exchange_client(p->x), &own.any, (unsigned)p->conf->proxy_protocol,
                                  p->upstream.proxy_header));
}

/* Evaluates the key of the balancing method. 0, or a status. */
static int set_balance_key(struct gateway_request *p)
{
    const struct upstream *upstream = upstream_group_upstream(p->upstream.group);

    if (upstream->key) {
        p->upstream.choice.key = exchange_eval(p->x, upstream->key);
        if (!p->upstream.choice.key.data)
            return 500;
    }
    if (upstream->sticky.route) {
        p->upstream.choice.route = exchange_eval(p->x, upstream->sticky.route);
        if (!p->upstream.choice.route.data)
            return 500;
    }
    return 0;
}

static int find_method(struct gateway_request *p)
{
    const struct template *text = p->conf->method;

    p->sent.method_name = text ? exchange_eval(p->x, text) : p->x->request.method_name;
    p->sent.method = text ? method_parse(p->sent.method_name) : p->x->request.method;
    return p->sent.method_name.data ? 0 : 500;
}

/* Evaluates proxy_set_body, which replaces the client's body. */
static int find_body(struct gateway_request *p)
{
    if (p->conf->set_body)
        p->sent.replacement_body = exchange_eval(p->x, p->conf->set_body);
    else if (p->conf->drop_body)
        p->sent.replacement_body = STR("");
    return p->conf->set_body && !p->sent.replacement_body.data ? 500 : 0;
}

/* True if Content-Length would be sent without a body: the server would parse the next request as that body. */
static bool lacks_body(const struct gateway_request *p)
{
    if (!p->sent.consumed || p->sent.replacement_body.data || p->x->request.content_length == 0)
        return false;
    exchange_log_error(p->x, LOG_ERROR, "the request cannot be sent again: a part of its body was not buffered");
    return true;
}

/* Prepares everything that does not depend on the selected server. 0, or a status. */
static int prepare_upstream(struct gateway_request *p)
{
    int status = set_upstream_tls(p);

    if (status == 0)
        set_upstream_proxy_header(p);
    if (status == 0)
        status = set_balance_key(p);
    if (status == 0)
        status = find_method(p);
    if (status == 0)
        status = find_body(p);
    if (status == 0 && lacks_body(p))
        status = 502;
    return status ? status : gateway_target_uri(p, &p->sent.uri);
}

static void body_buffered(void *owner, int error)
{
    struct gateway_request *p = owner;
    int status = error ? 0 : renew_group(p);

    if (error == 0 && status == 0)
        status = gateway_begin(p);
    if (error)
        gateway_request_failed(p, error);
    else if (status)
        gateway_fail(p, status);
}

/* Starts the attempt, after reading the client's body if configured. 0, or a status. */
static int start_upstream_request(struct gateway_request *p)
{
    int status = prepare_upstream(p), error;

    if (status)
        return status;
    error = p->x->request.content_length > 0 ? gateway_buffer_request(p, body_buffered) : 0;
    if (error == 0)
        return gateway_begin(p);
    if (error != -EAGAIN)
        gateway_request_failed(p, error);
    return 0;
}

void gateway_resume(struct gateway_request *p, enum outcome outcome)
{
    int status;

    if (outcome == OUTCOME_DECLINED) {
        status = renew_group(p);
        if (status == 0)
            status = start_upstream_request(p);
        if (status)
            gateway_fail(p, status);
    } else if (outcome == OUTCOME_RESPONDED || outcome == OUTCOME_INTERNAL_REDIRECT) {
        p->stage = GATEWAY_DONE;
        exchange_resume(p->x, outcome);
    }
}

/* The target is evaluated before the lookup: $proxy_host is a part of the cache key. */
static enum outcome gateway_start(struct gateway_request *p)
{
    int status = find_group(p);
    enum outcome outcome = status || !p->cache ? OUTCOME_DECLINED : p->cache->lookup(p);

    if (outcome == OUTCOME_RESPONDED || outcome == OUTCOME_PENDING)
        return outcome;
    if (status == 0)
        status = start_upstream_request(p);
    if (status)
        gateway_fail(p, status);
    return status || p->stage == GATEWAY_DONE ? OUTCOME_RESPONDED : OUTCOME_PENDING;
}

/* True if an attempt before an internal redirect has consumed a part of the body. */
static bool is_body_spent(const struct gateway_request *p)
{
    return p->sent.consumed || gateway_body_is_consumed(p) || (p->sent.buffered && !p->sent.buffered->whole);
}

enum outcome gateway_handler(struct exchange *x, const struct gateway_conf *own)
{
    static const struct upstream_events events = {.opened = gateway_opened,
                                                  .received = gateway_received,
                                                  .piped = gateway_piped,
                                                  .writable = gateway_writable,
                                                  .failed = gateway_lost};
    struct gateway_request *p = gateway_request_make(x);
    enum outcome outcome;

    if (!p)
        return exchange_error_response(x, 500);
    if (p->detached)
        return OUTCOME_PENDING;
    if (gateway_is_connected(p)) /* a 304 of HTTP/2 without END_STREAM, whose stored response became an error page */
        gateway_discard(p);
    if (p->cached)
        p->cache->end(p);
    x->response.trailers.count = 0; /* of a response that was replaced */
    *p = (struct gateway_request){.x = x,
                                  .conf = own,
                                  .events = &events,
                                  .cache = own->cache.functions ? own->cache.functions : p->cache,
                                  .update = p->update,
                                  .slice = p->slice,
                                  .for_head = p->for_head,
                                  .attempts = p->attempts,
                                  .sent.consumed = p->x && is_body_spent(p),
                                  .sent.owned = p->sent.owned,
                                  .sent.buffered = buffered_body_of(&x->request),
                                  .upstream.begun_ms = exchange_clock(x)->monotonic_ms};
    gateway_body_init(p);
    exchange_end_with_client(x, !own->ignore_client_abort);
    if (gateway_counts_hops(x) && gateway_is_last_hop(x))
        return gateway_respond_last_hop(x);
    p->starting = true;
    outcome = gateway_start(p);
    p->starting = false;
    return outcome;
}

void gateway_cancel(struct exchange *x, void *state)
{
    struct gateway_request *p = gateway_request_of(x);

    gateway_discard(p);
    if (p->cached)
        p->cache->end(p);
    buffer_finish(&p->incoming.input);
    if (p->sent.buffered)
        buffered_body_cancel(p->sent.buffered);
    p->stage = GATEWAY_DONE;
}
