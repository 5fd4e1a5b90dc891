/*
 * The functions of module.h that concern the exchange: each finds the request, the location and the worker. No
 * module logic is implemented here.
 */
#include "server/request_state.h"

#include "base/limits.h"
#include "server/connection_internal.h"
#include "server/descriptors.h"
#include "server/error_response.h"
#include "server/route.h"
#include "server/satisfy.h"
#include "server/variables.h"
#include "site/when.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>

static unsigned module_index(const struct module *module)
{
    unsigned index = 0;

    while (module_table[index] != module)
        index++;
    return index;
}

/* The state of one module in one exchange. */
struct request_module_state {
    struct request_module_state *next;
    const struct module *module;
    alignas(max_align_t) char bytes[];
};

void *exchange_state_found(const struct exchange *x, const struct module *module)
{
    struct request_module_state *state = request_state_of(x)->states;

    while (state && state->module != module)
        state = state->next;
    return state ? state->bytes : NULL;
}

void *exchange_state(struct exchange *x, const struct module *module, size_t size)
{
    struct request_state *request = request_state_of(x);
    void *found = exchange_state_found(x, module);
    struct request_module_state *state;

    if (found)
        return found;
    state = arena_zalloc(&x->arena, 1, sizeof(*state) + size);
    if (!state)
        return NULL;
    state->next = request->states;
    state->module = module;
    request->states = state;
    return state->bytes;
}

void exchange_resume(struct exchange *x, enum outcome outcome)
{
    struct request_state *request = request_state_of(x);

    request->resumed_with = outcome;
    list_remove(&request->resumed);
    list_push(&request->worker->resumed, &request->resumed);
}

enum outcome exchange_error_response(struct exchange *x, int status)
{
    body_close(&x->response.body);
    request_state_of(x)->has_security_policy = false;
    request_state_of(x)->response_type = (struct str){NULL, 0};
    x->response.headers.count = 0;
    x->response.status = status;
    return OUTCOME_ANSWERED;
}

void exchange_set_rate(struct exchange *x, uint64_t rate)
{
    struct request_state *request = request_state_of(x);

    request->rate = rate;
    for (unsigned i = 0; module_table[i] && i < LIMIT_MODULES; i++) {
        if (module_table[i]->limits_rate)
            request->filtering |= UINT64_C(1) << i;
    }
}

bool exchange_rate(const struct exchange *x, uint64_t *out_rate)
{
    const struct request_state *request = request_state_of(x);

    if (request->filtering == 0)
        return false;
    *out_rate = request->rate;
    return true;
}

PRINTF_LIKE(3, 0)
static void write_log_line(struct exchange *x, enum log_level level, const char *format, va_list args)
{
    struct log *log = exchange_log(x);
    const struct request_state *request = request_state_of(x);
    struct str client, id;
    char said[512];

    if (level > log->level)
        return;
    if (vsnprintf(said, sizeof(said), format, args) < 0)
        said[0] = '\0';
    client = variable_remote_addr(x, &x->arena);
    id = variable_request_id(x);
    log_write(log, level,
              "*%llu %s, client: " STR_FMT ", server: " STR_FMT ", request: \"" STR_FMT "\", host: \"" STR_FMT
              "\", id: " STR_FMT,
              (unsigned long long)request->connection->number, said, STR_ARG(client), STR_ARG(request->server->name),
              STR_ARG(x->request.line), STR_ARG(x->request.host), STR_ARG(id));
}

void exchange_log_error(struct exchange *x, enum log_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    write_log_line(x, level, format, args);
    va_end(args);
}

enum outcome exchange_error_response_log(struct exchange *x, int status, enum log_level level, const char *format,
                                         ...)
{
    va_list args;

    va_start(args, format);
    write_log_line(x, level, format, args);
    va_end(args);
    return exchange_error_response(x, status);
}

int exchange_out_of_descriptors(struct exchange *x)
{
    (void)descriptors_reclaim(request_state_of(x)->worker);
    client_request_state_of(x)->x->response.close_after = true;
    return 503;
}

const struct when *exchange_when(const struct exchange *x, size_t index)
{
    const struct location *location = request_state_of(x)->location;

    return index < location->when_count ? &location->whens[index] : NULL;
}

enum outcome exchange_apply_when(struct exchange *x, const struct when *when)
{
    struct request_state *request = request_state_of(x);
    enum outcome outcome = OUTCOME_PASS;

    if (when) {
        request->location = when->location;
        request_apply_settings(request);
        outcome = route_guard(request);
    }
    return outcome == OUTCOME_PASS && !request->in_server ? route_limit_body(request) : outcome;
}

const void *exchange_conf(const struct exchange *x, const struct module *module)
{
    return request_state_of(x)->location->module_conf[module_index(module)];
}

/*
 * Returns "https://name:port" according to `server_name_in_redirect` and `port_in_redirect`; empty if no server name
 * is known.
 */
static struct str own_origin(struct exchange *x)
{
    const struct request_state *request = request_state_of(x);
    const struct core_site *site = request->location->site;
    const struct endpoint *endpoint = request->connection->endpoint;
    struct str name = x->request.host;
    unsigned port = 0;

    if (site->server_name_in_redirect || str_empty(name))
        name = request->server->name;
    if (str_empty(name))
        return name;
    if (site->port_in_redirect)
        port = listen_address_port(&endpoint->address);
    if (port == 0 || port == (endpoint->ssl ? 443u : 80u))
        return arena_printf(&x->arena, "%s://" STR_FMT, endpoint->ssl ? "https" : "http", STR_ARG(name));
    return arena_printf(&x->arena, "%s://" STR_FMT ":%u", endpoint->ssl ? "https" : "http", STR_ARG(name),
                        port);
}

/* Reduces several leading slashes to one: "//name" names another host, and browsers read a backslash as a slash. */
static struct str own_path(struct exchange *x, struct str location)
{
    size_t count = 0;

    while (count < location.length && (location.data[count] == '/' || location.data[count] == '\\'))
        count++;
    if (count < 2)
        return location;
    return arena_join(&x->arena, (const struct str[]){STR("/"), str_skip(location, count)}, 2);
}

enum outcome exchange_redirect(struct exchange *x, int status, struct str location)
{
    struct request_state *request = request_state_of(x);

    exchange_error_response(x, status);
    request->error_status = 0; /* an error page that redirects has the status of the redirect, as in nginx */
    location = own_path(x, location);
    if (str_starts(location, STR("/")) && request->location->site->absolute_redirect) {
        struct str origin = own_origin(x);

        if (!origin.data)
            return exchange_error_response(x, 500);
        if (origin.length)
            location = arena_join(&x->arena, (const struct str[]){origin, location}, 2);
    }
    if (!location.data || headers_add(&x->response.headers, &x->arena, STR("Location"), location) < 0)
        return exchange_error_response(x, 500);
    return OUTCOME_ANSWERED;
}

enum outcome exchange_cut(struct exchange *x)
{
    exchange_error_response(x, 444);
    x->response.close_after = true;
    return OUTCOME_ANSWERED;
}

void exchange_count_as_writing(struct exchange *x)
{
    connection_timeout_count_writing(request_state_of(x)->connection);
}

struct worker *exchange_worker(const struct exchange *x)
{
    return request_state_of(x)->worker;
}

struct log *exchange_log(const struct exchange *x)
{
    return request_state_of(x)->worker->log;
}

const struct clock *exchange_clock(const struct exchange *x)
{
    return &request_state_of(x)->worker->loop.clock;
}

struct str exchange_set_response_type(struct exchange *x, struct str type)
{
    request_state_of(x)->response_type = type;
    return type;
}

struct str exchange_media_type(struct exchange *x, struct str path)
{
    return exchange_set_response_type(x, mime_lookup(&request_state_of(x)->location->site->mime, path));
}

struct str exchange_text_type(struct exchange *x)
{
    const struct core_site *site = request_state_of(x)->location->site;
    struct str type = mime_lookup(&site->mime, x->request.path);

    if (type.data == site->mime.fallback.data && str_empty(site->default_type))
        type = mime_lookup(&site->mime, STR(".txt"));
    return exchange_set_response_type(x, type);
}

struct str exchange_eval(struct exchange *x, const struct template *template)
{
    return template_eval(template, x, &x->arena);
}

bool exchange_has_error_page(const struct exchange *x, int status)
{
    const struct request_state *request = request_state_of(x);
    const struct core_site *site = request->location->site;

    return (!request->error_page || site->recursive_error_pages) && error_response_has_page(site, status);
}

bool exchange_satisfies_any(const struct exchange *x)
{
    return request_state_of(x)->location->site->satisfy == SATISFY_ANY;
}

bool exchange_is_error_page(const struct exchange *x)
{
    return request_state_of(x)->error_page;
}

bool exchange_needs_whole_body(const struct exchange *x)
{
    const struct location *location = request_state_of(x)->location;

    for (uint64_t left = location->filtering; left != 0; left &= left - 1) {
        unsigned index = (unsigned)__builtin_ctzll(left);

        if (module_table[index]->wants_whole && module_table[index]->wants_whole(x, location->module_conf[index]))
            return true;
    }
    return false;
}

struct str exchange_location(const struct exchange *x)
{
    const struct location *location = request_state_of(x)->location;

    return location->kind == LOCATION_NAMED || location->regex ? (struct str){NULL, 0} : location->pattern;
}

bool exchange_is_child(const struct exchange *x)
{
    return request_state_of(x)->parent != NULL;
}

bool exchange_uri_changed(const struct exchange *x)
{
    return request_state_of(x)->rewritten;
}

bool exchange_is_internally_redirected(const struct exchange *x)
{
    return request_state_of(x)->internal_redirects > 0;
}

void exchange_end_with_client(struct exchange *x, bool ends)
{
    request_state_of(x)->ends_with_client = ends;
}

const struct sockaddr *exchange_peer(const struct exchange *x)
{
    return &request_state_of(x)->connection->peer.any;
}

void exchange_local_address(const struct exchange *x, union proxy_address *out)
{
    wire_local_address(&request_state_of(x)->connection->wire, out);
}

const struct sockaddr *exchange_client(const struct exchange *x)
{
    const struct request_state *request = request_state_of(x);

    return request->client_known ? &request->client.any : &request->connection->peer.any;
}

bool exchange_is_secure(const struct exchange *x)
{
    return request_state_of(x)->connection->endpoint->ssl;
}

const struct proxy_header *exchange_proxy_header(const struct exchange *x)
{
    return request_state_of(x)->connection->proxy_header;
}

void exchange_set_client(struct exchange *x, const union proxy_address *client, bool trusted)
{
    struct request_state *request = request_state_of(x);

    request->trusted = trusted;
    request->client = *client;
    request->client_known = true;
}

bool exchange_is_trusted(const struct exchange *x)
{
    return request_state_of(x)->trusted;
}
