/*
 * The directives of static files, as read.
 */
#include "static.h"

#include "base/limits.h"

#include <errno.h>
#include <stddef.h>

static const char *const etags[] = {"off", "on", "mtime", "hash", NULL};
static const char *const modifieds[] = {"off", "exact", "before", NULL};
static const char *const gzip_statics[] = {"off", "on", "always", NULL};
static const struct str suffixes[CODINGS] = {
    [CODING_BR] = {".br", 3}, [CODING_ZSTD] = {".zst", 4}, [CODING_GZIP] = {".gz", 3}};

struct str static_suffix(enum coding coding)
{
    return suffixes[coding];
}

static bool has_coding(const struct static_codings *codings, enum coding coding)
{
    for (unsigned i = 0; i < codings->count; i++) {
        if (codings->items[i] == coding)
            return true;
    }
    return false;
}

/* Parses a suffix or a name: zst or zstd, gz or gzip. */
static enum coding coding_of(struct str word)
{
    for (enum coding coding = 0; coding < CODINGS; coding++) {
        if (str_equal(word, str_skip(suffixes[coding], 1)) || str_equal(word, coding_name(coding)))
            return coding;
    }
    return CODINGS;
}

static int read_precompressed(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct static_codings *codings = out;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    if (error < 0 || (words.count == 1 &&
                      (str_equal(words.items[0], STR("off")) || str_equal(words.items[0], STR("false")))))
        return error;
    for (size_t i = 0; i < words.count; i++) {
        enum coding coding = coding_of(words.items[i]);

        if (coding == CODINGS || has_coding(codings, coding)) {
            conf_error(reader->errors, node->mark,
                       STR("write: precompressed: [br, zst, gzip], in order of preference"),
                       coding == CODINGS ? "\"" STR_FMT "\" is not a content coding"
                                         : "\"" STR_FMT "\" is duplicate",
                       STR_ARG(words.items[i]));
            return -EINVAL;
        }
        codings->items[codings->count++] = coding;
    }
    return 0;
}

int static_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct static_conf *own = conf;

    own->siblings = own->precompressed;
    if (own->gzip_static != GZIP_STATIC_OFF && !has_coding(&own->siblings, CODING_GZIP))
        own->siblings.items[own->siblings.count++] = CODING_GZIP;
    return 0;
}

#define AT(field) offsetof(struct static_conf, field)

const struct directive static_directives[] = {
    {.name = "index",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_TEMPLATES,
     .offset = AT(index),
     .default_value = "index.html",
     .example = "index: [index.html, index.htm]",
     .help = "The index files of a directory: the first one that exists is sent; the last may be a path that begins "
             "with a slash."},
    {.name = "etag",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CHOICE,
     .choices = etags,
     .offset = AT(etag),
     .default_value = "on",
     .example = "etag: hash",
     .help = "Send a strong ETag: computed from the file's time and size (on and mtime are the same), or from its "
             "contents (hash), which is equal on different machines and builds. For hash a file is read once, and "
             "a file of more than 64 MB gets the ETag of mtime."},
    {.name = "if_modified_since",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CHOICE,
     .choices = modifieds,
     .offset = AT(if_modified_since),
     .default_value = "exact",
     .example = "if_modified_since: before",
     .help = "The condition for a 304 to If-Modified-Since. exact: it equals the file's time; before: it is not "
             "earlier than the file's time; off: never."},
    {.name = "max_ranges",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_NUMBER,
     .high = LIMIT_RANGES,
     .offset = AT(max_ranges),
     .default_value = "100",
     .example = "max_ranges: 10",
     .help = "The maximum number of ranges in a request; if a request has more, Range is ignored; 0: Range is always "
             "ignored."},
    {.name = "precompressed",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(precompressed),
     .row_size = sizeof(struct static_codings),
     .row = read_precompressed,
     .syntax = "off | br | zst | gzip ...",
     .example = "precompressed: [br, zst, gzip]",
     .help =
         "Precompressed files beside a file, with .br, .zst or .gz appended to its name: sent to "
                      "clients that accept the coding (Accept-Encoding). The first one in this list is used among "
                      "equal weights; off: none.",
     .schema =
         "{\"oneOf\": [{\"type\": [\"string\", \"boolean\"]}, {\"type\": \"array\", \"items\": {\"enum\": "
         "[\"br\", \"zst\", \"zstd\", \"gz\", \"gzip\"]}}]}"},
    {.name = "gzip_static",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CHOICE,
     .choices = gzip_statics,
     .offset = AT(gzip_static),
     .default_value = "off",
     .example = "gzip_static: on",
     .help = "As precompressed for .gz only, after the codings in precompressed; always: also for clients that do "
             "not accept it."},
    {0},
};
