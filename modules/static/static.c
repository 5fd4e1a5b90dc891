/*
 * Static files: looks up the path of the request below the root, its index files, its directory, and precompressed
 * variants. static_found.c handles the results. A lookup may be asynchronous: the exchange is then held until
 * static_lookup_done.
 */
#include "static_search.h"

#include "http/url.h"

#include <errno.h>

static enum outcome search_step(struct search *search);

static enum outcome entry_outcome(struct search *search, struct file_entry *entry)
{
    enum outcome outcome;

    return static_found(search, entry, &outcome) ? outcome : search_step(search);
}

/* The lookup has finished. If the client has disconnected, only the references are released. */
static void static_lookup_done(struct file_lookup *lookup, struct file_entry *entry)
{
    struct search *search = container_of(lookup, struct search, lookup);
    struct exchange *x = search->x;
    enum outcome outcome = OUTCOME_PENDING;

    if (x->cancelled || !entry)
        static_release_plain(search);
    if (x->cancelled)
        file_entry_unref(entry);
    else
        outcome = entry ? entry_outcome(search, entry) : exchange_error_response(x, 500);
    if (outcome != OUTCOME_PENDING)
        exchange_resume(x, outcome);
    exchange_release(x);
}

static enum outcome fail_search(struct search *search, int status)
{
    static_release_plain(search);
    return exchange_error_response(search->x, status);
}

/* Looks up a path below the directory. */
static enum outcome open_path(struct search *search, struct str path)
{
    struct exchange *x = search->x;
    struct str directory = search->directory;
    struct file_entry *entry;
    enum symlinks symlinks;
    bool pending = false;

    if (!exchange_symlinks_from(x, &directory, &path, &symlinks))
        return fail_search(search, 500);
    while (str_starts(path, STR("/")))
        path = str_skip(path, 1);
    entry = file_cache_get(worker_file_cache(exchange_worker(x)), &search->lookup, directory, path,
                           symlinks, &pending);
    if (entry)
        return entry_outcome(search, entry);
    if (!pending)
        return fail_search(search, 500);
    /* The lookup is in the exchange's arena, which must exist until static_lookup_done, also after a disconnect. */
    exchange_hold(x);
    return OUTCOME_PENDING;
}

static enum outcome find_uri(struct search *search, struct str uri)
{
    int error = exchange_file(search->x, uri, &search->directory, &search->path);

    if (error < 0)
        return exchange_error_response(search->x, error == -ENOENT ? 404 : 500);
    search->uri = uri;
    search->root = search->directory;
    while (str_ends(search->root, STR("/")))
        search->root.length--;
    return open_path(search, search->path);
}

/* Looks up the next acceptable precompressed variant, and after the last one answers with the plain file. */
static enum outcome seek_sibling(struct search *search)
{
    struct str suffix, path;

    if (search->sibling == search->codings.count)
        return static_respond_plain(search);
    suffix = static_suffix(search->codings.items[search->sibling]);
    path = arena_join(&search->x->arena, (const struct str[]){search->path, suffix}, 2);
    return path.data ? open_path(search, path) : fail_search(search, 500);
}

/* Looks up the next candidate of `index` for a path with a trailing slash, and after the last one the directory. */
static enum outcome seek_index(struct search *search)
{
    struct exchange *x = search->x;
    struct str name;
    struct str path;

    if (search->index == search->conf->index.count) {
        search->seek = SEEK_DIRECTORY;
        return find_uri(search, x->request.path);
    }
    name = exchange_eval(x, search->conf->index.items[search->index]);
    if (!name.data)
        return exchange_error_response(x, 500);
    if (str_starts(name, STR("/")))
        return exchange_internal_redirect(x, name, (struct str){NULL, 0});
    path = arena_join(&x->arena, (const struct str[]){x->request.path, name}, 2);
    if (!path.data)
        return exchange_error_response(x, 500);
    return find_uri(search, path);
}

static enum outcome search_step(struct search *search)
{
    switch (search->seek) {
    case SEEK_INDEX:
        return seek_index(search);
    case SEEK_SIBLING:
        return seek_sibling(search);
    case SEEK_FILE:
    case SEEK_DIRECTORY:
        break;
    }
    return find_uri(search, search->x->request.path);
}

static enum outcome static_handler(struct exchange *x, const void *conf, void *state)
{
    struct search *search;

    if (!exchange_root(x).data)
        return OUTCOME_DECLINED;
    if (x->request.method != METHOD_GET && x->request.method != METHOD_HEAD && x->request.method != METHOD_POST)
        return static_respond_method(x);
    if (url_path_hidden(x->request.path))
        return exchange_error_response_log(x, 404, LOG_INFO,
                                           "\"" STR_FMT "\" is hidden: a name in it begins with a dot",
                                           STR_ARG(x->request.path));
    search = exchange_state(x, &module_static, sizeof(*search));
    if (!search)
        return exchange_error_response(x, 500);
    search->x = x;
    search->conf = conf;
    search->lookup.found = static_lookup_done;
    search->seek = str_ends(x->request.path, STR("/")) ? SEEK_INDEX : SEEK_FILE;
    search->index = 0;
    search->sibling = 0;
    search->coding = CODINGS;
    return search_step(search);
}

/* The client has disconnected during a lookup: static_lookup_done is still called, and releases the exchange. */
static void static_cancel(struct exchange *x, void *state)
{
    struct search *search = exchange_state(x, &module_static, sizeof(*search));

    if (search && search->x)
        file_lookup_cancel(&search->lookup);
}

const struct module module_static = {
    .name = "static",
    .directives = static_directives,
    .conf_size = sizeof(struct static_conf),
    .conf_check = static_conf_check,
    .handler = static_handler,
    .cancel = static_cancel,
};
