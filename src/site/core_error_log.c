/*
 * The directive error_log: destination, level and form of the lines.
 */
#include "log/error_log.h"
#include "site/core.h"

#include <errno.h>

static const char *const error_log_formats[] = {[ERROR_LOG_TEXT] = "text", [ERROR_LOG_JSON] = "json", NULL};

static int read_level(struct conf_reader *reader, const struct conf_node *node, struct str name,
                      enum log_level *out_level)
{
    if (log_level_parse(name, out_level) < 0) {
        conf_error(reader->errors, node->mark, STR("debug, info, notice, warn, error, crit, alert or emerg"),
                   "\"" STR_FMT "\" is not a level of error_log", STR_ARG(name));
        return -EINVAL;
    }
    return 0;
}

/* Reads the destination. */
static int read_log_path(struct conf_reader *reader, const struct conf_node *node, struct error_log_settings *out)
{
    if (str_equal(node->text, STR("stderr")) || str_equal(node->text, STR("stdout"))) {
        out->path = node->text;
        return 0;
    }
    if (core_is_syslog(node->text)) {
        out->path = node->text;
        return core_syslog_read(reader, node, node->text, &out->syslog);
    }
    if (str_starts(node->text, STR("memory:"))) {
        conf_error(reader->errors, node->mark, STR("write a file, \"stderr\", or syslog:server=..."),
                   "the error log cannot be sent to \"" STR_FMT "\"", STR_ARG(node->text));
        return -EINVAL;
    }
    return conf_read_path(reader, node, &out->path);
}

static int read_error_log_map(struct conf_reader *reader, const struct conf_node *node,
                              struct error_log_settings *out)
{
    int result = 0;

    for (size_t i = 0; i < node->count && result == 0; i++) {
        const struct conf_pair *pair = &node->pairs[i];
        struct str text;

        if (str_equal(pair->key->text, STR("path"))) {
            result = conf_read_text(reader, pair->value, &text);
            if (result == 0)
                result = read_log_path(reader, pair->value, out);
        } else if (str_equal(pair->key->text, STR("level"))) {
            result = conf_read_text(reader, pair->value, &text);
            if (result == 0)
                result = read_level(reader, pair->value, text, &out->level);
        } else if (str_equal(pair->key->text, STR("format"))) {
            result = conf_read_choice(reader, pair->value, error_log_formats, &out->format);
        } else {
            conf_error(reader->errors, pair->key->mark, STR("error_log has path, level and format"),
                       "error_log has no key \"" STR_FMT "\"", STR_ARG(pair->key->text));
            result = -EINVAL;
        }
    }
    return result;
}

/* Reads {path: stderr, level: notice}, or nginx's "stderr notice". */
int core_error_log_read(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct error_log_settings value = {.path = STR("stderr"), .level = LOG_ERROR};
    struct error_log_settings *into = out;
    struct conf_words words;
    int error;

    if (node->kind == CONF_MAP) {
        error = read_error_log_map(reader, node, &value);
        if (error == 0)
            *into = value;
        return error;
    }
    error = conf_read_words(reader, node, &words);
    if (error < 0)
        return error;
    if (words.count < 1 || words.count > 2) {
        conf_error(reader->errors, node->mark, STR("write: error_log: stderr notice"),
                   "error_log takes a path and optionally a level");
        return -EINVAL;
    }
    if (words.count == 2) {
        error = read_level(reader, node, words.items[1], &value.level);
        if (error < 0)
            return error;
    }
    struct conf_node path = conf_word_node(node, words.items[0]);

    error = read_log_path(reader, &path, &value);
    if (error == 0)
        *into = value;
    return error;
}
