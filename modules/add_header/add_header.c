/*
 * `add_header`: header fields from the configuration. An inner scope adds to the fields of the outer one, and
 * replaces fields of the same name. The smallest module with a response filter.
 */
#include "http/exchange.h"
#include "http/h1_parse.h"
#include "server/module.h"
#include "site/field_name.h"

#include <errno.h>
#include <stddef.h>

struct added {
    struct str name;
    const struct template *value;
    bool always; /* also on error responses */
};

/* One item of the directive: a line, or a map of several fields. */
struct added_row {
    struct added *items;
    size_t count;
    unsigned scope; /* nesting depth; 0 until its scope is checked */
};

struct add_header_conf {
    struct conf_rows rows; /* struct added_row, outer scopes first */
    struct added *headers; /* fields in effect in this scope */
    size_t count;
};

#define HINT STR("write: add_header: [X-Frame-Options DENY always, {Cache-Control: 'max-age=60'}]")

/* Framing fields, which only the server writes. */
static const char *const framing_fields[] = {"Content-Length", "Transfer-Encoding", "Connection", "Date",
                                             "Trailer",        "Upgrade",           NULL};

/* {value: DENY, always: on} */
static int read_detailed(struct conf_reader *reader, const struct conf_node *node, struct added *out)
{
    const struct conf_node *value = conf_map_get(node, STR("value"));
    const struct conf_node *always = conf_map_get(node, STR("always"));

    if (!value || node->count != 1u + (always != NULL)) {
        conf_error(reader->errors, node->mark,
                   STR("add_header: {X-Frame-Options: {value: DENY, always: on}}"),
                   "a header takes a value and optionally always");
        return -EINVAL;
    }
    if (always) {
        int error = conf_read_switch(reader, always, &out->always);

        if (error < 0)
            return error;
    }
    return conf_read_template(reader, value, &out->value);
}

static int read_header_map(struct conf_reader *reader, const struct conf_node *node, struct added_row *row)
{
    row->items = arena_zalloc(reader->arena, node->count + 1, sizeof(*row->items));
    if (!row->items)
        return -ENOMEM;
    for (size_t i = 0; i < node->count; i++) {
        const struct conf_pair *pair = &node->pairs[i];
        struct added *header = &row->items[row->count++];
        int error = field_name_check(reader, pair->key->mark, pair->key->text, "add_header", framing_fields, HINT);

        header->name = pair->key->text;
        if (error == 0 && pair->value->kind == CONF_MAP)
            error = read_detailed(reader, pair->value, header);
        else if (error == 0)
            error = conf_read_template(reader, pair->value, &header->value);
        if (error < 0)
            return error;
    }
    return 0;
}

/* "Name value", "Name value always", or a map from names to values. */
static int read_row(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct added_row *row = out;
    struct conf_words words;
    int error;

    if (node->kind == CONF_MAP)
        return read_header_map(reader, node, row);
    error = conf_read_words(reader, node, &words);
    if (error < 0)
        return error;
    if (words.count < 2 || words.count > 3 ||
        (words.count == 3 && !str_equal(words.items[2], STR("always")))) {
        conf_error(reader->errors, node->mark,
                   STR("quote a value of several words: add_header: 'Cache-Control \"no-cache, private\"'"),
                   "add_header takes a name, a value, and optionally always");
        return -EINVAL;
    }
    row->items = arena_zalloc(reader->arena, 1, sizeof(*row->items));
    if (!row->items)
        return -ENOMEM;
    row->count = 1;
    row->items->name = words.items[0];
    row->items->always = words.count == 3;
    error = field_name_check(reader, node->mark, words.items[0], "add_header", framing_fields, HINT);
    return error < 0 ? error : conf_read_template_word(reader, node, words.items[1], &row->items->value);
}

static bool is_replaced(const struct added_row *rows, size_t count, const struct added_row *row,
                        struct str name)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; rows[i].scope > row->scope && k < rows[i].count; k++) {
            if (str_equal_nocase(rows[i].items[k].name, name))
                return true;
        }
    }
    return false;
}

/* Rows without a scope belong to the current one; it replaces fields of the same name of outer scopes. */
static int check_rows(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct add_header_conf *own = conf;
    struct added_row *rows = own->rows.items;
    unsigned deepest = 0;
    size_t total = 0;

    for (size_t i = 0; i < own->rows.count; i++) {
        deepest = rows[i].scope > deepest ? rows[i].scope : deepest;
        total += rows[i].count;
    }
    own->headers = arena_zalloc(reader->arena, total + 1, sizeof(*own->headers));
    if (!own->headers)
        return -ENOMEM;
    own->count = 0;
    for (size_t i = 0; i < own->rows.count; i++) {
        if (rows[i].scope == 0)
            rows[i].scope = deepest + 1;
    }
    for (size_t i = 0; i < own->rows.count; i++) {
        for (size_t k = 0; k < rows[i].count; k++) {
            if (!is_replaced(rows, own->rows.count, &rows[i], rows[i].items[k].name))
                own->headers[own->count++] = rows[i].items[k];
        }
    }
    return 0;
}

static const struct directive directives[] = {
    {.name = "add_header",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_REPEAT,
     .merge = MERGE_APPEND,
     .offset = offsetof(struct add_header_conf, rows),
     .row_size = sizeof(struct added_row),
     .row = read_row,
     .syntax = "name value [always] | {name: value | {value: ..., always: on}, ...}",
     .example = "add_header: [X-Frame-Options DENY always, {Cache-Control: 'public, max-age=60'}]",
     .help = "Header fields for responses without an error status (always: for all responses). Inner scopes add to "
             "outer ones, and replace a field of the same name. A line break or control byte of a variable in any "
             "header value becomes a space (%0A in Location), and is logged.",
     .schema = "{\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"object\"}]}"},
    {0},
};

/* The statuses for which nginx adds headers without `always`. */
static bool is_without_error(int status)
{
    static const int good[] = {200, 201, 204, 206, 301, 302, 303, 304, 307, 308};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        if (status == good[i])
            return true;
    }
    return false;
}

/* True for fields that describe the representation: they are replaced. All other fields are appended. */
static bool is_single(struct str name)
{
    static const char *const names[] = {"ETag",   "Last-Modified", "Content-Type",
                                        "Server", "Location",      "Expires"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (str_equal_nocase(name, str_from(names[i])))
            return true;
    }
    return false;
}

/* As in nginx, an empty value removes a validator. Other fields with an empty value are skipped. */
static bool is_validator(struct str name)
{
    return str_equal_nocase(name, STR("ETag")) || str_equal_nocase(name, STR("Last-Modified"));
}

static int add_header_filter(struct exchange *x, const void *conf)
{
    const struct add_header_conf *own = conf;
    bool good = is_without_error(x->response.status);

    for (size_t i = 0; i < own->count; i++) {
        const struct added *header = &own->headers[i];
        struct str value;
        int error;

        if (!good && !header->always)
            continue;
        if (exchange_has_security_policy(x) && str_equal_nocase(header->name, STR("Content-Security-Policy")))
            continue;
        value = exchange_eval(x, header->value);
        if (!value.data)
            return -ENOMEM;
        if (str_empty(value)) {
            if (is_validator(header->name))
                headers_remove(&x->response.headers, header->name);
            continue;
        }
        error = is_single(header->name) ? headers_set(&x->response.headers, &x->arena, header->name, value)
                                        : headers_add(&x->response.headers, &x->arena, header->name, value);
        if (error < 0)
            return error;
    }
    return 0;
}

static bool add_header_idle(const void *conf)
{
    const struct add_header_conf *own = conf;

    return own->count == 0;
}

const struct module module_add_header = {
    .name = "add_header",
    .directives = directives,
    .conf_size = sizeof(struct add_header_conf),
    .conf_check = check_rows,
    .idle = add_header_idle,
    .filter = add_header_filter,
};
