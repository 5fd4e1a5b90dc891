/*
 * `try_files`: the first candidate that exists becomes the URI, in the same location; if none exists, the last word
 * applies: another URI, @name or =status.
 */
#include "http/url.h"
#include "server/module.h"

#include <errno.h>
#include <stddef.h>

struct candidate {
    const struct template *uri;
    bool is_directory; /* written with a trailing slash: matches a directory, else a file */
};

struct try_files_conf {
    struct tries {
        struct candidate *items;
        size_t count;
        const struct template *last; /* NULL: answer with `status` */
        int status;
    } tries;
};

struct file_attempt {
    struct file_lookup lookup;
    struct exchange *x;
    const struct tries *tries;
    size_t index;
    struct str uri;
};

extern const struct module module_try_files;
static enum outcome try_next_file(struct file_attempt *file_attempt);

#define HINT STR("write: try_files: $uri $uri/ /index.html, or =404 or @name at the end")

/* "=404", "@name" or a URI. */
static int read_last(struct conf_reader *reader, const struct conf_node *node, struct str word,
                     struct tries *tries)
{
    uint64_t status;

    if (!str_starts(word, STR("=")))
        return conf_read_template_word(reader, node, word, &tries->last);
    if (str_to_u64(str_skip(word, 1), &status) < 0 || status < 200 || status > 599) {
        conf_error(reader->errors, node->mark, HINT, "\"" STR_FMT "\" is not a status",
                   STR_ARG(word));
        return -EINVAL;
    }
    tries->status = (int)status;
    return 0;
}

static int read_tries(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct tries *tries = out;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    if (words.count < 2) {
        conf_error(reader->errors, node->mark, HINT,
                   "try_files takes files, and a URI, @name or =status that is used if none of them exists");
        return -EINVAL;
    }
    tries->items = arena_zalloc(reader->arena, words.count, sizeof(*tries->items));
    if (!tries->items)
        return -ENOMEM;
    for (; tries->count + 1 < words.count && error == 0; tries->count++) {
        struct candidate *candidate = &tries->items[tries->count];

        candidate->is_directory = str_ends(words.items[tries->count], STR("/"));
        error = conf_read_template_word(reader, node, words.items[tries->count], &candidate->uri);
    }
    return error < 0 ? error : read_last(reader, node, words.items[words.count - 1], tries);
}

static const struct directive directives[] = {
    {.name = "try_files",
     .scopes = SCOPE_SERVER | SCOPE_LOCATION,
     .line = true,
     .type = DIRECTIVE_CUSTOM,
     .merge = MERGE_NONE,
     .offset = offsetof(struct try_files_conf, tries),
     .row_size = sizeof(struct tries),
     .row = read_tries,
     .syntax = "file ... URI | @name | =status",
     .example = "try_files: [$uri, $uri/, /index.html]",
     .help = "The first existing file (with / at its end: directory) answers the request. If none exists, the last "
             "item is used: a URI, @name, or =status. In a server it applies where no location matches.",
     .schema =
         "{\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"array\", \"items\": {\"type\": \"string\"}}]}"},
    {0},
};

static enum outcome use_last_item(struct file_attempt *file_attempt)
{
    struct exchange *x = file_attempt->x;
    struct str query, path;

    if (!file_attempt->tries->last) {
        exchange_keep_status(x); /* as in nginx, also for an error page */
        return exchange_error_response(x, file_attempt->tries->status);
    }
    query = exchange_eval(x, file_attempt->tries->last);
    if (!query.data)
        return exchange_error_response(x, 500);
    if (str_starts(query, STR("@")))
        return exchange_internal_redirect_named(x, query);
    path = str_cut(&query, '?');
    if (exchange_path_traverses(x, file_attempt->tries->last, path, path, false))
        return exchange_error_response(x, 404);
    return exchange_internal_redirect(x, path, query.data ? query : STR(""));
}

/* Makes a candidate that exists the URI of the request; else looks up the next one. */
static enum outcome check_entry(struct file_attempt *file_attempt, struct file_entry *entry)
{
    struct exchange *x = file_attempt->x;
    bool is_directory = file_attempt->tries->items[file_attempt->index].is_directory;
    bool there = entry->error == 0 && !S_ISDIR(entry->stat.st_mode) == !is_directory;

    if (entry->error < 0 && entry->error != -ENOENT && entry->error != -ENOTDIR &&
        entry->error != -ENAMETOOLONG)
        exchange_log_error(x, LOG_ERROR, "try_files: \"" STR_FMT "\" cannot be opened (%d: %s)",
                           STR_ARG(file_attempt->uri), -entry->error, strerror(-entry->error));
    file_entry_unref(entry);
    if (there)
        return exchange_rewrite_to_file(x, file_attempt->uri, is_directory) < 0 ? exchange_error_response(x, 500)
                                                                                  : OUTCOME_DECLINED;
    file_attempt->index++;
    return try_next_file(file_attempt);
}

static void try_lookup_done(struct file_lookup *lookup, struct file_entry *entry)
{
    struct file_attempt *file_attempt = container_of(lookup, struct file_attempt, lookup);
    struct exchange *x = file_attempt->x;
    enum outcome outcome = OUTCOME_PENDING;

    if (x->cancelled)
        file_entry_unref(entry);
    else
        outcome = entry ? check_entry(file_attempt, entry) : exchange_error_response(x, 500);
    if (outcome != OUTCOME_PENDING)
        exchange_resume(x, outcome);
    exchange_release(x);
}

/* Builds the URI of a candidate, decoded as the request's. False: invalid, so that no file can exist. */
static bool make_uri(struct file_attempt *file_attempt)
{
    struct exchange *x = file_attempt->x;
    const struct template *uri = file_attempt->tries->items[file_attempt->index].uri;
    struct str made = exchange_eval(x, uri);

    if (made.data && exchange_path_traverses(x, uri, made, made, false))
        return false;
    if (made.data && !str_starts(made, STR("/")))
        made = arena_join(&x->arena, (const struct str[]){STR("/"), made}, 2);
    /* The slash of "/directory/" only selects directories; the URI is "/directory",
    which the static module redirects. */
    if (file_attempt->tries->items[file_attempt->index].is_directory && made.length > 1)
        made.length--;
    return made.data && url_path_normalise(&x->arena, made, true, &file_attempt->uri) == 0 &&
           !url_path_hidden(file_attempt->uri);
}

/*
 * Looks up the next candidate. NULL with *out_pending: try_lookup_done is called with the result; NULL without: the
 * file cannot exist.
 */
static struct file_entry *find_candidate(struct file_attempt *file_attempt, bool *out_pending)
{
    struct exchange *x = file_attempt->x;
    struct str directory, path;
    enum symlinks symlinks;

    if (!make_uri(file_attempt) || exchange_file(x, file_attempt->uri, &directory, &path) < 0 ||
        !exchange_symlinks_from(x, &directory, &path, &symlinks))
        return NULL;
    while (str_starts(path, STR("/")))
        path = str_skip(path, 1);
    return file_cache_get(worker_file_cache(exchange_worker(x)), &file_attempt->lookup, directory, path,
                          symlinks, out_pending);
}

static enum outcome try_next_file(struct file_attempt *file_attempt)
{
    for (; file_attempt->index < file_attempt->tries->count; file_attempt->index++) {
        bool pending = false;
        struct file_entry *entry = find_candidate(file_attempt, &pending);

        if (entry)
            return check_entry(file_attempt, entry);
        if (!pending)
            continue;
        /* The lookup is in the exchange's arena, which must exist until try_lookup_done, also after a disconnect. */
        exchange_hold(file_attempt->x);
        return OUTCOME_PENDING;
    }
    return use_last_item(file_attempt);
}

static enum outcome try_files_handler(struct exchange *x, const void *conf, void *state)
{
    const struct try_files_conf *own = conf;
    struct file_attempt *file_attempt;

    file_attempt = exchange_state(x, &module_try_files, sizeof(*file_attempt));
    if (!file_attempt)
        return exchange_error_response(x, 500);
    *file_attempt = (struct file_attempt){.x = x, .tries = &own->tries, .lookup = {.found = try_lookup_done}};
    return try_next_file(file_attempt);
}

static void try_files_cancel(struct exchange *x, void *state)
{
    struct file_attempt *file_attempt = exchange_state(x, &module_try_files, sizeof(*file_attempt));

    if (file_attempt && file_attempt->x)
        file_lookup_cancel(&file_attempt->lookup);
}

static bool try_files_idle(const void *conf)
{
    const struct try_files_conf *own = conf;

    return own->tries.count == 0;
}

const struct module module_try_files = {
    .name = "try_files",
    .directives = directives,
    .conf_size = sizeof(struct try_files_conf),
    .idle = try_files_idle,
    .handler = try_files_handler,
    .cancel = try_files_cancel,
};
