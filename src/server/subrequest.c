/*
 * A subrequest is an exchange without a protocol session: processing starts with the search for a location, and the
 * owner receives the response. It uses the connection of its parent until the parent ends. It ends in request_end.c.
 */
#include "server/subrequest.h"

#include "base/limits.h"
#include "http/url.h"
#include "server/connection_internal.h"
#include "server/subrequest_internal.h"

#include <errno.h>

static struct subrequest *subrequest_of(struct exchange *x)
{
    return container_of(x, struct subrequest, x);
}

/* Reads a short rest of the body, so that the upstream connection stays reusable. */
static int drain_body(struct subrequest *sub)
{
    struct body *body = sub->x.response.body;
    struct chunk chunk;
    int result;

    if (!body || (sub->discarded_bytes >= LIMIT_SUBREQUEST_REST && !sub->reads_whole_body))
        return 0;
    result = body->ops->next(body, CHUNK_BYTES | CHUNK_FILE, LIMIT_SUBREQUEST_REST, &chunk);
    if (result > 0)
        sub->discarded_bytes += chunk_length(&chunk);
    return result;
}

static void read_remainder(struct subrequest *sub)
{
    int result;

    do
        result = drain_body(sub);
    while (result > 0);
    if (result != -EAGAIN)
        subrequest_release(sub);
}

static void body_woken(void *owner)
{
    struct subrequest *sub = owner;

    exchange_resume(&sub->x, OUTCOME_RESPONDED);
}

/* Called once with the response, and again when more of a discarded body is available. */
static void subrequest_respond(struct exchange *x)
{
    struct subrequest *sub = subrequest_of(x);

    if (sub->stage == STAGE_STARTED && sub->responded) {
        sub->stage = STAGE_RESPONDED;
        sub->responded(x, sub->owner);
        return;
    }
    if (sub->stage == STAGE_STARTED)
        exchange_subrequest_end(x);
    else if (sub->stage == STAGE_ENDING)
        read_remainder(sub);
}

static int ignore_interim(struct exchange *x, int status, const struct headers *headers)
{
    return 0;
}

static const struct exchange_ops subrequest_ops = {.respond = subrequest_respond, .inform = ignore_interim};

void exchange_subrequest_end(struct exchange *child)
{
    struct subrequest *sub = subrequest_of(child);

    sub->stage = STAGE_ENDING;
    if (child->response.body) {
        child->response.body->wake = body_woken;
        child->response.body->owner = sub;
    }
    exchange_resume(child, OUTCOME_RESPONDED);
}

/* Creates a connection without a socket, for a subrequest that outlives its parent's. */
static int create_detached(struct subrequest *sub, const struct connection *connection)
{
    struct connection *detached = arena_zalloc(&sub->x.arena, 1, sizeof(*detached));

    if (!detached)
        return -ENOMEM;
    detached->worker = connection->worker;
    detached->endpoint = connection->endpoint;
    detached->location = connection->location;
    detached->peer = connection->peer;
    detached->number = connection->number;
    detached->requests = connection->requests;
    detached->opened_s = connection->opened_s;
    detached->wire.fd = -1;
    if (connection->proxy_header) {
        detached->proxy_header = arena_alloc(&sub->x.arena, sizeof(*detached->proxy_header));
        if (!detached->proxy_header)
            return -ENOMEM;
        *detached->proxy_header = *connection->proxy_header;
    }
    sub->detached = detached;
    return 0;
}

void exchange_subrequest_detach(struct exchange *child)
{
    struct subrequest *sub = subrequest_of(child);
    struct worker *worker = sub->request->worker;

    if (!sub->detached && worker->detached < LIMIT_DETACHED_SUBREQUESTS &&
        create_detached(sub, sub->request->connection) == 0)
        worker->detached++;
    sub->reads_whole_body = sub->detached != NULL;
    exchange_subrequest_end(child);
}

/* Fields that frame a body or switch the protocol are not copied. */
static bool is_omitted_field(struct str name)
{
    static const char *const names[] = {"Content-Length", "Transfer-Encoding", "Trailer", "Expect",
                                        "Upgrade"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (str_equal_nocase(name, str_from(names[i])))
            return true;
    }
    return false;
}

static int copy_fields(const struct headers *from, struct exchange *x)
{
    int error = 0;

    for (unsigned i = 0; i < from->count && error == 0; i++) {
        if (!is_omitted_field(from->items[i].name))
            error = headers_add(&x->request.headers, &x->arena, from->items[i].name, from->items[i].value);
    }
    return error;
}

/* Copies the client's request with another URI and without a body. */
static int make_request(const struct exchange *parent, struct str uri, bool merge_slashes, struct exchange *x)
{
    struct str query = arena_copy(&x->arena, uri.data ? uri : STR("/"));
    struct str path = str_cut(&query, '?');
    int error;

    if (!path.data)
        return -ENOMEM;
    if (!str_starts(path, STR("/")))
        return -EINVAL;
    if (!uri.data)
        query = parent->request.query;
    x->request = parent->request;
    x->request.method = METHOD_GET;
    x->request.method_name = STR("GET");
    x->request.query = query;
    x->request.headers = x->request.trailers = (struct headers){0};
    x->request.body = body_empty();
    x->request.tunnel = NULL;
    x->request.content_length = 0;
    x->request.expects_continue = false;
    error = uri.data ? url_path_normalise(&x->arena, path, merge_slashes, &x->request.path) : 0;
    return error < 0 ? error : copy_fields(&parent->request.headers, x);
}

/* Copies the parent's values of the configuration's variables. */
static int copy_user_variables(const struct request_state *parent, struct request_state *request)
{
    size_t count = request->worker->configuration->user_variables.count;

    if (!parent->user_values.values || count == 0)
        return 0;
    request->user_values.values = arena_alloc(&request->x->arena, count * sizeof(*request->user_values.values));
    if (!request->user_values.values)
        return -ENOMEM;
    memcpy(request->user_values.values, parent->user_values.values, count * sizeof(*request->user_values.values));
    return 0;
}

/* Starts at the parent's location; with `same` it stays there and uses the parent's regular expression captures. */
static int make_request_state(struct subrequest *sub, struct request_state *parent, bool same)
{
    struct request_state *request = request_state_create(&sub->x, parent->connection, parent->worker);

    if (!request)
        return -ENOMEM;
    sub->request = request;
    request->parent = parent->x;
    request->server = parent->server;
    request->location = parent->location;
    request->internal_redirects = parent->internal_redirects + !same;
    request->rewritten = !same || parent->rewritten;
    if (same) /* they point into the parent, which is held */
        request->user_values.groups = parent->user_values.groups;
    request->internal = true;
    request->early = parent->early;
    request->client_known = parent->client_known;
    request->trusted = parent->trusted;
    request->client = parent->client;
    return copy_user_variables(parent, request);
}

static int subrequest_init(struct subrequest *sub, struct request_state *parent, struct str uri)
{
    struct exchange *x = &sub->x;
    int error;

    x->ops = &subrequest_ops;
    x->session = sub;
    x->settings = parent->x->settings;
    x->started_us = parent->worker->loop.clock.monotonic_us;
    list_init(&sub->link);
    error = make_request(parent->x, uri, parent->location->site->merge_slashes, x);
    if (error == 0)
        error = make_request_state(sub, parent, !uri.data);
    if (error == 0 && !sub->responded)
        error = create_detached(sub, parent->connection);
    return error;
}

/* Detached subrequests are limited per worker, because no client connection bounds them. */
static bool may_start(struct request_state *request, bool detached)
{
    unsigned depth = 1;

    if (detached && request->worker->detached >= LIMIT_DETACHED_SUBREQUESTS)
        return false;
    for (const struct exchange *x = request->parent; x; x = request_state_of(x)->parent)
        depth++;
    return depth <= LIMIT_SUBREQUEST_DEPTH && request->child_count < LIMIT_SUBREQUESTS;
}

int exchange_subrequest(struct exchange *x, struct str uri, exchange_subrequest_responded *responded, void *owner,
                   struct exchange **out_child)
{
    struct request_state *request = request_state_of(x);
    struct subrequest *sub;
    int error;

    if (!may_start(request, !responded))
        return -EMFILE;
    sub = container_of(exchange_create(&request->worker->arenas, sizeof(*sub)), struct subrequest, x);
    if (!sub)
        return -ENOMEM;
    sub->responded = responded;
    sub->owner = owner;
    error = subrequest_init(sub, request, uri);
    if (error < 0) {
        exchange_release(&sub->x);
        return error;
    }
    request->child_count++;
    if (sub->detached)
        request->worker->detached++;
    for (struct exchange *ancestor = x; ancestor; ancestor = request_state_of(ancestor)->parent)
        exchange_hold(ancestor); /* x may end before this subrequest, and with it its hold of its own parent */
    list_push(&request->children, &sub->link);
    sub->request->next_module = request->next_module - 1;
    exchange_resume(&sub->x, uri.data ? OUTCOME_INTERNAL_REDIRECT : OUTCOME_DECLINED);
    *out_child = &sub->x;
    return 0;
}

bool subrequest_ends_with_client(const struct request_state *request)
{
    bool ends = request->ends_with_client;

    for (const struct list *link = request->children.next; link != &request->children && !ends; link = link->next) {
        const struct subrequest *sub = container_of(link, const struct subrequest, link);

        ends = sub->responded && sub->stage == STAGE_STARTED && subrequest_ends_with_client(sub->request);
    }
    return ends;
}
