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
    else if (reader->scope == SCOPE_HTTP || reader->scope == SCOPE_STREAM)
        fault = reader->scope == SCOPE_HTTP ? "http has no zone of its own" : "stream has no zone of its own";
    if (fault)
        conf_error(reader->errors, node->mark,
                   reader->scope & (SCOPE_STREAM | SCOPE_STREAM_SERVER)
                       ? STR("write: status_zone: on, or a name in a server")
                       : STR("write: status_zone: on, or a name in a server or location"), "%s", fault);
    return !fault;
}

int core_status_zone_check(struct status_zone_setting *setting, struct conf_reader *reader,
                           const struct conf_node *at)
{
    const struct conf_node *node = conf_map_get(at, STR("status_zone"));
    struct str text = setting->text;

    setting->name = STR("");
    if (!node || !text.data || reader->is_overlay)
        return 0;
    if (conf_switch_parse(text, &setting->made) == 0)
        return 0;
    if (!is_zone_name(reader, node, text))
        return -EINVAL;
    setting->name = text;
    return 0;
}
