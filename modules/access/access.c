/*
 * `allow` and `deny`: access control by client address. The most specific range that contains the address decides,
 * regardless of the order in the configuration.
 */
#include "base/cidr.h"
#include "server/module.h"
#include "stream/stream_module.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

struct access_rule {
    struct cidr range;
    bool all;
    bool deny;
    struct conf_mark mark;
};

struct access_conf {
    struct conf_rows allow, deny; /* struct access_rule, in configuration order */
    struct access_rule *rules;    /* both lists, most specific ranges first */
    size_t count;
};

#define AT(field) offsetof(struct access_conf, field)

static int read_rule(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct access_rule *rule = out;
    struct str text;
    int error = conf_read_text(reader, node, &text);

    if (error < 0)
        return error;
    rule->mark = node->mark;
    rule->all = str_equal(text, STR("all"));
    if (rule->all || cidr_parse(text, &rule->range) == 0)
        return 0;
    conf_error(reader->errors, node->mark, STR("10.0.0.0/8, \"2001:db8::/32\", 127.0.0.1, \"unix:\" or all"),
               "\"" STR_FMT "\" is not an address or a range of addresses", STR_ARG(text));
    return -EINVAL;
}

static int rule_prefix_length(const struct access_rule *rule)
{
    return rule->all ? -1 : rule->range.bits;
}

static int compare_rules(const void *a, const void *b)
{
    return rule_prefix_length(b) - rule_prefix_length(a);
}

static bool is_valid(const struct access_rule *rule)
{
    return rule->all || rule->range.family != AF_UNSPEC;
}

static bool same_range(const struct access_rule *a, const struct access_rule *b)
{
    return is_valid(a) && a->all == b->all && a->range.family == b->range.family && a->range.bits == b->range.bits &&
           memcmp(a->range.bytes, b->range.bytes, sizeof(a->range.bytes)) == 0;
}

/* Reports ranges that are in both lists. The order of the lists has no effect, so the result would be ambiguous. */
static void check_pairs(const struct access_conf *own, struct conf_reader *reader)
{
    const struct access_rule *allowed = own->allow.items;
    const struct access_rule *denied = own->deny.items;

    for (size_t i = 0; i < own->allow.count; i++) {
        for (size_t k = 0; k < own->deny.count; k++) {
            if (same_range(&allowed[i], &denied[k]))
                conf_error(reader->errors, denied[k].mark, STR("delete one of the two"),
                           "this range is denied here, and allowed in line %u", allowed[i].mark.line);
        }
    }
}

/* As in nginx, a scope with `allow` or `deny` replaces both lists of the outer scope. */
static int check_access(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct access_conf *own = conf;
    bool allows = conf_map_get(at, STR("allow")) != NULL;
    bool denies = conf_map_get(at, STR("deny")) != NULL;

    if (!allows && !denies)
        return 0;
    if (!allows)
        own->allow = (struct conf_rows){0};
    if (!denies)
        own->deny = (struct conf_rows){0};
    own->count = own->allow.count + own->deny.count;
    own->rules = arena_zalloc(reader->arena, own->count + 1, sizeof(*own->rules));
    if (!own->rules)
        return -ENOMEM;
    if (own->allow.count)
        memcpy(own->rules, own->allow.items, own->allow.count * sizeof(*own->rules));
    for (size_t i = 0; i < own->deny.count; i++) {
        own->rules[own->allow.count + i] = ((const struct access_rule *)own->deny.items)[i];
        own->rules[own->allow.count + i].deny = true;
    }
    qsort(own->rules, own->count, sizeof(*own->rules), compare_rules);
    check_pairs(own, reader);
    return 0;
}

#define SCOPES (SCOPE_SITE | SCOPE_STREAM | SCOPE_STREAM_SERVER)

static const struct directive directives[] = {
    {.name = "allow",
     .scopes = SCOPES,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(allow),
     .row_size = sizeof(struct access_rule),
     .row = read_rule,
     .syntax = "address | address/bits | unix: | all",
     .example = "allow: [10.0.0.0/8, \"2001:db8::/32\", \"unix:\"]",
     .help = "Addresses with access. The most specific of all ranges in allow and deny applies, regardless of the "
             "order. An address in no range has access, so a list of permitted addresses needs deny: all. An inner "
             "scope with allow or deny replaces both lists of the outer one."},
    {.name = "deny",
     .scopes = SCOPES,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(deny),
     .row_size = sizeof(struct access_rule),
     .row = read_rule,
     .syntax = "address | address/bits | unix: | all",
     .example = "deny: [10.0.0.1, all]",
     .help = "Addresses without access: requests are answered with 403, and connections of stream are closed."},
    {0},
};

/* NULL: no rule contains the address. */
static const struct access_rule *find_rule(const struct access_conf *own, const struct sockaddr *client)
{
    for (size_t i = 0; i < own->count; i++) {
        if (own->rules[i].all || cidr_contains(&own->rules[i].range, client))
            return &own->rules[i];
    }
    return NULL;
}

static enum outcome access_handler(struct exchange *x, const void *conf, void *state)
{
    const struct access_rule *rule = find_rule(conf, exchange_client(x));

    if (!rule)
        return OUTCOME_DECLINED;
    if (!rule->deny)
        return OUTCOME_ALLOWED;
    return exchange_error_response_log(x, 403, exchange_satisfies_any(x) ? LOG_INFO : LOG_ERROR,
                                       "access forbidden by rule");
}

static int access_connected(struct stream *stream, const void *conf, void *state)
{
    const struct access_rule *rule = find_rule(conf, stream_client(stream));

    return rule && rule->deny ? 403 : 0;
}

static const struct stream_part stream_part = {.connected = access_connected};

static bool access_idle(const void *conf)
{
    const struct access_conf *own = conf;

    return own->count == 0;
}

const struct module module_access = {
    .name = "access",
    .directives = directives,
    .conf_size = sizeof(struct access_conf),
    .conf_check = check_access,
    .idle = access_idle,
    .handler = access_handler,
    .access = true,
    .stream = &stream_part,
};
