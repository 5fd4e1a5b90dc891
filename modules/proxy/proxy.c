/*
 * `proxy_pass`: stands before applications. A request is passed on as it comes, and its
 * answer as it comes back; nothing is kept but what one read brings, so that whoever is slow
 * slows the other down.
 *
 *      proxy_answer -> gateway_connect -> opened -> send_request
 *                                   gateway_received -> head_came -> body_next -> body_closed
 */
#include "proxy.h"

#include "http/url.h"

#include <errno.h>

/* A target made of variables is known only now. 0, or a status. */
static int find_group(struct gateway_request *p)
{
    const struct gateway *gateway = p->conf->gateway;
    const struct gateway_pass *pass = &p->conf->pass;
    struct upstream_pool *pool = worker_upstreams(exchange_worker(p->x));
    struct str text;
    int error = -EINVAL;

    p->target = pass->target;
    if (pass->upstream) {
        p->group = upstream_pool_group(pool, pass->upstream);
        return 0;
    }
    text = exchange_eval(p->x, pass->text);
    if (!text.data)
        return 500;
    if (gateway->parse(text, &p->target) == 0)
        p->group = upstream_pool_target(pool, p->target.authority,
                                        gateway->port ? gateway->port : proxy_target_port(&p->target), &error);
    if (p->group && exchange_climbs(p->x, pass->text, text, p->target.uri, true))
        return 404;
    if (p->group)
        return 0;
    exchange_say(p->x, LOG_ERROR, "%s_pass: \"" STR_FMT "\" is no address to pass a request to (%s)",
                 gateway->rewrites ? "proxy" : gateway->scheme, STR_ARG(text), strerror(-error));
    return error == -ENOMEM ? 500 : 502;
}

/* How it is to be encrypted. 0, or a status. */
static int find_tls(struct gateway_request *p)
{
    const struct proxy_conf *conf = p->conf;

    if (!p->target.https)
        return 0;
    p->tls.context = upstream_pool_tls(worker_upstreams(exchange_worker(p->x)), &conf->ssl);
    p->tls.name = url_without_port(conf->ssl_name ? exchange_eval(p->x, conf->ssl_name) : p->target.authority);
    return p->tls.context && p->tls.name.data ? 0 : 500;
}

/* What is said to the server of the client, before all else. */
static void find_greeting(struct gateway_request *p)
{
    union proxy_address own;

    if (!p->conf->greets)
        return;
    exchange_own_address(p->x, &own);
    p->tls.greeting = str_of(p->greeting, proxy_header_write(exchange_client(p->x), &own.any,
                                                             (unsigned)p->conf->greets, p->greeting));
}

/* What decides, beside the group's rule, which server is asked. 0, or a status. */
static int find_key(struct gateway_request *p)
{
    const struct upstream *upstream = upstream_group_upstream(p->group);

    if (upstream->key) {
        p->choice.key = exchange_eval(p->x, upstream->key);
        if (!p->choice.key.data)
            return 500;
    }
    if (upstream->sticky.route) {
        p->choice.route = exchange_eval(p->x, upstream->sticky.route);
        if (!p->choice.route.data)
            return 500;
    }
    return 0;
}

static int find_method(struct gateway_request *p)
{
    const struct template *text = p->conf->method;

    p->method_name = text ? exchange_eval(p->x, text) : p->x->request.method_name;
    p->method = text ? method_parse(p->method_name) : p->x->request.method;
    return p->method_name.data ? 0 : 500;
}

/* What is sent in the place of the client's body, which is not read then. */
static int find_body(struct gateway_request *p)
{
    if (p->conf->set_body)
        p->own_body = exchange_eval(p->x, p->conf->set_body);
    else if (p->conf->drop_body)
        p->own_body = STR("");
    return p->conf->set_body && !p->own_body.data ? 500 : 0;
}

/* A length that is promised and a body that is gone: the next request on the connection would be taken for
 * it. */
static bool lacks_body(const struct gateway_request *p)
{
    if (!p->spent || p->own_body.data || p->x->request.content_length == 0)
        return false;
    exchange_say(p->x, LOG_ERROR, "the request cannot be passed on again: a part of its body is gone");
    return true;
}

/* Everything that is the same for each server that is asked. 0, or a status. */
static int prepare(struct gateway_request *p)
{
    int status = find_tls(p);

    if (status == 0)
        find_greeting(p);
    if (status == 0)
        status = find_key(p);
    if (status == 0)
        status = find_method(p);
    if (status == 0)
        status = find_body(p);
    if (status == 0 && lacks_body(p))
        status = 502;
    if (status)
        return status;
    p->upgrade = str_empty(p->own_body) ? proxy_upgrade(p->x) : STR("");
    return gateway_target_uri(p, &p->uri);
}

/* A body that was read before has a length, however it came; trailers need chunks to stand behind. */
static uint64_t content_length(const struct gateway_request *p)
{
    const struct request *request = &p->x->request;

    bool chunks = request->trailers.count > 0 && !p->conf->gateway->measured;

    if (p->own_body.data)
        return p->own_body.length;
    return p->kept && p->kept->whole && !chunks ? spool_length(p->kept->spool) : request->content_length;
}

int gateway_begin(struct gateway_request *p)
{
    struct str fault = STR("");
    int error;

    p->content_length = content_length(p);
    error = p->conf->gateway->write_head(p, &fault);
    if (error == 0 && fault.length)
        exchange_say(p->x, LOG_ERROR, "the request could not be passed on as it was: " STR_FMT, STR_ARG(fault));
    if (error == -EINVAL)
        exchange_say(p->x, LOG_ERROR, "the request cannot be passed on: " STR_FMT " would break it",
                     STR_ARG(fault));
    if (error < 0)
        return error == -ENOENT ? 404 : 500;
    return gateway_connect(p);
}

/* Asks a server. 0, or a status. */
static int fetch(struct gateway_request *p)
{
    int status = prepare(p);

    if (status == 0 && !gateway_buffer_request(p))
        status = gateway_begin(p);
    return status;
}

void gateway_resume(struct gateway_request *p, enum outcome outcome)
{
    int status;

    if (outcome == OUTCOME_PASS) {
        status = fetch(p);
        if (status)
            gateway_fail(p, status);
    } else if (outcome == OUTCOME_ANSWERED) {
        p->stage = GATEWAY_DONE;
        exchange_resume(p->x, outcome);
    }
}

/* The target is known before the cache is asked: $proxy_host is a part of the key. */
static enum outcome begin(struct gateway_request *p)
{
    int status = find_group(p);
    enum outcome outcome = status ? OUTCOME_PASS : proxy_cache_begin(p);

    if (outcome == OUTCOME_ANSWERED || outcome == OUTCOME_PENDING)
        return outcome;
    if (status == 0)
        status = fetch(p);
    if (status)
        gateway_fail(p, status);
    return status || p->stage == GATEWAY_DONE ? OUTCOME_ANSWERED : OUTCOME_PENDING;
}

enum outcome gateway_answer(struct exchange *x, const struct proxy_conf *own)
{
    struct gateway_request *p;
    enum outcome outcome;

    p = exchange_state(x, &module_proxy, sizeof(*p));
    if (!p)
        return exchange_refuse(x, 500);
    proxy_cache_end(p);
    *p = (struct gateway_request){.x = x,
                                  .conf = own,
                                  .update = p->update,
                                  .slice = p->slice,
                                  .attempts = p->attempts,
                                  .spent = p->spent || gateway_body_is_spent(p) || (p->kept && !p->kept->whole),
                                  .made = p->made,
                                  .kept = buffered_body_of(&x->request),
                                  .begun_ms = exchange_clock(x)->monotonic_ms};
    gateway_body_init(p);
    exchange_end_with_client(x, !own->ignore_client_abort);
    if (gateway_is_last_hop(x))
        return gateway_answer_last_hop(x);
    p->starting = true;
    outcome = begin(p);
    p->starting = false;
    return outcome;
}

static enum outcome proxy_answer(struct exchange *x, const void *conf, void *state)
{
    return gateway_answer(x, conf);
}

void gateway_cancel(struct exchange *x, void *state)
{
    struct gateway_request *p = exchange_state(x, &module_proxy, sizeof(*p));

    gateway_discard(p);
    proxy_cache_end(p);
    buffer_finish(&p->input);
    if (p->kept)
        buffered_body_cancel(p->kept);
    p->stage = GATEWAY_DONE;
}

static void proxy_finish(struct exchange *x, const void *conf)
{
    struct gateway_request *p = exchange_state_found(x, &module_proxy);

    if (p) {
        proxy_cache_give_back(&p->update);
        proxy_cache_end(p);
        buffer_finish(&p->input); /* where the answer was not its body */
        if (p->made)
            buffered_body_close(p->made);
    }
}

static bool proxy_idle(const void *conf)
{
    const struct proxy_conf *own = conf;

    return !own->pass.text;
}

const struct module module_proxy = {
    .name = "proxy",
    .directives = proxy_directives,
    .conf_size = sizeof(struct proxy_conf),
    .conf_check = proxy_conf_check,
    .idle = proxy_idle,
    .answer = proxy_answer,
    .finish = proxy_finish,
    .cancel = gateway_cancel,
    .variables = &proxy_variables,
    .others = OTHERS_ANSWER,
};
