/*
 * `try_files`: the first of several names that is there becomes the URI, in the same location; where none is, the
 * last word says what happens: another URI, @name, or =status.
 */
#include "http/url.h"
#include "server/module.h"

#include <errno.h>
#include <stddef.h>

struct candidate {
    const struct template *uri;
    bool folder; /* written with a slash at its end: a folder is looked for, else a file */
};

struct try_files_conf {
    struct tries {
        struct candidate *items;
        size_t count;
        const struct template *last; /* NULL: answer with `status` */
        int status;
    } tries;
};

struct trial {
    struct file_lookup lookup;
    struct exchange *x;
    const struct tries *tries;
    size_t index;
    struct str uri;
};

extern const struct module module_try_files;
static enum outcome try_on(struct trial *trial);

#define HINT STR("write: try_files: $uri $uri/ /index.html, or =404 or @name at the end")

/* "=404", "@name" or a URI. */
static int read_last(struct conf_reader *reader, const struct conf_node *node, struct str word,
                     struct tries *tries)
{
    uint64_t status;

    if (!str_starts(word, STR("=")))
        return conf_read_template_word(reader, node, word, &tries->last);
    if (str_to_u64(str_skip(word, 1), &status) < 0 || status < 200 || status > 599) {
        conf_error(reader->errors, node->mark, HINT, "\"" STR_FMT "\" is no status to answer with",
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
                   "try_files takes files, and what to do where none of them is there");
        return -EINVAL;
    }
    tries->items = arena_zalloc(reader->arena, words.count, sizeof(*tries->items));
    if (!tries->items)
        return -ENOMEM;
    for (; tries->count + 1 < words.count && error == 0; tries->count++) {
        struct candidate *candidate = &tries->items[tries->count];

        candidate->folder = str_ends(words.items[tries->count], STR("/"));
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
     .help = "The first file (with / at its end: folder) that is there answers; where none is, the last word "
             "does: a URI, "
             "@name, or =status. Of a server it holds where no location fits.",
     .schema =
         "{\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"array\", \"items\": {\"type\": \"string\"}}]}"},
    {0},
};

static enum outcome answer_last(struct trial *trial)
{
    struct exchange *x = trial->x;
    struct str query, path;

    if (!trial->tries->last)
        return exchange_error_response(x, trial->tries->status);
    query = exchange_eval(x, trial->tries->last);
    if (!query.data)
        return exchange_error_response(x, 500);
    if (str_starts(query, STR("@")))
        return exchange_internal_redirect_named(x, query);
    path = str_cut(&query, '?');
    if (exchange_climbs(x, trial->tries->last, path, path, false))
        return exchange_error_response(x, 404);
    return exchange_internal_redirect(x, path, query.data ? query : STR(""));
}

/* What is there becomes the URI, for the modules that follow. */
static enum outcome judge(struct trial *trial, struct file_entry *entry)
{
    struct exchange *x = trial->x;
    bool folder = trial->tries->items[trial->index].folder;
    bool there = entry->error == 0 && !S_ISDIR(entry->stat.st_mode) == !folder;

    if (entry->error < 0 && entry->error != -ENOENT && entry->error != -ENOTDIR &&
        entry->error != -ENAMETOOLONG)
        exchange_say(x, LOG_ERROR, "try_files: \"" STR_FMT "\" cannot be opened (%d: %s)",
                     STR_ARG(trial->uri), -entry->error, strerror(-entry->error));
    file_entry_unref(entry);
    if (there)
        return exchange_take_file(x, trial->uri, folder) < 0 ? exchange_error_response(x, 500) : OUTCOME_PASS;
    trial->index++;
    return try_on(trial);
}

static void found(struct file_lookup *lookup, struct file_entry *entry)
{
    struct trial *trial = container_of(lookup, struct trial, lookup);
    struct exchange *x = trial->x;
    enum outcome outcome = OUTCOME_PENDING;

    if (x->cancelled)
        file_entry_unref(entry);
    else
        outcome = entry ? judge(trial, entry) : exchange_error_response(x, 500);
    if (outcome != OUTCOME_PENDING)
        exchange_resume(x, outcome);
    exchange_release(x);
}

/* The URI of a candidate, decoded as the request's is. False: it is none, and nothing can be there. */
static bool make_uri(struct trial *trial)
{
    struct exchange *x = trial->x;
    const struct template *uri = trial->tries->items[trial->index].uri;
    struct str made = exchange_eval(x, uri);

    if (made.data && exchange_climbs(x, uri, made, made, false))
        return false;
    if (made.data && !str_starts(made, STR("/")))
        made = arena_printf(&x->arena, "/" STR_FMT, STR_ARG(made));
    /* Of "/folder/" the slash says what is looked for; "/folder" is then redirected by whoever serves it. */
    if (trial->tries->items[trial->index].folder && made.length > 1)
        made.length--;
    return made.data && url_path_normalise(&x->arena, made, true, &trial->uri) == 0 &&
           !url_path_hidden(trial->uri);
}

/* The next candidate: its entry, at once or later; NULL with *out_pending false: there can be none. */
static struct file_entry *look_up(struct trial *trial, bool *out_pending)
{
    struct exchange *x = trial->x;
    struct str folder, path;
    enum symlinks symlinks;

    if (!make_uri(trial) || exchange_file(x, trial->uri, &folder, &path) < 0 ||
        !exchange_symlinks_from(x, &folder, &path, &symlinks))
        return NULL;
    while (str_starts(path, STR("/")))
        path = str_skip(path, 1);
    return file_cache_get(worker_file_cache(exchange_worker(x)), &trial->lookup, folder, path,
                          symlinks, out_pending);
}

static enum outcome try_on(struct trial *trial)
{
    for (; trial->index < trial->tries->count; trial->index++) {
        bool pending = false;
        struct file_entry *entry = look_up(trial, &pending);

        if (entry)
            return judge(trial, entry);
        if (!pending)
            continue;
        /* The lookup lies in the exchange's arena: it stays until `found`, even when the client leaves. */
        exchange_hold(trial->x);
        return OUTCOME_PENDING;
    }
    return answer_last(trial);
}

static enum outcome try_files_answer(struct exchange *x, const void *conf, void *state)
{
    const struct try_files_conf *own = conf;
    struct trial *trial;

    trial = exchange_state(x, &module_try_files, sizeof(*trial));
    if (!trial)
        return exchange_error_response(x, 500);
    *trial = (struct trial){.x = x, .tries = &own->tries, .lookup = {.found = found}};
    return try_on(trial);
}

static void try_files_cancel(struct exchange *x, void *state)
{
    struct trial *trial = exchange_state(x, &module_try_files, sizeof(*trial));

    if (trial && trial->x)
        file_lookup_cancel(&trial->lookup);
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
    .answer = try_files_answer,
    .cancel = try_files_cancel,
};
