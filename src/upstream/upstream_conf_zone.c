/*
 * Reads `zone`: "app 64k ports=8080,9000-9019". Only the ports have an effect; name and size are those of nginx.
 */
#include "upstream/upstream_conf.h"

#include "base/limits.h"

#include <errno.h>

static bool parse_port(struct str text, uint16_t *out_port)
{
    uint64_t port;

    if (str_to_u64(text, &port) < 0 || port == 0 || port > UINT16_MAX)
        return false;
    *out_port = (uint16_t)port;
    return true;
}

static bool parse_range(struct str text, struct upstream_port_range *out)
{
    struct str last = text;
    struct str first = str_cut(&last, '-');

    return parse_port(first, &out->first) && parse_port(last.data ? last : first, &out->last) &&
           out->first <= out->last;
}

/* Parses "8080,9000-9019" into `ranges`, which are as many as there are bytes. 0 or -EINVAL. */
static int parse_ranges(struct str text, struct upstream_port_range *ranges, struct upstream_ports *out)
{
    unsigned ports = 0;

    while (text.data) {
        struct upstream_port_range *range = &ranges[out->count++];

        if (!parse_range(str_cut(&text, ','), range))
            return -EINVAL;
        ports += (unsigned)range->last - range->first + 1;
        if (ports > LIMIT_UPSTREAM_ZONE_PORTS)
            return -EINVAL;
    }
    out->ranges = ranges;
    return 0;
}

static int read_ports(struct conf_reader *reader, const struct conf_node *node, struct str text,
                      struct upstream_ports *out)
{
    struct upstream_port_range *ranges = arena_zalloc(reader->arena, text.length + 1, sizeof(*ranges));

    if (!ranges)
        return -ENOMEM;
    *out = (struct upstream_ports){.any = str_equal(text, STR("any"))};
    if (out->any || parse_ranges(text, ranges, out) == 0)
        return 0;
    conf_error(reader->errors, node->mark, STR("write: zone: app 64k ports=8080,9000-9019, or ports=any"),
               "\"ports=" STR_FMT "\" is not a list of at most %d TCP ports", STR_ARG(text), LIMIT_UPSTREAM_ZONE_PORTS);
    return -EINVAL;
}

int upstream_read_zone(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct upstream_zone_words *zone = out;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    zone->given = true;
    for (size_t i = 0; i < words.count && error == 0; i++) {
        if (str_starts(words.items[i], STR("ports=")))
            error = read_ports(reader, node, str_skip(words.items[i], 6), &zone->ports);
    }
    return error;
}
