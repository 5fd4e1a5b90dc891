/*
 * Rules about header fields that are not sent, sent twice, or weak.
 */
#include "lint/lint_config.h"

/* Security fields, which error pages need, too. */
static const char *const protecting[] = {"Content-Security-Policy", "Permissions-Policy",
                                         "Referrer-Policy",         "Strict-Transport-Security",
                                         "X-Content-Type-Options",  "X-Frame-Options"};

static bool is_protecting_field(struct str name)
{
    for (size_t i = 0; i < sizeof(protecting) / sizeof(protecting[0]); i++) {
        if (str_equal_nocase(name, str_from(protecting[i])))
            return true;
    }
    return false;
}

/* One field of an add_header, with its position. */
struct field {
    struct str name;
    struct str value;
    bool always;
    struct conf_mark mark;
};

typedef bool field_found(const struct field *field, void *owner);

static bool scalar_field(const struct conf_node *node, field_found *found, void *owner)
{
    struct str rest = str_trim(node->text);
    struct field field = {.mark = node->mark, .name = str_cut(&rest, ' ')};

    field.value = rest.data ? str_trim(rest) : STR("");
    field.always = str_ends(field.value, STR(" always"));
    return found(&field, owner);
}

static bool map_fields(const struct conf_node *map, field_found *found, void *owner)
{
    for (size_t i = 0; i < map->count; i++) {
        const struct conf_node *value = map->pairs[i].value;
        bool detailed = value->kind == CONF_MAP;
        struct field field = {.mark = map->pairs[i].key->mark,
                              .name = map->pairs[i].key->text,
                              .value = config_text(detailed ? conf_map_get(value, STR("value")) : value),
                              .always = detailed && config_is_on(conf_map_get(value, STR("always")))};

        if (found(&field, owner))
            return true;
    }
    return false;
}

/* Calls `found` for each field of an add_header until a call returns true. True if one did. */
static bool each_header_field(const struct conf_node *node, field_found *found, void *owner)
{
    if (!node)
        return false;
    if (node->kind == CONF_SCALAR)
        return scalar_field(node, found, owner);
    if (node->kind == CONF_MAP)
        return map_fields(node, found, owner);
    for (size_t i = 0; i < node->count; i++) {
        if (each_header_field(node->items[i], found, owner))
            return true;
    }
    return false;
}

static bool same_name(const struct field *field, void *owner)
{
    return str_equal_nocase(field->name, *(const struct str *)owner);
}

struct check {
    struct lint *lint;
    const struct lint_place *place;
};

static bool dropped_field(const struct field *field, void *owner)
{
    const struct check *check = owner;
    struct str name = field->name;

    if (!is_protecting_field(field->name))
        return false;
    for (const struct conf_scope_values *outer = check->place->location->values->outer; outer;
         outer = outer->outer) {
        if (each_header_field(config_find(outer, "add_header"), same_name, &name))
            lint_report(check->lint, field->mark,
                        STR("set it once, in the outer scope; or repeat its whole value here"),
                        STR_FMT " of an outer scope is dropped here: a field of the same name replaces it",
                        STR_ARG(name));
    }
    return false;
}

static void header_dropped(struct lint *lint, const struct lint_place *place)
{
    each_header_field(config_find(place->location->values, "add_header"), dropped_field, &(struct check){lint, place});
}

static bool sometimes_field(const struct field *field, void *owner)
{
    const struct check *check = owner;

    if (is_protecting_field(field->name) && !field->always)
        lint_report(check->lint, field->mark,
                    STR("add always: 'add_header: NAME VALUE always'; or use security_headers"),
                    STR_FMT " is not sent with error responses", STR_ARG(field->name));
    return false;
}

static void header_sometimes(struct lint *lint, const struct lint_place *place)
{
    for (const struct conf_scope_values *values = place->location->values; values; values = values->outer)
        each_header_field(config_find(values, "add_header"), sometimes_field, &(struct check){lint, place});
}

static bool twice_field(const struct field *field, void *owner)
{
    const struct check *check = owner;
    const struct conf_node *expires = config_find_inherited(check->place->location->values, "expires");
    bool lifetime =
        str_equal_nocase(field->name, STR("Cache-Control")) || str_equal_nocase(field->name, STR("Expires"));

    if (lifetime && expires && !str_equal(config_text(expires), STR("off")))
        lint_report(check->lint, field->mark, STR("keep one of the two"),
                    "expires sets " STR_FMT " as well: it is sent twice, and caches may use either",
                    STR_ARG(field->name));
    return false;
}

static void header_twice(struct lint *lint, const struct lint_place *place)
{
    for (const struct conf_scope_values *values = place->location->values; values; values = values->outer)
        each_header_field(config_find(values, "add_header"), twice_field, &(struct check){lint, place});
}

#define HALF_A_YEAR 15552000u

static uint64_t max_age(struct str value)
{
    ssize_t at = str_search(value, STR("max-age="));
    struct str rest = str_skip(value, at < 0 ? 0 : (size_t)at + 8);
    size_t digits = 0;
    uint64_t age = HALF_A_YEAR;

    while (digits < rest.length && rest.data[digits] >= '0' && rest.data[digits] <= '9')
        digits++;
    return at >= 0 && str_to_u64(str_slice(rest, 0, digits), &age) == 0 ? age : HALF_A_YEAR;
}

static bool hsts_field(const struct field *field, void *owner)
{
    const struct check *check = owner;
    const struct lint_place *place = check->place;

    if (!str_equal_nocase(field->name, STR("Strict-Transport-Security")))
        return false;
    if (max_age(field->value) < HALF_A_YEAR && max_age(field->value) > 0)
        lint_report(check->lint, field->mark, STR("max-age=31536000 is a year"),
                    "max-age is less than half a year");
    else if (!config_listens(check->lint, place->server, true))
        lint_report(check->lint, field->mark, STR("move it to the server that listens with ssl"),
                    "browsers ignore Strict-Transport-Security received without TLS");
    return false;
}

static void hsts_weak(struct lint *lint, const struct lint_place *place)
{
    each_header_field(config_find(place->location->values, "add_header"), hsts_field, &(struct check){lint, place});
}

const struct lint_rule lint_rules_headers[] = {
    {"header-dropped", LINT_LOCATION, header_dropped,
     "An inner add_header replaces a security field of an outer scope."},
    {"header-not-always", LINT_LOCATION, header_sometimes,
     "A security field is not sent with error responses."},
    {"header-twice", LINT_LOCATION, header_twice, "expires and add_header set the same field."},
    {"weak-hsts", LINT_LOCATION, hsts_weak,
     "Strict-Transport-Security is short-lived, or sent where browsers ignore it."},
    {0},
};
