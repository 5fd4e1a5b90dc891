/*
 * The parameters of a request: those of the configuration, the defaults, and the request's header fields as HTTP_...
 * (RFC 3875 4.1.18).
 */
#include "fastcgi.h"

#include "base/limits.h"
#include "base/table.h"
#include "base/text_writer.h"
#include "fastcgi_reply.h"
#include "modules/gateway/fields.h"

#include <errno.h>

struct value {
    struct str text;
    struct value *next;
};

struct pair {
    struct str name, value;
    struct value *more, *last;      /* values of further fields of that name, until joined with `value` */
    bool underscore;                /* from a field name with "_" */
};

/* Parameters in order, with a hash index of their names: the client determines the number of header fields. */
struct pairs {
    struct pair *items;
    size_t count;
    size_t size;                    /* encoded size in bytes */
    uint32_t *slots;                /* 1 + index in `items`, or 0: free; at least half of the slots are free */
    uint32_t mask;
};

/*
 * Parameters that are not set: hop-by-hop fields, fields that are passed as CONTENT_..., and HTTP_PROXY, which would
 * set the proxy of scripts that are HTTP clients. The names are compared as parameters, since "_" and "-" give the
 * same name.
 */
static const char *const omitted_names[] = {"HTTP_CONNECTION",
                                            "HTTP_CONTENT_LENGTH",
                                            "HTTP_CONTENT_TYPE",
                                            "HTTP_EXPECT",
                                            "HTTP_KEEP_ALIVE",
                                            "HTTP_PROXY",
                                            "HTTP_PROXY_AUTHORIZATION",
                                            "HTTP_PROXY_CONNECTION",
                                            "HTTP_TE",
                                            "HTTP_TRAILER",
                                            "HTTP_TRANSFER_ENCODING",
                                            "HTTP_UPGRADE",
                                            NULL};

/* Fields about the client that are accepted from trusted peers only. */
static const char *const forwarded_names[] = {"HTTP_FORWARDED", "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_HOST",
                                        "HTTP_X_FORWARDED_PORT", "HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_SERVER",
                                        "HTTP_X_REAL_IP", NULL};

/* Parameters that are file system paths. */
static const char *const path_names[] = {"DOCUMENT_ROOT", "PATH_TRANSLATED", "SCRIPT_FILENAME", NULL};

static bool is_listed(const char *const *names, struct str name)
{
    for (; *names; names++) {
        if (str_equal(name, str_from(*names)))
            return true;
    }
    return false;
}

static int pairs_init(struct pairs *pairs, struct arena *arena, size_t max)
{
    size_t slots = 16;

    while (slots < 2 * max)
        slots *= 2;
    *pairs = (struct pairs){.mask = (uint32_t)(slots - 1)};
    pairs->items = arena_zalloc(arena, max, sizeof(*pairs->items));
    pairs->slots = arena_zalloc(arena, slots, sizeof(*pairs->slots));
    return pairs->items && pairs->slots ? 0 : -ENOMEM;
}

/* Returns the slot of the name, or the free slot for it. */
static uint32_t *find_slot(struct pairs *pairs, struct str name)
{
    uint32_t at = table_hash(name, false) & pairs->mask;

    while (pairs->slots[at] && !str_equal(pairs->items[pairs->slots[at] - 1].name, name))
        at = (at + 1) & pairs->mask;
    return &pairs->slots[at];
}

static struct pair *find_pair(struct pairs *pairs, struct str name)
{
    uint32_t slot = *find_slot(pairs, name);

    return slot ? &pairs->items[slot - 1] : NULL;
}

/* Adds a pair. The name must not be present. */
static struct pair *add_pair(struct pairs *pairs, struct str name)
{
    struct pair *pair = &pairs->items[pairs->count];

    *pair = (struct pair){.name = name};
    *find_slot(pairs, name) = (uint32_t)++pairs->count;
    return pair;
}

/*
 * A later parameter replaces an earlier one of the same name. 0, -ENOENT if a file path leaves its directory through
 * a variable, or -ENOMEM.
 */
static int set_param_values(struct gateway_request *p, struct pairs *pairs, const struct fastcgi_params *params)
{
    for (size_t i = 0; i < params->count; i++) {
        const struct fastcgi_param *param = &params->items[i];
        struct str value = exchange_eval(p->x, param->value);
        struct pair *pair = find_pair(pairs, param->name);

        if (!value.data)
            return -ENOMEM;
        if (is_listed(path_names, param->name) && exchange_path_traverses(p->x, param->value, value, value, false))
            return -ENOENT;
        if (str_equal(param->name, STR("HTTP_PROXY")) || (param->if_not_empty && str_empty(value) && !pair))
            continue;
        if (!pair)
            pair = add_pair(pairs, param->name);
        pair->value = value;
    }
    return 0;
}

/* "X-Made-By" becomes HTTP_X_MADE_BY. */
static struct str field_name(struct arena *arena, struct str name)
{
    char *made = arena_alloc(arena, name.length + 5);

    if (!made)
        return (struct str){NULL, 0};
    memcpy(made, "HTTP_", 5);
    for (size_t i = 0; i < name.length; i++) {
        char c = name.data[i];

        made[5 + i] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c == '-' ? '_' : c);
    }
    return str_of(made, name.length + 5);
}

/* Only names with dashes are accepted: a trusted proxy may pass on a client's name with underscores unfiltered. */
static bool may_send_forwarded(const struct gateway_request *p, const struct header *field)
{
    return exchange_is_trusted(p->x) && str_find(field->name, '_') < 0;
}

static int grow_pairs(struct arena *arena, struct pair *pair, struct str text)
{
    struct value *value = arena_alloc(arena, sizeof(*value));

    if (!value)
        return -ENOMEM;
    *value = (struct value){text, NULL};
    if (pair->last)
        pair->last->next = value;
    else
        pair->more = value;
    pair->last = value;
    return 0;
}

static void write_values(struct text_writer *writer, const void *subject)
{
    const struct pair *pair = subject;
    struct str separator = str_equal(pair->name, STR("HTTP_COOKIE")) ? STR("; ") : STR(", ");

    text_append(writer, pair->value);
    for (const struct value *value = pair->more; value; value = value->next) {
        text_append(writer, separator);
        text_append(writer, value->text);
    }
}

/* Joins fields of the same name into one parameter (RFC 9110 5.3). */
static int join_values(struct arena *arena, struct pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        struct pair *pair = &pairs->items[i];

        if (!pair->more)
            continue;
        pair->value = arena_write(arena, write_values, pair);
        if (!pair->value.data)
            return -ENOMEM;
    }
    return 0;
}

/* Parameters set by fastcgi_param (the first `own` pairs) are not replaced by header fields. */
static int set_field(struct gateway_request *p, struct pairs *pairs, size_t own, const struct header *field)
{
    struct str name = field_name(&p->x->arena, field->name);
    struct pair *pair = name.data ? find_pair(pairs, name) : NULL;
    bool underscore = str_find(field->name, '_') >= 0;
    struct str value;

    if (!name.data)
        return -ENOMEM;
    if (is_listed(omitted_names, name) || (is_listed(forwarded_names, name) && !may_send_forwarded(p, field)) ||
        (pair && pair < pairs->items + own))
        return 0;
    /* "X-User" takes precedence over "X_User". */
    if (pair && underscore && !pair->underscore)
        return 0;
    if (pair && pair->underscore && !underscore) {
        *pair = (struct pair){.name = name, .value = field->value};
        return 0;
    }
    if (pair)
        return grow_pairs(&p->x->arena, pair, field->value);
    /* HTTP_HOST is the host that selected the server (RFC 9112 3.2.2). */
    value = str_equal(name, STR("HTTP_HOST")) ? gateway_request_host(p->x) : field->value;
    pair = add_pair(pairs, name);
    pair->value = value.data ? value : STR("");
    pair->underscore = underscore;
    return 0;
}

/* Sets the value that proxy_pass would send, instead of the client's; fastcgi_param takes precedence. */
static int set_forwarded_for(struct gateway_request *p, struct pairs *pairs)
{
    struct str name = STR("HTTP_X_FORWARDED_FOR");
    struct pair *pair;

    if (find_pair(pairs, name))
        return 0;
    pair = add_pair(pairs, name);
    pair->value = gateway_forwarded_for(p);
    return pair->value.data ? 0 : -ENOMEM;
}

static int set_fields(struct gateway_request *p, struct pairs *pairs)
{
    const struct headers *headers = &p->x->request.headers;
    size_t own;

    if (set_forwarded_for(p, pairs) < 0)
        return -ENOMEM;
    own = pairs->count;
    for (unsigned i = 0; i < headers->count; i++) {
        if (set_field(p, pairs, own, &headers->items[i]) < 0)
            return -ENOMEM;
    }
    return join_values(&p->x->arena, pairs);
}

static int set_length(struct gateway_request *p, struct pairs *pairs)
{
    struct pair *pair = find_pair(pairs, STR("CONTENT_LENGTH"));

    if (!pair || p->sent.content_length == 0)
        return 0;
    pair->value = arena_print_number(&p->x->arena, p->sent.content_length);
    return pair->value.data ? 0 : -ENOMEM;
}

/* Encoding. */

static size_t length_size(size_t length)
{
    return length < 128 ? 1 : 4;
}

static char *write_length(char *at, size_t length)
{
    if (length < 128) {
        *at++ = (char)length;
        return at;
    }
    *at++ = (char)(0x80 | (length >> 24 & 0x7f));
    *at++ = (char)(length >> 16 & 0xff);
    *at++ = (char)(length >> 8 & 0xff);
    *at++ = (char)(length & 0xff);
    return at;
}

static char *write_bytes(char *at, struct str bytes)
{
    memcpy(at, bytes.data, bytes.length);
    return at + bytes.length;
}

static struct str write_pairs(struct arena *arena, struct pairs *pairs)
{
    size_t size = 0;
    char *text, *at;

    for (size_t i = 0; i < pairs->count; i++) {
        const struct pair *pair = &pairs->items[i];

        size += length_size(pair->name.length) + pair->name.length;
        size += length_size(pair->value.length) + pair->value.length;
    }
    pairs->size = size;
    text = at = size > LIMIT_FASTCGI_PARAMS ? NULL : arena_alloc(arena, size + 1);
    for (size_t i = 0; text && i < pairs->count; i++) {
        at = write_length(at, pairs->items[i].name.length);
        at = write_length(at, pairs->items[i].value.length);
        at = write_bytes(at, pairs->items[i].name);
        at = write_bytes(at, pairs->items[i].value);
    }
    return str_of(text, text ? size : 0);
}

static char *write_record(char *at, enum fastcgi_kind kind, struct str content)
{
    fastcgi_write_header(kind, content.length, at);
    return write_bytes(at + FASTCGI_HEADER, content);
}

/*
 * Writes FCGI_BEGIN_REQUEST as responder (`keep`: the connection stays open after the response), then the parameters
 * in records of at most 65535 bytes, ended by an empty record.
 */
static struct str write_records(struct arena *arena, struct str params, bool keep_conn)
{
    const struct str responder = {keep_conn ? "\0\1\1\0\0\0\0\0" : "\0\1\0\0\0\0\0\0", 8};
    size_t records = params.length / UINT16_MAX + 3;
    char *text = arena_alloc(arena, params.length + responder.length + records * FASTCGI_HEADER);
    char *at = text;

    if (!text)
        return (struct str){NULL, 0};
    at = write_record(at, FASTCGI_BEGIN, responder);
    while (params.length > 0) {
        at = write_record(at, FASTCGI_PARAMS, str_slice(params, 0, UINT16_MAX));
        params = str_skip(params, UINT16_MAX);
    }
    at = write_record(at, FASTCGI_PARAMS, STR(""));
    return str_of(text, (size_t)(at - text));
}

int fastcgi_write_head(struct gateway_request *p, struct str *out_fault)
{
    const struct fastcgi_conf *conf = fastcgi_conf_of(p);
    const struct fastcgi_params *rows = conf->params.items;
    size_t max = conf->default_params.count + p->x->request.headers.count + 1;
    struct arena *arena = &p->x->arena;
    struct pairs pairs;
    struct str params;
    int error;

    *out_fault = STR("a body of unknown length");
    if (p->sent.content_length == BODY_LENGTH_UNKNOWN)
        return -EINVAL;
    for (size_t i = 0; i < conf->params.count; i++)
        max += rows[i].count;
    if (pairs_init(&pairs, arena, max) < 0)
        return -ENOMEM;
    error = set_param_values(p, &pairs, &conf->default_params);
    for (size_t i = 0; error == 0 && i < conf->params.count; i++)
        error = set_param_values(p, &pairs, &rows[i]);
    if (error < 0)
        return error;
    if (set_length(p, &pairs) < 0 || set_fields(p, &pairs) < 0)
        return -ENOMEM;
    params = write_pairs(arena, &pairs);
    *out_fault = STR("the length of all parameters");
    if (!params.data)
        return pairs.size > LIMIT_FASTCGI_PARAMS ? -EINVAL : -ENOMEM;
    *out_fault = STR("");
    p->sent.head = write_records(arena, params, conf->keep_conn);
    return p->sent.head.data ? 0 : -ENOMEM;
}
