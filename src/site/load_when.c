/*
 * The blocks of `when` and `limit_except`, and for each the location with its directives applied.
 */
#include "site/load.h"
#include "site/when.h"

#include <errno.h>

/* Reports keys that have no effect once the location is selected. */
static void check_keys(struct load *load, const struct when_block *when)
{
    static const char *const wrong[] = {"when", "limit_except", "location", "internal", "status_zone"};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const struct conf_node *value = conf_map_get(when->pair->value, str_from(wrong[i]));

        if (!value)
            continue;
        conf_error(load->errors, value->mark,
                   STR("join conditions by \"and\", and write them in the location"),
                   "%s is not allowed in %s", wrong[i], when->methods ? "limit_except" : "when");
    }
}

/* Creates the location that applies if the condition holds: its values, overridden by the condition's own. */
static int create_when_location(struct load *load, const struct location *location, struct when_block *when)
{
    static const char *const inner[] = {"when", "limit_except", "location", "internal", "status_zone", NULL};
    struct location *made = arena_zalloc(load->reader.arena, 1, sizeof(*made));
    struct conf_scope_values *values;

    if (!made)
        return -ENOMEM;
    check_keys(load, when);
    load->reader.is_overlay = true;
    values = load_scope(load, SCOPE_LOCATION, when->pair->value, location->values, inner);
    load->reader.is_overlay = false;
    if (!values)
        return -ENOMEM;
    *made = (struct location){.kind = location->kind,
                              .pattern = location->pattern,
                              .regex = location->regex,
                              .nested = location->nested,
                              .zones = location->zones};
    location_set_values(made, values);
    location_set_alias_prefix(load, when->pair->value, made);
    when->location = made;
    return 0;
}

/* Adds the valid conditions of a map whose keys are conditions. Returns 0 or -ENOMEM. */
static int add_when_blocks(struct load *load, const struct conf_node *map, condition_reader *read,
                           struct location *location)
{
    int error = 0;

    for (size_t i = 0; map && map->kind == CONF_MAP && i < map->count && error != -ENOMEM; i++) {
        struct when_block *when = &location->when_blocks[location->when_block_count];

        *when = (struct when_block){.pair = &map->pairs[i]};
        error = read(&load->reader, when->pair->key, when);
        if (error == 0)
            location->when_block_count++;
    }
    return error == -ENOMEM ? error : 0;
}

static size_t count_pairs(const struct conf_node *map)
{
    return map && map->kind == CONF_MAP ? map->count : 0;
}

/* Determines whether some or all of its directives are server-level rules. */
static void find_rules(struct when_block *when)
{
    static const char *const names[] = {"set", "rewrite", "return"};
    const struct conf_node *map = when->pair->value;
    size_t count = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        count += conf_map_get(map, str_from(names[i])) != NULL;
    when->rules = count > 0;
    when->only_rules = count > 0 && count == map->count;
}

/*
 * Order: limit_except first, an inner one replacing the outer one's; then the conditions of outer scopes, then those
 * of this scope. Each overrides the values of this location.
 */
int load_when_blocks(struct load *load, const struct conf_node *node, const struct location *outer,
                     struct location *location)
{
    const struct conf_node *own = conf_map_get(node, STR("when"));
    const struct conf_node *except = conf_map_get(node, STR("limit_except"));
    size_t inherited = outer ? outer->when_block_count : 0;
    size_t max = inherited + count_pairs(own) + count_pairs(except), first;
    int error;

    if (max == 0)
        return 0;
    location->when_blocks = arena_zalloc(load->reader.arena, max, sizeof(*location->when_blocks));
    if (!location->when_blocks)
        return -ENOMEM;
    error = add_when_blocks(load, except, load_methods_read, location);
    for (size_t i = 0; i < inherited; i++) {
        /* The server's conditions were evaluated before the redirect to a named location. */
        if (location->kind == LOCATION_NAMED && !outer->when_blocks[i].methods)
            continue;
        if (!except || !outer->when_blocks[i].methods)
            location->when_blocks[location->when_block_count++] = outer->when_blocks[i];
    }
    first = location->when_block_count;
    if (error == 0)
        error = add_when_blocks(load, own, load_conditions_read, location);
    for (size_t i = first; !outer && i < location->when_block_count; i++)
        find_rules(&location->when_blocks[i]);
    for (size_t i = 0; i < location->when_block_count && error == 0; i++)
        error = create_when_location(load, location, &location->when_blocks[i]);
    return error;
}
