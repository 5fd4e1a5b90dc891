/*
 * Static files: maps the path of the request to a file below the root, its index, a redirect or an error, and to a
 * precompressed variant. static_response.c builds the response. A lookup may be asynchronous: the exchange is then
 * held until static_lookup_done.
 */
#include "static.h"

#include "base/limits.h"
#include "http/url.h"

#include <errno.h>

/* Object of the current lookup. */
enum seek { SEEK_FILE, SEEK_INDEX, SEEK_DIRECTORY, SEEK_SIBLING };

struct search {
    struct file_lookup lookup;
    struct exchange *x;
    const struct static_conf *conf;
    struct str directory;
    struct str root; /* `directory` without trailing slashes */
    struct str path; /* below `directory` */
    struct str uri;  /* URI of the lookup: begins with "/" */
    enum seek seek;
    size_t index; /* index in conf->index */
    struct static_codings codings;
    unsigned sibling;         /* index in `codings` */
    struct file_entry *plain; /* entry of the plain file, or of its ENOENT, during lookups of precompressed variants */
    enum coding coding;       /* coding of the response; CODINGS: none */
    struct op digesting;
    struct file_entry *entry; /* entry being hashed */
    unsigned char digest[STATIC_DIGEST]; /* written by the helper thread, which must not write to the entry */
};

static enum outcome search_step(struct search *search);

static enum outcome respond_open_error(const struct search *search, int error)
{
    return static_respond_error(search->x, search->root, search->path, error);
}

/* Redirects to the path with a trailing slash; the query is kept. */
static enum outcome redirect_to_directory(struct search *search)
{
    struct exchange *x = search->x;
    struct str location = url_path_encode(&x->arena, x->request.path);

    if (location.data)
        location = arena_join(&x->arena, (const struct str[]){location, STR("/"), STR("?"), x->request.query},
                              x->request.query.length ? 4 : 2);
    if (!location.data)
        return exchange_error_response(x, 500);
    return exchange_redirect(x, 301, location);
}

static int digest_work(void *argument)
{
    struct search *search = argument;

    return static_digest(search->entry, search->digest);
}

/* Continues after hashing on a helper thread; if it failed, the ETag is made of time and size. */
static void digest_done(struct op *op, int result)
{
    struct search *search = container_of(op, struct search, digesting);
    struct exchange *x = search->x;

    if (result == 0)
        memcpy(search->entry->digest, search->digest, sizeof(search->digest));
    search->entry->digested |= result == 0;
    if (x->cancelled)
        file_entry_unref(search->entry);
    else
        exchange_resume(x, static_respond_file(x, search->conf, search->entry, search->coding));
    exchange_release(x);
}

/* Returns true if a helper thread must hash the file. Content in memory is hashed at once. */
static bool needs_digest(struct search *search, struct file_entry *entry)
{
    if (search->conf->etag != ETAG_HASH || entry->digested || entry->stat.st_size > LIMIT_ETAG_HASH)
        return false;
    if (entry->content.data || entry->stat.st_size == 0) {
        entry->digested = static_digest(entry, entry->digest) == 0;
        return false;
    }
    return true;
}

static void reset_plain(struct search *search)
{
    file_entry_unref(search->plain);
    search->plain = NULL;
}

static enum outcome respond_file(struct search *search, struct file_entry *entry)
{
    if (!needs_digest(search, entry))
        return static_respond_file(search->x, search->conf, entry, search->coding);
    search->entry = entry;
    search->digesting.done = digest_done;
    exchange_hold(search->x);
    worker_offload(exchange_worker(search->x), &search->digesting, digest_work, search);
    return OUTCOME_PENDING;
}

/* Answers without a precompressed variant. The response depends on Accept-Encoding, so that even a 404 has Vary. */
static enum outcome respond_unencoded(struct search *search)
{
    struct exchange *x = search->x;
    struct file_entry *plain = search->plain;
    int error = plain->error;

    search->plain = NULL;
    if (error == 0)
        return respond_file(search, plain);
    file_entry_unref(plain);
    respond_open_error(search, error);
    if (headers_add(&x->response.headers, &x->arena, STR("Vary"), STR("Accept-Encoding")) < 0)
        return exchange_error_response(x, 500);
    return OUTCOME_RESPONDED;
}

/* Accept-Encoding selects the variants; `gzip_static: always` ignores it for gzip. */
static enum outcome begin_siblings(struct search *search, struct file_entry *plain)
{
    const struct static_conf *conf = search->conf;
    struct static_codings *codings = &search->codings;
    bool always = conf->gzip_static == GZIP_STATIC_ALWAYS;

    codings->count =
        coding_choose(&search->x->request.headers, conf->siblings.items, conf->siblings.count, codings->items);
    for (unsigned i = 0; i < codings->count; i++)
        always = always && codings->items[i] != CODING_GZIP;
    if (always)
        codings->items[codings->count++] = CODING_GZIP;
    search->plain = plain;
    search->seek = SEEK_SIBLING;
    return search_step(search);
}

/* Uses a precompressed variant if it is a regular file and not empty: no coding has an empty output. */
static enum outcome check_sibling(struct search *search, struct file_entry *entry)
{
    bool usable = entry->error == 0 && S_ISREG(entry->stat.st_mode) && entry->stat.st_size > 0;

    if (!usable) {
        file_entry_unref(entry);
        search->sibling++;
        return search_step(search);
    }
    reset_plain(search);
    search->coding = search->codings.items[search->sibling];
    return respond_file(search, entry);
}

/* Answers methods other than GET and HEAD. */
static enum outcome respond_without_file(struct exchange *x)
{
    int status = x->request.method == METHOD_OPTIONS ? 204 : x->request.method == METHOD_OTHER ? 501 : 405;

    exchange_error_response(x, status);
    if (status != 501 &&
        headers_add(&x->response.headers, &x->arena, STR("Allow"), STR("GET, HEAD, OPTIONS")) < 0)
        return exchange_error_response(x, 500);
    return OUTCOME_RESPONDED;
}

/* As in nginx, clients that accept the coding get a file that exists only precompressed. */
static bool tries_siblings(const struct search *search, const struct file_entry *entry)
{
    if (!search->conf->siblings.count || search->x->request.method == METHOD_POST)
        return false;
    return entry->error == -ENOENT || (entry->error == 0 && S_ISREG(entry->stat.st_mode));
}

/*
 * Answers with a file. As in nginx, POST gets 405 only if the file exists; otherwise it gets 404, so that error_page
 * applies, or the redirect of a directory.
 */
static enum outcome check_file(struct search *search, struct file_entry *entry)
{
    mode_t mode = entry->stat.st_mode;
    int error = entry->error;

    if (error == 0 && S_ISREG(mode) && search->x->request.method == METHOD_POST) {
        file_entry_unref(entry);
        return respond_without_file(search->x);
    }
    if (tries_siblings(search, entry))
        return begin_siblings(search, entry);
    if (error == 0 && S_ISREG(mode))
        return respond_file(search, entry);
    file_entry_unref(entry);
    if (error < 0)
        return respond_open_error(search, error);
    if (S_ISDIR(mode))
        return redirect_to_directory(search);
    return exchange_error_response_log(search->x, 404, LOG_ERROR,
                                       "\"" STR_FMT "/" STR_FMT "\" is not a regular file", STR_ARG(search->root),
                                       STR_ARG(search->path));
}

/* An index that exists is an internal redirect, with the location of its own URI; else the next one is tried. */
static enum outcome check_index(struct search *search, struct file_entry *entry)
{
    int error = entry->error;
    bool regular = error == 0 && !S_ISDIR(entry->stat.st_mode);

    file_entry_unref(entry);
    if (regular)
        return exchange_internal_redirect(search->x, search->uri, (struct str){NULL, 0});
    if (error < 0 && error != -ENOENT)
        return respond_open_error(search, error);
    search->index++;
    return search_step(search);
}

/* The autoindex module lists a directory or rejects the request; without it this module must reject it. */
static bool has_autoindex(void)
{
    for (size_t i = 0; module_table[i]; i++) {
        if (strcmp(module_table[i]->name, "autoindex") == 0)
            return true;
    }
    return false;
}

static enum outcome check_directory(struct search *search, struct file_entry *entry)
{
    int error = entry->error;

    file_entry_unref(entry);
    if (error < 0)
        return respond_open_error(search, error);
    if (has_autoindex() && search->x->request.method != METHOD_POST)
        return OUTCOME_DECLINED;
    return exchange_error_response_log(search->x, 403, LOG_ERROR,
                                       "directory index of \"" STR_FMT "/" STR_FMT "\" is forbidden",
                                       STR_ARG(search->root), STR_ARG(search->path));
}

static enum outcome entry_outcome(struct search *search, struct file_entry *entry)
{
    switch (search->seek) {
    case SEEK_FILE:
        return check_file(search, entry);
    case SEEK_INDEX:
        return check_index(search, entry);
    case SEEK_DIRECTORY:
        return check_directory(search, entry);
    case SEEK_SIBLING:
        return check_sibling(search, entry);
    }
    return exchange_error_response(search->x, 500);
}

/* The lookup has finished. If the client has disconnected, only the references are released. */
static void static_lookup_done(struct file_lookup *lookup, struct file_entry *entry)
{
    struct search *search = container_of(lookup, struct search, lookup);
    struct exchange *x = search->x;
    enum outcome outcome = OUTCOME_PENDING;

    if (x->cancelled || !entry)
        reset_plain(search);
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
    reset_plain(search);
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
        return respond_unencoded(search);
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
        return respond_without_file(x);
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
