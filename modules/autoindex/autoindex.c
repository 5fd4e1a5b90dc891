/*
 * `autoindex`: lists a directory without an index file as HTML or JSON. A helper thread reads the directory. With
 * `autoindex: off` the response is 403.
 */
#include "autoindex.h"

#include "base/limits.h"
#include "http/url.h"
#include "server/page/page.h"

#include <errno.h>
#include <stddef.h>

enum format { FORMAT_AUTO, FORMAT_HTML, FORMAT_JSON };

static const char *const formats[] = {"auto", "html", "json", NULL};

#define AT(field) offsetof(struct autoindex_conf, field)

extern const struct module module_autoindex;

static const struct directive directives[] = {
    {.name = "autoindex",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(on),
     .default_value = "off",
     .example = "autoindex: on",
     .help = "List a directory that has no index file; names that begin with a dot are omitted. ?sort=name, size or "
             "date and order=asc or desc set the order."},
    {.name = "autoindex_format",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CHOICE,
     .choices = formats,
     .offset = AT(format),
     .default_value = "auto",
     .example = "autoindex_format: json",
     .help = "The format of the listing: HTML or JSON; auto: by Accept, HTML without it."},
    {.name = "autoindex_exact_size",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(exact_size),
     .default_value = "off",
     .example = "autoindex_exact_size: on",
     .help = "Exact sizes in bytes in HTML (off in sluice, unlike nginx: 1.4 MB). JSON always has bytes."},
    {.name = "autoindex_localtime",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(localtime),
     .default_value = "off",
     .example = "autoindex_localtime: on",
     .help = "Times in HTML are in the local time zone; otherwise in UTC."},
    {0},
};

/* Returns the value of a query parameter; empty if absent. */
static struct str query_parameter(struct str query, struct str name)
{
    while (query.data) {
        struct str value = str_cut(&query, '&');
        struct str key = str_cut(&value, '=');

        if (value.data && str_equal(key, name))
            return value;
    }
    return STR("");
}

/* Returns true if Accept contains JSON but not HTML. */
static bool is_json_requested(const struct exchange *x)
{
    const struct headers *headers = &x->request.headers;

    return headers_list_has(headers, STR("Accept"), STR("application/json")) &&
           !headers_list_has(headers, STR("Accept"), STR("text/html"));
}

/* Runs on a helper thread, including the sort, which takes long for ten thousand names. */
static int read_directory(void *argument)
{
    struct listing *listing = argument;

    listing->error = directory_read(listing->roots, listing->root.data, listing->path.data, listing->symlinks,
                                 LIMIT_LISTING_ITEMS, &listing->directory);
    if (listing->error >= 0)
        listing_sort(listing);
    return 0;
}

static int add_fields(struct listing *listing)
{
    struct exchange *x = listing->x;
    struct str type = listing->json ? STR("application/json") : STR("text/html; charset=utf-8");
    int error = headers_add(&x->response.headers, &x->arena, STR("Content-Type"), exchange_set_response_type(x, type));

    if (error == 0 && listing->conf->format == FORMAT_AUTO)
        error = headers_add(&x->response.headers, &x->arena, STR("Vary"), STR("Accept"));
    if (error == 0 && !listing->json)
        error = exchange_set_security_policy(x, listing_has_filter(listing) ? page_filter_policy : page_policy);
    return error;
}

static enum outcome respond_listing(struct listing *listing)
{
    struct exchange *x = listing->x;
    struct buffer page = {.max = LIMIT_EXCHANGE_MEMORY / 2};
    struct str text = {NULL, 0};
    int error;

    error = listing->json ? listing_write_json(listing, &page) : listing_write_page(listing, &page);
    if (error == 0)
        text = arena_copy(&x->arena, buffer_str(&page));
    buffer_finish(&page);
    exchange_error_response(x, 200);
    x->response.body = text.data ? body_bytes(&x->arena, text) : NULL;
    if (!x->response.body || add_fields(listing) < 0)
        return exchange_error_response(x, 500);
    return OUTCOME_RESPONDED;
}

static enum outcome respond_error(struct listing *listing)
{
    int error = listing->error;
    bool gone = error == -ENOENT || error == -ENOTDIR;
    bool denied = error == -EACCES || error == -EPERM || error == -ELOOP || error == -EXDEV;
    bool exhausted = error == -EMFILE || error == -ENFILE;

    return exchange_error_response_log(listing->x,
                                       gone        ? 404
                                       : denied    ? 403
                                       : exhausted ? exchange_out_of_descriptors(listing->x)
                                               : 500,
                                       gone || exhausted ? LOG_INFO : LOG_ERROR,
                                       "cannot list \"" STR_FMT "/" STR_FMT "\" (%d: %s)", STR_ARG(listing->root),
                                       STR_ARG(listing->path), -error, strerror(-error));
}

static void directory_done(struct op *op, int result)
{
    struct listing *listing = container_of(op, struct listing, op);
    struct exchange *x = listing->x;

    if (result < 0)
        listing->error = result;
    if (!x->cancelled)
        exchange_resume(x, listing->error < 0 ? respond_error(listing) : respond_listing(listing));
    directory_finish(&listing->directory);
    exchange_release(x);
}

/* Finds the directory; the paths are NUL-terminated copies in the exchange's arena. */
static int locate_directory(struct listing *listing)
{
    struct exchange *x = listing->x;
    struct str root, path;
    int error = exchange_file(x, x->request.path, &root, &path);

    if (error < 0)
        return error;
    if (!exchange_symlinks_from(x, &root, &path, &listing->symlinks))
        return -ENOMEM;
    while (str_starts(path, STR("/")))
        path = str_skip(path, 1);
    listing->root = arena_copy(&x->arena, root);
    listing->path = arena_copy(&x->arena, path);
    return listing->root.data && listing->path.data ? 0 : -ENOMEM;
}

static enum outcome start_listing(struct exchange *x, const struct autoindex_conf *conf)
{
    struct listing *listing = exchange_state(x, &module_autoindex, sizeof(*listing));
    struct str sort = query_parameter(x->request.query, STR("sort"));
    int error;

    if (!listing)
        return exchange_error_response(x, 500);
    *listing = (struct listing){
        .op.done = directory_done,
        .x = x,
        .conf = conf,
        .roots = file_cache_roots(worker_file_cache(exchange_worker(x))),
        .sort = str_equal(sort, STR("size"))   ? SORT_SIZE
                : str_equal(sort, STR("date")) ? SORT_DATE
                                               : SORT_NAME,
        .descending = str_equal(query_parameter(x->request.query, STR("order")), STR("desc")),
        .json = conf->format == FORMAT_JSON || (conf->format == FORMAT_AUTO && is_json_requested(x)),
    };
    error = locate_directory(listing);
    if (error < 0)
        return exchange_error_response(x, error == -ENOENT ? 404 : 500);
    /*
     * The helper thread uses memory of the exchange's arena: hold the exchange until it is done, even if the client
     * disconnects.
     */
    exchange_hold(x);
    worker_offload(exchange_worker(x), &listing->op, read_directory, listing);
    return OUTCOME_PENDING;
}

static enum outcome autoindex_handler(struct exchange *x, const void *conf, void *state)
{
    const struct autoindex_conf *own = conf;
    struct str root = exchange_root(x);

    /* The static module has declined the request: the path is a directory without an index file. */
    if (!root.data || !str_ends(x->request.path, STR("/")) ||
        (x->request.method != METHOD_GET && x->request.method != METHOD_HEAD))
        return OUTCOME_DECLINED;
    if (!own->on)
        return exchange_error_response_log(x, 403, LOG_ERROR,
                                           "directory index of \"" STR_FMT STR_FMT "\" is forbidden",
                                           STR_ARG(root), STR_ARG(x->request.path));
    return start_listing(x, own);
}

const struct module module_autoindex = {
    .name = "autoindex",
    .directives = directives,
    .conf_size = sizeof(struct autoindex_conf),
    .handler = autoindex_handler,
};
