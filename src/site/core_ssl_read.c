/*
 * Readers of TLS directives whose values are not of a plain type: files, caches, commands.
 */
#include "site/core.h"

#include "base/limits.h"

#include <errno.h>

#define COMMAND_HINT STR("write: ssl_conf_command: Options PrioritizeChaCha")
#define CACHE_HINT   STR("write: ssl_session_cache: shared:SSL:10m, or off")
#define FILES_HINT   STR("write: ssl_certificate_cache: valid=10s, or off")

/* Number of sessions of `builtin`, and estimated bytes per session. */
enum { BUILTIN_SESSIONS = 20480, BUILTIN_SESSION = 512 };

int core_ssl_read_certificate(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct core_file *file = out;
    struct str text;
    int error = conf_read_text(reader, node, &text);

    if (error < 0)
        return error;
    file->mark = node->mark;
    if (str_equal(text, STR("self-signed")) || str_equal(text, STR("acme"))) {
        file->path = text;
        return 0;
    }
    return conf_read_path(reader, node, &file->path);
}

int core_ssl_read_file(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct core_file *file = out;

    file->mark = node->mark;
    return conf_read_path(reader, node, &file->path);
}

static int read_files_option(struct conf_reader *reader, const struct conf_node *at, struct str name,
                             const struct conf_node *value, struct core_ssl_files *out)
{
    uint64_t unused;

    if (str_equal(name, STR("valid"))) {
        int error = conf_read_duration(reader, value, &out->valid_ms);

        if (error < 0 || out->valid_ms >= LIMIT_FILES_CHECK_MS)
            return error;
        conf_error(reader->errors, value->mark, FILES_HINT, "files are checked at most every %d ms",
                   LIMIT_FILES_CHECK_MS);
        return -EINVAL;
    }
    if (str_equal(name, STR("max")))
        return conf_read_number(reader, value, 0, UINT64_MAX, &unused);
    if (str_equal(name, STR("inactive")))
        return conf_read_duration(reader, value, &unused);
    conf_error(reader->errors, at->mark, FILES_HINT, "ssl_certificate_cache has no option \"" STR_FMT "\"",
               STR_ARG(name));
    return -EINVAL;
}

/* Reads off, "valid=10s" or a map of the same. */
int core_ssl_read_certificate_cache(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct conf_words words;
    bool on = true;
    int error = 0;

    for (size_t i = 0; node->kind == CONF_MAP && i < node->count && error == 0; i++)
        error = read_files_option(reader, node->pairs[i].key, node->pairs[i].key->text, node->pairs[i].value, out);
    if (node->kind == CONF_MAP || error < 0)
        return error;
    error = conf_read_words(reader, node, &words);
    if (error == 0 && words.count == 1 && str_find(words.items[0], '=') < 0) {
        error = conf_read_switch(reader, node, &on);
        if (error == 0 && on)
            ((struct core_ssl_files *)out)->valid_ms = 10000;
        return error;
    }
    for (size_t i = 0; error == 0 && i < words.count; i++) {
        struct str value = words.items[i];
        struct str name = str_cut(&value, '=');
        struct conf_node word = conf_word_node(node, value);

        error = read_files_option(reader, node, name, &word, out);
    }
    return error;
}

static int read_command_map(struct conf_reader *reader, const struct conf_node *node, struct core_ssl_commands *out)
{
    int error = 0;

    out->items = arena_zalloc(reader->arena, node->count + 1, sizeof(*out->items));
    if (!out->items)
        return -ENOMEM;
    for (; out->count < node->count && error == 0; out->count++) {
        const struct conf_pair *pair = &node->pairs[out->count];
        struct core_ssl_command *command = &out->items[out->count];

        command->mark = pair->key->mark;
        command->command.name = pair->key->text;
        error = conf_read_text(reader, pair->value, &command->command.value);
    }
    return error;
}

/* Reads "Name value", or a map of the same. */
int core_ssl_read_commands(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct core_ssl_commands *commands = out;
    struct conf_words words;
    int error;

    if (node->kind == CONF_MAP)
        return read_command_map(reader, node, commands);
    error = conf_read_words(reader, node, &words);
    if (error < 0)
        return error;
    if (words.count != 2) {
        conf_error(reader->errors, node->mark, COMMAND_HINT, "ssl_conf_command takes a name and a value");
        return -EINVAL;
    }
    commands->items = arena_zalloc(reader->arena, 1, sizeof(*commands->items));
    if (!commands->items)
        return -ENOMEM;
    commands->items->mark = node->mark;
    commands->items->command = (struct tls_command){words.items[0], words.items[1]};
    commands->count = 1;
    return 0;
}

const struct core_ssl_command *core_ssl_command_at(const struct core_ssl *ssl, size_t index)
{
    const struct core_ssl_commands *rows = ssl->commands.items;

    for (size_t i = 0; i < ssl->commands.count; i++) {
        if (index < rows[i].count)
            return &rows[i].items[index];
        index -= rows[i].count;
    }
    return NULL;
}

/*
 * Parses nginx's kinds of caches: "builtin", "builtin:1000" (sessions), "shared:NAME:1m". A named cache
 * has precedence.
 */
static bool parse_cache(struct str word, struct core_ssl_cache *out)
{
    struct str whole = word, kind = str_cut(&word, ':'), name;
    uint64_t number = BUILTIN_SESSIONS;

    if (str_equal(kind, STR("builtin"))) {
        if (word.data && (str_to_u64(word, &number) < 0 || number == 0 || number > LIMIT_TLS_SESSIONS))
            return false;
        if (out->size == 0)
            *out = (struct core_ssl_cache){.name = word.data ? whole : STR("builtin:"),
                                           .size = number * BUILTIN_SESSION};
        if (out->size < SESSION_CACHE_MIN)
            out->size = SESSION_CACHE_MIN;
        return true;
    }
    name = str_cut(&word, ':');
    if (!str_equal(kind, STR("shared")) || str_empty(name) || !word.data || conf_size_parse(word, &number) < 0 ||
        number == 0)
        return false;
    *out = (struct core_ssl_cache){.name = name, .size = number};
    return true;
}

static int read_caches(struct conf_reader *reader, const struct conf_node *node, const struct conf_words *words,
                       struct core_ssl_cache *out)
{
    for (size_t i = 0; i < words->count; i++) {
        if (parse_cache(words->items[i], out))
            continue;
        conf_error(reader->errors, node->mark, CACHE_HINT,
                   "\"" STR_FMT "\" is not a session cache: off, none, builtin, builtin:NUMBER, shared:NAME:SIZE",
                   STR_ARG(words->items[i]));
        return -EINVAL;
    }
    if (words->count > 0 && out->size >= SESSION_CACHE_MIN)
        return 0;
    conf_error(reader->errors, node->mark, CACHE_HINT,
               words->count == 0 ? "ssl_session_cache has no value"
                                 : "a session cache has at least 32 KiB");
    return -EINVAL;
}

int core_ssl_read_cache(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct core_ssl_cache *cache = out;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    *cache = (struct core_ssl_cache){0};
    if (words.count == 1 && (str_equal(words.items[0], STR("off")) || str_equal(words.items[0], STR("none"))))
        return 0;
    error = read_caches(reader, node, &words, cache);
    cache->mark = node->mark;
    return error;
}

int core_ssl_read_dh(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct core_file *file = out;
    int error = conf_read_text(reader, node, &file->path);

    file->mark = node->mark;
    if (error < 0 || str_equal(file->path, STR("auto")))
        return error;
    return conf_read_path(reader, node, &file->path);
}
