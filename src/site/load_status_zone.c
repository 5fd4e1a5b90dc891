/*
 * The zones of `status_zone`: their names, and where the requests of each location and the connections of
 * each server of stream are counted.
 */
#include "site/core_stream.h"
#include "site/load.h"

#include "base/limits.h"

#include <errno.h>

/* Names of the configuration are UTF-8: they are cut between two characters. */
static struct str truncate_name(struct str name)
{
    size_t length = LIMIT_STATUS_ZONE_NAME;

    if (name.length <= length)
        return name;
    while (length > 0 && ((unsigned char)name.data[length] & 0xc0) == 0x80)
        length--;
    return str_slice(name, 0, length);
}

/* Adds the zone; the limit is reported once. Leaves *out_zone NULL at the limit. Returns 0 or -ENOMEM. */
static int add_zone(struct load *load, struct conf_mark mark, enum status_zone_kind kind, struct str name,
                    const struct status_zone **out_zone)
{
    struct status_zone *zone = NULL;
    int error = status_zones_add(&load->configuration->zones, load->reader.arena, kind, name, &zone);

    if (error == -ENOSPC && !load->zones_exceeded)
        conf_error(load->errors, mark, STR("set status_zone only in the servers and locations to observe"),
                   "there are more than %d zones of status_zone", LIMIT_STATUS_ZONES);
    load->zones_exceeded |= error == -ENOSPC;
    *out_zone = zone;
    return error == -ENOSPC ? 0 : error;
}

/* Adds the zones of a location to it, unless it has none. Returns 0 or -ENOMEM. */
static int set_zones(struct load *load, struct location *location, struct location_zones found)
{
    struct location_zones *zones;

    if (!found.server && !found.location)
        return 0;
    zones = arena_zalloc(load->reader.arena, 1, sizeof(*zones));
    if (!zones)
        return -ENOMEM;
    *zones = found;
    location->zones = zones;
    return 0;
}

static struct str default_zone_name(const struct loaded_server *loaded)
{
    const struct listen_row *rows = loaded->own->listens.items;

    if (!str_empty(loaded->server->name))
        return loaded->server->name;
    return loaded->own->listens.count > 0 ? rows[0].text : core_default_address();
}

int load_server_zone(struct load *load, const struct conf_node *node, struct loaded_server *loaded)
{
    struct location *root = loaded->server->root;
    struct str given = root->site->status_zone.name;
    struct location_zones zones = {NULL, NULL};
    int error = 0;

    loaded->zone_name = truncate_name(str_empty(given) ? default_zone_name(loaded) : given);
    if (!str_empty(given) || root->site->status_zone.made)
        error = add_zone(load, node->mark, STATUS_ZONE_SERVER, loaded->zone_name, &zones.server);
    return error < 0 ? error : set_zones(load, root, zones);
}

int load_stream_zone(struct load *load, const struct loaded_server *loaded, struct stream_server *stream)
{
    const struct status_zone_setting *setting = &stream->conf->status_zone;
    struct str name = str_empty(setting->name) ? default_zone_name(loaded) : setting->name;

    if (str_empty(setting->name) && !setting->made)
        return 0;
    return add_zone(load, loaded->node->mark, STATUS_ZONE_STREAM, truncate_name(name), &stream->zone);
}

int load_location_zone(struct load *load, const struct conf_pair *pair, struct location *location)
{
    const struct loaded_server *loaded = &load->servers[load->server_count - 1];
    const struct location_zones *outer = loaded->server->root->zones;
    struct location_zones zones = {outer ? outer->server : NULL, NULL};
    struct str name = location->site->status_zone.name;
    int error = 0;

    if (str_empty(name) && location->site->status_zone.made) {
        name = arena_printf(load->reader.arena, STR_FMT " " STR_FMT, STR_ARG(loaded->zone_name),
                            STR_ARG(str_trim(pair->key->text)));
        if (!name.data)
            return -ENOMEM;
    }
    if (!str_empty(name))
        error = add_zone(load, pair->key->mark, STATUS_ZONE_LOCATION, truncate_name(name), &zones.location);
    return error < 0 ? error : set_zones(load, location, zones);
}
