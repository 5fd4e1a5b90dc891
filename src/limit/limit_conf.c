/*
 * Reads limit_req_zone and limit_conn_zone, and creates their shared memory.
 */
#include "limit/limit_conf.h"

#include "base/limits.h"

#include <errno.h>

#define REQUESTS_HINT    STR("write: limit_req_zone: \"$binary_remote_addr zone=one:10m rate=10r/s\"")
#define CONNECTIONS_HINT STR("write: limit_conn_zone: \"$binary_remote_addr zone=addr:10m\"")

const char *const limit_kind_names[LIMIT_KINDS] = {
    [LIMIT_REQUESTS] = "limit_req",
    [LIMIT_CONNECTIONS] = "limit_conn",
    [LIMIT_STREAM_CONNECTIONS] = "stream limit_conn",
};

struct zone_row {
    struct limit_conf *conf;
    struct str hint;
};

static int report_limit_error(struct conf_reader *reader, const struct conf_node *node, struct str hint,
                              const char *what)
{
    conf_error(reader->errors, node->mark, hint, "%s", what);
    return -EINVAL;
}

static int read_option_map(struct conf_reader *reader, const struct conf_node *node, limit_option *option, void *into)
{
    int error = 0;

    for (size_t i = 0; i < node->count && error == 0; i++) {
        const struct conf_pair *pair = &node->pairs[i];
        struct str value;

        error = conf_read_text(reader, pair->value, &value);
        if (error == 0)
            error = option(reader, pair->value, pair->key->text, value, into);
    }
    return error;
}

int limit_options_read(struct conf_reader *reader, const struct conf_node *node, limit_option *option, void *into)
{
    struct conf_words words;
    int error = 0;

    if (node->kind == CONF_MAP)
        return read_option_map(reader, node, option, into);
    error = conf_read_words(reader, node, &words);
    for (size_t i = 0; error == 0 && i < words.count; i++) {
        struct str value = words.items[i];
        struct str name = str_cut(&value, '=');
        struct conf_node word = conf_word_node(node, value);

        error = option(reader, &word, name, value, into);
    }
    return error;
}

/* "10r/s", "30r/m" */
static int read_rate(struct conf_reader *reader, const struct conf_node *node, struct str text, uint64_t *out_rate)
{
    bool seconds = str_ends(text, STR("r/s"));
    uint64_t number;

    if ((seconds || str_ends(text, STR("r/m"))) && str_to_u64(str_slice(text, 0, text.length - 3), &number) == 0 &&
        number > 0 && number <= LIMIT_REQUEST_RATE) {
        *out_rate = seconds ? number * 60 : number;
        return 0;
    }
    return report_limit_error(reader, node, REQUESTS_HINT, "the rate must be from 1r/s to 1000000r/s, or as many r/m");
}

/* "one:10m" */
static int read_zone(struct conf_reader *reader, const struct conf_node *node, struct str text, struct zone_row *row)
{
    struct conf_node word;
    int error;

    row->conf->name = str_cut(&text, ':');
    if (str_empty(row->conf->name) || str_empty(text))
        return report_limit_error(reader, node, row->hint, "zone takes NAME:SIZE");
    word = conf_word_node(node, text);
    error = conf_read_size(reader, &word, &row->conf->size);
    if (error == 0 && (row->conf->size < LIMIT_ZONE_MIN || row->conf->size > LIMIT_ZONE_MAX))
        return report_limit_error(reader, node, row->hint, "the size of a zone must be from 32k to 16g");
    if (error == 0 && limits_find(reader->limits, row->conf->kind, row->conf->name))
        return report_limit_error(reader, node, row->hint, "the name is already used by another zone");
    return error;
}

static int zone_option(struct conf_reader *reader, const struct conf_node *word, struct str name, struct str value,
                       void *into)
{
    struct zone_row *row = into;

    if (!value.data && !row->conf->key)
        return conf_read_template_word(reader, word, name, &row->conf->key);
    if (str_equal(name, STR("key")))
        return conf_read_template_word(reader, word, value, &row->conf->key);
    if (str_equal(name, STR("zone")))
        return read_zone(reader, word, value, row);
    if (str_equal(name, STR("rate")) && row->conf->kind == LIMIT_REQUESTS)
        return read_rate(reader, word, value, &row->conf->rate);
    conf_error(reader->errors, word->mark, row->hint, "a limit zone has no parameter \"" STR_FMT "\"", STR_ARG(name));
    return -EINVAL;
}

static int register_zone(struct conf_reader *reader, struct limit_conf *conf)
{
    struct limits *limits = reader->limits;
    struct limit_conf **grown = arena_zalloc(reader->arena, limits->count + 1, sizeof(struct limit_conf *));

    if (!grown)
        return -ENOMEM;
    for (size_t i = 0; i < limits->count; i++)
        grown[i] = limits->items[i];
    grown[limits->count++] = conf;
    limits->items = grown;
    return 0;
}

static int read_zone_row(struct conf_reader *reader, const struct conf_node *node, enum limit_kind kind,
                         struct str hint, struct limit_conf **out)
{
    struct zone_row row = {arena_zalloc(reader->arena, 1, sizeof(struct limit_conf)), hint};
    int error;

    if (!row.conf)
        return -ENOMEM;
    row.conf->kind = kind;
    error = limit_options_read(reader, node, zone_option, &row);
    if (error < 0)
        return error;
    if (!row.conf->key || str_empty(row.conf->name))
        return report_limit_error(reader, node, hint, "a limit zone requires a key and zone=NAME:SIZE");
    if (kind == LIMIT_REQUESTS && row.conf->rate == 0)
        return report_limit_error(reader, node, hint, "limit_req_zone requires a rate");
    *out = row.conf;
    return register_zone(reader, row.conf);
}

int limit_requests_read(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    return read_zone_row(reader, node, LIMIT_REQUESTS, REQUESTS_HINT, out);
}

int limit_connections_read(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    enum limit_kind kind = reader->scope == SCOPE_STREAM ? LIMIT_STREAM_CONNECTIONS : LIMIT_CONNECTIONS;

    return read_zone_row(reader, node, kind, CONNECTIONS_HINT, out);
}

struct limit_conf *limits_find(const struct limits *limits, enum limit_kind kind, struct str name)
{
    for (size_t i = 0; i < limits->count; i++) {
        if (limits->items[i]->kind == kind && str_equal(limits->items[i]->name, name))
            return limits->items[i];
    }
    return NULL;
}

/* The zone of the previous configuration, if one fits; else NULL. */
static struct limit_zone *share_zone(const struct limits *before, const struct limit_conf *conf)
{
    const struct limit_conf *other = before ? limits_find(before, conf->kind, conf->name) : NULL;

    if (!other || !other->zone || other->size != conf->size ||
        !str_equal(template_text(other->key), template_text(conf->key)))
        return NULL;
    return limit_zone_share(other->zone);
}

int limits_open(struct limits *limits, const struct limits *before, struct log *log)
{
    for (size_t i = 0; i < limits->count; i++) {
        struct limit_conf *conf = limits->items[i];

        conf->zone = share_zone(before, conf);
        if (!conf->zone)
            conf->zone = limit_zone_create((size_t)conf->size);
        if (!conf->zone) {
            log_write(log, LOG_EMERG, "no memory for the zone \"" STR_FMT "\" of limits", STR_ARG(conf->name));
            return -ENOMEM;
        }
    }
    return 0;
}

void limits_close(struct limits *limits)
{
    for (size_t i = 0; i < limits->count; i++) {
        limit_zone_destroy(limits->items[i]->zone);
        limits->items[i]->zone = NULL;
    }
}

void limits_set_log(const struct limits *limits, struct log *log)
{
    for (size_t i = 0; i < limits->count; i++) {
        const struct limit_conf *conf = limits->items[i];

        if (conf->zone)
            limit_zone_set_log(conf->zone, log, limit_kind_names[conf->kind], conf->name);
    }
}

void limits_abandon(const struct limits *limits, unsigned worker)
{
    for (size_t i = 0; i < limits->count; i++) {
        if (limits->items[i]->kind != LIMIT_REQUESTS && limits->items[i]->zone)
            limit_zone_abandon(limits->items[i]->zone, worker);
    }
}
