/*
 * The value of `status_zone`: on, off, or a name.
 */
#include "base/limits.h"
#include "site/core.h"

#include <errno.h>

static bool is_zone_name(struct conf_reader *reader, const struct conf_node *node, struct str name)
{
    const char *fault = NULL;

    if (str_empty(name))
        fault = "status_zone has no value";
    else if (name.length > LIMIT_STATUS_ZONE_NAME)
        fault = "the name of the zone is too long";
    else if (reader->scope == SCOPE_HTTP)
        fault = "http has no zone of its own";
    if (fault)
        conf_error(reader->errors, node->mark, STR("write: status_zone: on, or a name in a server or location"), "%s",
                   fault);
    return !fault;
}

int core_status_zone_check(struct core_site *site, struct conf_reader *reader, const struct conf_node *at)
{
    const struct conf_node *node = conf_map_get(at, STR("status_zone"));
    struct str text = site->status_zone.text;

    site->status_zone.name = STR("");
    if (!node || !text.data || reader->is_overlay)
        return 0;
    if (conf_switch_parse(text, &site->status_zone.made) == 0)
        return 0;
    if (!is_zone_name(reader, node, text))
        return -EINVAL;
    site->status_zone.name = text;
    return 0;
}
