/*
 * The rows of `access_log`: destination, format, and the requests that get a line.
 */
#include "log/access_log.h"
#include "log/log_selection.h"
#include "site/core.h"

#include <errno.h>

#define FLUSH_MS 1000

static int read_log_path(struct conf_reader *reader, const struct conf_node *node, struct str text,
                         struct access_log_row *row)
{
    struct conf_node word = conf_word_node(node, text);

    row->mark = node->mark;
    if (core_is_off(text)) {
        row->path = STR("");
        return 0;
    }
    if (str_equal(text, STR("stdout")) || str_equal(text, STR("stderr"))) {
        row->path = text;
        return 0;
    }
    if (str_equal(text, STR("/dev/stdout")) || str_equal(text, STR("/dev/stderr"))) {
        row->path = str_skip(text, 5);
        return 0;
    }
    if (core_is_syslog(text)) {
        row->path = text;
        return core_syslog_read(reader, &word, text, &row->syslog);
    }
    return conf_read_path(reader, &word, &row->path);
}

static int read_sample(struct conf_reader *reader, const struct conf_node *node, struct log_selection *selection)
{
    struct str text;
    int error = conf_read_text(reader, node, &text);

    if (error < 0)
        return error;
    error = log_sample_parse(text, &selection->numerator, &selection->denominator);
    if (error < 0)
        conf_error(reader->errors, node->mark, STR("sample=1/100, or sample=0.01: a millionth is the least"),
                   "\"" STR_FMT "\" is not a share of the requests", STR_ARG(text));
    return error < 0 ? -EINVAL : 0;
}

/* Reads `if` or `sample`. */
static int read_selection(struct conf_reader *reader, const struct conf_node *node, struct str name,
                          struct access_log_row *row)
{
    if (!row->selection)
        row->selection = arena_zalloc(reader->arena, 1, sizeof(*row->selection));
    if (!row->selection)
        return -ENOMEM;
    if (str_equal(name, STR("if")))
        return conf_read_template(reader, node, &row->selection->condition);
    return read_sample(reader, node, row->selection);
}

/*
 * Reads an option that the mapping and the words have in common. nginx's buffer= is accepted: buffering is always on.
 * -ENOENT: there is none of this name.
 */
static int read_option(struct conf_reader *reader, const struct conf_node *node, struct str name,
                       struct access_log_row *row)
{
    if (str_equal(name, STR("flush")))
        return conf_read_duration(reader, node, &row->flush_ms);
    if (str_equal(name, STR("if")) || str_equal(name, STR("sample")))
        return read_selection(reader, node, name, row);
    return -ENOENT;
}

static int read_log_key(struct conf_reader *reader, const struct conf_pair *pair, struct access_log_row *row)
{
    struct str text;
    int error;

    if (str_equal(pair->key->text, STR("path"))) {
        error = conf_read_text(reader, pair->value, &text);
        return error < 0 ? error : read_log_path(reader, pair->value, text, row);
    }
    if (str_equal(pair->key->text, STR("format")))
        return conf_read_text(reader, pair->value, &row->format_name);
    error = read_option(reader, pair->value, pair->key->text, row);
    if (error != -ENOENT)
        return error;
    conf_error(reader->errors, pair->key->mark, STR("access_log has path, format, flush, if and sample"),
               "access_log has no key \"" STR_FMT "\"", STR_ARG(pair->key->text));
    return -EINVAL;
}

static int read_log_map(struct conf_reader *reader, const struct conf_node *node, struct access_log_row *row)
{
    int error = 0;

    for (size_t i = 0; i < node->count && error == 0; i++)
        error = read_log_key(reader, &node->pairs[i], row);
    if (error == 0 && !row->path.data) {
        conf_error(reader->errors, node->mark, STR("access_log: {path: stdout, format: main}"),
                   "access_log needs a path");
        error = -EINVAL;
    }
    return error;
}

/* Reads one of the words after path and format. */
static int read_log_word(struct conf_reader *reader, const struct conf_node *node, struct str word,
                         struct access_log_row *row)
{
    struct str text = word;
    struct str name = str_cut(&text, '=');
    struct conf_node value = conf_word_node(node, str_or_empty(text));
    int error = -ENOENT;

    if (str_starts(word, STR("buffer=")))
        return 0;
    if (text.data)
        error = read_option(reader, &value, name, row);
    if (error == -ENOENT)
        conf_error(reader->errors, node->mark, STR("write: access_log: logs/access.log main"),
                   "access_log has no parameter \"" STR_FMT "\"", STR_ARG(word));
    return error == -ENOENT ? -EINVAL : error;
}

/* off, "logs/access.log main flush=1s if=$loggable", or {path: ..., format: ..., flush: ..., if: ..., sample: ...}. */
int core_access_log_read(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct access_log_row *row = out;
    struct conf_words words;
    int error;

    row->format_name = STR("main");
    row->flush_ms = FLUSH_MS;
    if (node->kind == CONF_MAP)
        return read_log_map(reader, node, row);
    error = conf_read_words(reader, node, &words);
    if (error < 0)
        return error;
    for (size_t i = 2; i < words.count; i++) {
        error = read_log_word(reader, node, words.items[i], row);
        if (error < 0)
            return error;
    }
    if (words.count == 0) {
        conf_error(reader->errors, node->mark, STR("write: access_log: logs/access.log main, or off"),
                   "access_log needs a path");
        return -EINVAL;
    }
    if (words.count > 1)
        row->format_name = words.items[1];
    return read_log_path(reader, node, words.items[0], row);
}
