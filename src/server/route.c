/*
 * Selects the server and the location by nginx's rules. Server names are looked up in tables, at most once per label
 * of the host; locations from the longest prefix down.
 */
#include "server/route.h"

#include "server/connection.h"
#include "site/capture.h"

static struct virtual_server *find_leading(const struct endpoint *endpoint, struct str host)
{
    /* From the left, so that the longest wildcard is found first; "*" stands for at least one label. */
    for (size_t i = 1; i < host.length; i++) {
        struct virtual_server *server;

        if (host.data[i] != '.')
            continue;
        server = table_get(&endpoint->leading, str_skip(host, i));
        if (server)
            return server;
    }
    return NULL;
}

static struct virtual_server *find_trailing(const struct endpoint *endpoint, struct str host)
{
    for (size_t i = host.length; i > 1; i--) {
        struct virtual_server *server;

        if (host.data[i - 1] != '.' || i == host.length)
            continue;
        server = table_get(&endpoint->trailing, str_slice(host, 0, i));
        if (server)
            return server;
    }
    return NULL;
}

static const struct virtual_server *find_server(const struct endpoint *endpoint, struct str host)
{
    struct virtual_server *server = table_get(&endpoint->exact, host);

    if (!server && endpoint->leading.count)
        server = find_leading(endpoint, host);
    if (!server && endpoint->trailing.count)
        server = find_trailing(endpoint, host);
    return server;
}

/* Returns true if a regular expression of the server matches the host; captures become the request's variables. */
static bool server_matches_host(struct request_state *request, const struct virtual_server *server, struct str host)
{
    for (size_t i = 0; i < server->pattern_count; i++) {
        int result = capture_match(server->patterns[i], request->x, host);

        request->regex_failed |= result < 0;
        if (result != 0)
            return true;
    }
    return false;
}

static const struct virtual_server *find_pattern(struct request_state *request, const struct endpoint *endpoint,
                                                 struct str host)
{
    for (size_t i = 0; i < endpoint->pattern_count; i++) {
        if (server_matches_host(request, endpoint->patterns[i], host))
            return endpoint->patterns[i];
    }
    return NULL;
}

const struct virtual_server *route_by_name(const struct endpoint *endpoint, struct str name)
{
    const struct virtual_server *server = find_server(endpoint, name.data ? name : STR(""));

    return server ? server : endpoint->servers[0];
}

void route_server(struct request_state *request, const struct endpoint *endpoint)
{
    struct str host = request->x->request.host;
    const struct virtual_server *server;

    request->server = endpoint->servers[0];
    if (endpoint->server_count == 1 && endpoint->pattern_count == 0)
        return;
    /* "example.com." is the absolute form of the same name. */
    if (host.length > 1 && host.data[host.length - 1] == '.')
        host.length--;
    host = host.data ? host : STR("");
    server = find_server(endpoint, host);
    if (!server && endpoint->pattern_count)
        server = find_pattern(request, endpoint, host);
    if (server)
        request->server = server;
}

/*
 * Returns the location directly inside `outer` that matches the path: an exact one, else the longest prefix (sorted
 * in this order).
 */
static const struct location *location_find_prefix(const struct location *outer, struct str path)
{
    for (size_t i = 0; i < outer->inner_count; i++) {
        const struct location *inner = outer->inner[i];

        switch (inner->kind) {
        case LOCATION_EXACT:
            if (str_equal(path, inner->pattern))
                return inner;
            break;
        case LOCATION_PREFIX:
        case LOCATION_PREFIX_FINAL:
            if (str_starts(path, inner->pattern))
                return inner;
            break;
        case LOCATION_NAMED:
        case LOCATION_REGEX:
            break;
        }
    }
    return NULL;
}

static bool location_find_inside(struct request_state *request, const struct location *outer);

/* Finds the first matching regular expression directly inside `outer`. */
static bool find_regex(struct request_state *request, const struct location *outer)
{
    for (size_t i = 0; i < outer->pattern_count; i++) {
        int result = capture_match(outer->patterns[i]->regex, request->x, request->x->request.path);

        request->regex_failed |= result < 0;
        if (result != 0) {
            request->location = outer->patterns[i];
            (void)location_find_inside(request, outer->patterns[i]);
            return true;
        }
    }
    return false;
}

/*
 * Sets request->location to the match inside `outer`. Returns true if it is final (an exact location or a regular
 * expression); false for a prefix: then the regular expressions of the outer locations are tried.
 */
static bool location_find_inside(struct request_state *request, const struct location *outer)
{
    const struct location *inner = location_find_prefix(outer, request->x->request.path);

    if (inner) {
        request->location = inner;
        if (inner->kind == LOCATION_EXACT || location_find_inside(request, inner))
            return true;
        if (inner->kind == LOCATION_PREFIX_FINAL)
            return false;
    }
    return find_regex(request, outer);
}

void route_next(struct request_state *request)
{
    const struct location *root = request->server->root;

    request->in_server_rules = root->rules != 0 && !request->named && !request->rules_checked && !request->rules_ended;
    request->rules_checked = request->in_server_rules;
    request->return_skipped = NULL;
    if (request->in_server_rules)
        request->location = root;
    else
        route_location(request);
}

/* Returns true if a server-level rule of this scope responds. */
static bool rules_decide(const struct request_state *request)
{
    const struct location *location = request->location;

    for (uint64_t left = location->handlers & location->rules; left != 0; left &= left - 1) {
        unsigned index = (unsigned)__builtin_ctzll(left);

        if (module_table[index]->responds &&
            module_table[index]->responds(request->x, location->module_conf[index]))
            return true;
    }
    return false;
}

uint64_t route_modules(const struct request_state *request)
{
    const struct location *location = request->location;

    return request->in_server_rules && !rules_decide(request) ? location->rules : location->handlers;
}

void route_location(struct request_state *request)
{
    request->alias_rest = STR("");
    if (request->named) {
        request->location = request->named;
        request->named = NULL;
        return;
    }
    request->location = request->server->root;
    (void)location_find_inside(request, request->server->root);
}

const struct location *route_named(const struct request_state *request, struct str name)
{
    const struct location *root = request->server->root;

    for (size_t i = 0; i < root->inner_count; i++) {
        if (root->inner[i]->kind == LOCATION_NAMED && str_equal(root->inner[i]->pattern, name))
            return root->inner[i];
    }
    return NULL;
}

/* Sends no Allow, because the allowed methods depend on the resource. */
static enum outcome respond_asterisk(struct exchange *x)
{
    x->response.status = 204;
    return OUTCOME_RESPONDED;
}

/* keepalive_time: closes a connection of that age after this response. */
static void end_if_old(struct request_state *request)
{
    uint64_t limit_s = request->location->site->keepalive_time_ms / 1000;
    uint32_t now_s = (uint32_t)(request->worker->loop.clock.monotonic_ms / 1000);

    if (now_s - request->connection->opened_s >= limit_s)
        request->x->response.close_after = true;
}

enum outcome route_limit_body(struct request_state *request)
{
    struct exchange *x = request->x;
    uint64_t max = request->location->site->client_max_body_size;
    uint64_t length = x->request.content_length;

    if (request->error_page || exchange_limit_body(x, max) != 413)
        return OUTCOME_DECLINED;
    exchange_drop_body(x);
    return exchange_error_response_log(
        x, 413, LOG_ERROR, "client intended to send too large a body (%llu bytes): client_max_body_size is %llu",
        (unsigned long long)length, (unsigned long long)max);
}

enum outcome route_check_location(struct request_state *request)
{
    struct exchange *x = request->x;
    const struct core_site *site = request->location->site;

    if (request->regex_failed) {
        request->regex_failed = false; /* the location of the error page is searched again */
        return exchange_error_response(x, 500);
    }
    if (site->internal && !request->internal && !request->in_server_rules)
        return exchange_error_response(x, 404);
    end_if_old(request);
    if (x->request.method == METHOD_OPTIONS && str_equal(x->request.path, STR("*")))
        return respond_asterisk(x);
    return request->in_server_rules || request->location->when_block_count > 0 ? OUTCOME_DECLINED
                                                                               : route_limit_body(request);
}
