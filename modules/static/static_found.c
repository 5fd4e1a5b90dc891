/*
 * The results of lookups: a response with the file, a redirect, an error, or the next candidate.
 */
#include "static_search.h"

#include "base/limits.h"
#include "http/url.h"

#include <errno.h>

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

void static_release_plain(struct search *search)
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

/* The response depends on Accept-Encoding, so that even a 404 has Vary. */
enum outcome static_respond_plain(struct search *search)
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
static void begin_siblings(struct search *search, struct file_entry *plain)
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
}

/* Uses a precompressed variant if it is a regular file and not empty: no coding has an empty output. */
static bool check_sibling(struct search *search, struct file_entry *entry, enum outcome *out_outcome)
{
    bool usable = entry->error == 0 && S_ISREG(entry->stat.st_mode) && entry->stat.st_size > 0;

    if (!usable) {
        file_entry_unref(entry);
        search->sibling++;
        return false;
    }
    static_release_plain(search);
    search->coding = search->codings.items[search->sibling];
    *out_outcome = respond_file(search, entry);
    return true;
}

enum outcome static_respond_method(struct exchange *x)
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
static enum outcome respond_found_file(struct search *search, struct file_entry *entry)
{
    mode_t mode = entry->stat.st_mode;
    int error = entry->error;

    if (error == 0 && S_ISREG(mode) && search->x->request.method == METHOD_POST) {
        file_entry_unref(entry);
        return static_respond_method(search->x);
    }
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

static bool check_file(struct search *search, struct file_entry *entry, enum outcome *out_outcome)
{
    if (tries_siblings(search, entry)) {
        begin_siblings(search, entry);
        return false;
    }
    *out_outcome = respond_found_file(search, entry);
    return true;
}

/* An index that exists is an internal redirect, with the location of its own URI; else the next one is tried. */
static bool check_index(struct search *search, struct file_entry *entry, enum outcome *out_outcome)
{
    int error = entry->error;
    bool regular = error == 0 && !S_ISDIR(entry->stat.st_mode);

    file_entry_unref(entry);
    if (regular) {
        *out_outcome = exchange_internal_redirect(search->x, search->uri, (struct str){NULL, 0});
        return true;
    }
    if (error < 0 && error != -ENOENT) {
        *out_outcome = respond_open_error(search, error);
        return true;
    }
    search->index++;
    return false;
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

bool static_found(struct search *search, struct file_entry *entry, enum outcome *out_outcome)
{
    switch (search->seek) {
    case SEEK_FILE:
        return check_file(search, entry, out_outcome);
    case SEEK_INDEX:
        return check_index(search, entry, out_outcome);
    case SEEK_SIBLING:
        return check_sibling(search, entry, out_outcome);
    case SEEK_DIRECTORY:
        break;
    }
    *out_outcome = check_directory(search, entry);
    return true;
}
