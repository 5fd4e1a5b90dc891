/*
 * Error responses: `error_page` and the built-in page. As in nginx, an error page is the last one of its
 * exchange unless recursive_error_pages is on in the location of the error, so a failing error page cannot loop.
 */
#include "server/error_response.h"

#include "server/error_body.h"
#include "server/route.h"
#include "site/core.h"

#include <errno.h>

static const struct error_page *find_error_page(const struct core_site *site, unsigned status)
{
    const struct error_page *rows = site->error_pages.items;

    for (size_t i = 0; i < site->error_pages.count; i++) {
        for (unsigned k = 0; k < rows[i].count; k++) {
            if (rows[i].statuses[k] == status)
                return &rows[i];
        }
    }
    return NULL;
}

bool error_response_has_page(const struct core_site *site, int status)
{
    return find_error_page(site, (unsigned)status) != NULL;
}

static enum outcome respond_built_in(struct request_state *request)
{
    error_body_make(request);
    return OUTCOME_RESPONDED;
}

static enum outcome redirect_to_named_location(struct request_state *request, struct str name)
{
    if (route_named(request, name))
        return exchange_internal_redirect_named(request->x, name);
    log_write(request->worker->log, LOG_ERROR, "error_page: there is no location \"" STR_FMT "\"", STR_ARG(name));
    return respond_built_in(request);
}

/* Saves the error's fields (WWW-Authenticate, Allow, Retry-After): add_error_headers adds them to its page. */
static void start_error_page(struct request_state *request)
{
    struct response *response = &request->x->response;

    request->error_page = true;
    request->error_page_final = !request->location->site->recursive_error_pages;
    request->error_headers = response->headers;
    response->headers = (struct headers){0};
}

/* For an error page with a status below 400: removes the error's fields except WWW-Authenticate. */
static void drop_error_headers(struct request_state *request)
{
    struct headers *headers = &request->error_headers;
    unsigned kept = 0;

    for (unsigned i = 0; i < headers->count; i++) {
        if (str_equal_nocase(headers->items[i].name, STR("WWW-Authenticate")))
            headers->items[kept++] = headers->items[i];
    }
    headers->count = kept;
}

static struct str path_of_target(struct str target)
{
    return str_cut(&target, '?');
}

static enum outcome redirect_to_error_page(struct request_state *request, const struct error_page *page,
                                           struct str target)
{
    struct exchange *x = request->x;
    struct str query = target;
    struct str path = str_cut(&query, '?');
    int status = x->response.status;
    enum outcome outcome;

    start_error_page(request);
    request->error_status = page->response_status == -1 ? 0 : page->response_status ? page->response_status : status;
    if (str_starts(target, STR("@"))) {
        outcome = redirect_to_named_location(request, target);
    } else {
        exchange_change_to_get(x);
        request->rules_ended |= request->in_server_rules;
        outcome = exchange_internal_redirect(x, path, query.data ? query : STR(""));
    }
    if (outcome == OUTCOME_INTERNAL_REDIRECT) {
        if (page->response_status && page->response_status < 400)
            drop_error_headers(request);
        return outcome;
    }
    request->error_status = 0;
    return x->response.body ? OUTCOME_RESPONDED : respond_built_in(request);
}

enum outcome error_response_page(struct request_state *request)
{
    struct exchange *x = request->x;
    const struct error_page *page = NULL;
    struct str target;

    if (x->response.body || status_bodiless(x->response.status) || x->response.status == STATUS_CLOSE)
        return OUTCOME_RESPONDED;
    /* As in nginx, a failed error page is sent with its own status. */
    request->error_status = 0;
    if (!request->error_page_final)
        page = find_error_page(request->location->site, (unsigned)x->response.status);
    if (!page)
        return respond_built_in(request);
    target = exchange_eval(x, page->target);
    if (str_empty(target))
        return respond_built_in(request);
    if (target.data[0] == '/' && exchange_path_traverses(x, page->target, target, path_of_target(target), false))
        return respond_built_in(request);
    if (target.data[0] == '/' || target.data[0] == '@')
        return redirect_to_error_page(request, page, target);
    start_error_page(request);
    exchange_redirect(x, status_redirects(page->response_status) ? page->response_status : 302, target);
    return respond_built_in(request);
}

/* Adds the error's fields that the page itself does not set. */
static int add_error_headers(struct request_state *request)
{
    const struct headers *error_headers = &request->error_headers;
    struct headers *headers = &request->x->response.headers;
    const struct headers of_page = *headers;
    int error = 0;

    for (unsigned i = 0; i < error_headers->count && error == 0; i++) {
        const struct header *field = &error_headers->items[i];

        if (!headers_find(&of_page, field->name))
            error = headers_add(headers, &request->x->arena, field->name, field->value);
    }
    return error;
}

void exchange_keep_status(struct exchange *x)
{
    request_state_of(x)->error_status = 0;
}

int error_response_finish(struct request_state *request)
{
    struct response *response = &request->x->response;

    if (request->error_status && response->status != STATUS_CLOSE)
        response->status = request->error_status;
    response->status = error_response_status(response->status);
    return add_error_headers(request);
}

bool exchange_has_error_page(const struct exchange *x, int status)
{
    const struct request_state *request = request_state_of(x);
    const struct core_site *site = request->location->site;

    return !request->error_page_final && error_response_has_page(site, status);
}

bool exchange_is_error_page(const struct exchange *x)
{
    return request_state_of(x)->error_page;
}
