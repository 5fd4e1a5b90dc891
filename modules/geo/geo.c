/*
 * `geo`: a variable whose value depends on an address: the client's, or the value of another variable. The longest
 * prefix that contains the address determines the value.
 */
#include "base/cidr.h"
#include "server/module.h"
#include "site/user_variables.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

struct range {
    struct cidr cidr;
    struct str value;
    const struct conf_node *node;
};

/* Ranges of one prefix length, sorted by their bytes. */
struct group {
    const struct range *first;
    size_t count;
};

struct geo {
    const struct user_variables *among;
    const struct template *source; /* $remote_addr unless configured otherwise */
    struct range *ranges;
    size_t count;
    struct group *groups; /* longest prefixes first */
    size_t group_count;
    struct str default_value;
};

struct geo_conf {
    struct conf_rows rows; /* always empty: the variables refer to their geo blocks */
};

#define HINT STR("write: geo: {$country: {default: ZZ, 192.0.2.0/24: CH, '2001:db8::/32': SE}}")

/* By family, then longest prefix first, then by bytes. */
static int compare_ranges(const void *a, const void *b)
{
    const struct cidr *left = &((const struct range *)a)->cidr, *right = &((const struct range *)b)->cidr;

    if (left->family != right->family)
        return left->family < right->family ? -1 : 1;
    if (left->bits != right->bits)
        return left->bits > right->bits ? -1 : 1;
    return memcmp(left->bytes, right->bytes, sizeof(left->bytes));
}

/* Clears the bits of an address after the first `bits`. */
static void mask_address(struct cidr *cidr, uint8_t bits)
{
    cidr->bits = bits;
    for (unsigned i = 0; i < sizeof(cidr->bytes); i++) {
        if (bits < 8 * i + 8)
            cidr->bytes[i] &= (uint8_t)(bits <= 8 * i ? 0 : 0xff << (8 * i + 8 - bits));
    }
}

static struct str find_range(const struct geo *geo, const struct cidr *address)
{
    for (size_t i = 0; i < geo->group_count; i++) {
        struct range key = {.cidr = *address};
        const struct range *found;

        if (geo->groups[i].first->cidr.family != address->family)
            continue;
        mask_address(&key.cidr, geo->groups[i].first->cidr.bits);
        found = bsearch(&key, geo->groups[i].first, geo->groups[i].count, sizeof(key), compare_ranges);
        if (found)
            return found->value;
    }
    return geo->default_value;
}

static void parse_bytes(struct cidr *out, sa_family_t family, const void *bytes, size_t length)
{
    *out = (struct cidr){.family = family};
    memcpy(out->bytes, bytes, length);
}

/* IPv4-mapped IPv6 addresses are treated as IPv4. */
static void parse_ipv6(struct cidr *out, struct in6_addr address)
{
    if (IN6_IS_ADDR_V4MAPPED(&address))
        parse_bytes(out, AF_INET, address.s6_addr + 12, 4);
    else
        parse_bytes(out, AF_INET6, &address, 16);
}

/* Parses an address; false: not an address. */
static bool of_text(struct str text, struct cidr *out)
{
    struct in6_addr six;

    if (cidr_parse(text, out) < 0)
        return false;
    memcpy(&six, out->bytes, sizeof(six));
    if (out->family == AF_INET6)
        parse_ipv6(out, six);
    return true;
}

static struct str geo_eval(const void *subject, const void *source)
{
    const struct geo *geo = source;
    struct str text = template_eval(geo->source, subject, geo->among->subject->values(subject)->arena);
    struct cidr address;

    return of_text(text, &address) ? find_range(geo, &address) : geo->default_value;
}

/* Returns the hint for an nginx parameter that is not supported. */
static struct str hint_for(struct str key)
{
    if (str_starts(key, STR("proxy")))
        return STR("list trusted proxies in set_real_ip_from: geo then uses the client's address");
    if (str_equal(key, STR("ranges")) || str_equal(key, STR("delete")))
        return STR("write ranges as 192.0.2.0/24, and each once");
    return HINT;
}

static int read_range(struct conf_reader *reader, const struct conf_pair *pair, struct geo *geo)
{
    struct range *range = &geo->ranges[geo->count];
    int error = conf_read_text(reader, pair->value, &range->value);

    if (error < 0)
        return error;
    if (str_equal(pair->key->text, STR("default"))) {
        geo->default_value = range->value;
        return 0;
    }
    if (cidr_parse(pair->key->text, &range->cidr) < 0 || range->cidr.family == AF_UNIX) {
        conf_error(reader->errors, pair->key->mark, hint_for(pair->key->text),
                   "\"" STR_FMT "\" is not an address or a range of addresses", STR_ARG(pair->key->text));
        return -EINVAL;
    }
    range->node = pair->key;
    geo->count++;
    return 0;
}

/* Sorts the ranges, and finds the start of each prefix length. */
static int make_groups(struct conf_reader *reader, struct geo *geo)
{
    geo->groups = arena_zalloc(reader->arena, geo->count + 1, sizeof(*geo->groups));
    if (!geo->groups)
        return -ENOMEM;
    if (geo->count)
        qsort(geo->ranges, geo->count, sizeof(*geo->ranges), compare_ranges);
    for (size_t i = 0; i < geo->count; i++) {
        const struct range *range = &geo->ranges[i];
        const struct cidr *before = i ? &range[-1].cidr : NULL;

        if (before && compare_ranges(range, &range[-1]) == 0) {
            conf_error(reader->errors, range->node->mark, STR("delete one of the two"),
                       "duplicate range, which is in line %u already", range[-1].node->mark.line);
            return -EINVAL;
        }
        if (!before || before->family != range->cidr.family || before->bits != range->cidr.bits)
            geo->groups[geo->group_count++].first = range;
        geo->groups[geo->group_count - 1].count++;
    }
    return 0;
}

/* Reads a block. Its key is "$to" or "$address $to"; its value contains the ranges. */
static int read_geo(struct conf_reader *reader, const struct conf_pair *pair)
{
    struct geo *geo = arena_zalloc(reader->arena, 1, sizeof(*geo));
    struct user_variable *variable;
    struct conf_words words;
    int error = conf_read_words(reader, pair->key, &words);

    if (!geo)
        return -ENOMEM;
    if (error < 0)
        return error;
    if (words.count < 1 || words.count > 2 || pair->value->kind != CONF_MAP) {
        conf_error(reader->errors, pair->key->mark, HINT,
                   "geo takes a variable, and a map from ranges to values");
        return -EINVAL;
    }
    geo->default_value = STR("");
    geo->ranges = arena_zalloc(reader->arena, pair->value->count + 1, sizeof(*geo->ranges));
    if (!geo->ranges)
        return -ENOMEM;
    geo->among = reader->user_variables;
    error = conf_read_template_word(reader, pair->key, words.count == 2 ? words.items[0] : STR("$remote_addr"),
                                    &geo->source);
    if (error == 0)
        error = user_variable_read(reader, pair->key, words.items[words.count - 1], &variable);
    for (size_t i = 0; i < pair->value->count && error == 0; i++)
        error = read_range(reader, &pair->value->pairs[i], geo);
    if (error == 0)
        error = make_groups(reader, geo);
    return error < 0 ? error : user_variable_set_source(reader, pair->key, variable, geo_eval, geo, false);
}

static int read_geos(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    int error = 0;

    if (node->kind != CONF_MAP) {
        conf_error(reader->errors, node->mark, HINT, "geo takes a variable, and a map from ranges to values");
        return -EINVAL;
    }
    for (size_t i = 0; i < node->count && error == 0; i++)
        error = read_geo(reader, &node->pairs[i]);
    return error;
}

static const struct directive directives[] = {
    {.name = "geo",
     .scopes = SCOPE_HTTP | SCOPE_STREAM,
     .type = DIRECTIVE_REPEAT,
     .merge = MERGE_NONE,
     .row_size = sizeof(char),
     .row = read_geos,
     .syntax = "{[$address] $variable: {[default: value,] address/bits: value, ...}}",
     .example = "geo: {$place: {default: outside, 10.0.0.0/8: inside}}",
     .help = "Defines a variable by the client's address (or by another variable before it: $arg_ip $place): the "
             "value of the longest range that contains the address, else default, else empty.",
     .schema = "{\"type\": \"object\", \"additionalProperties\": {\"type\": \"object\"}}"},
    {0},
};

const struct module module_geo = {
    .name = "geo",
    .directives = directives,
    .conf_size = sizeof(struct geo_conf),
};
