/*
 * Parses Accept leniently: malformed members are ignored.
 */
#include "http/accept.h"

/* Parses "0.5" into thousandths; 0 if invalid. */
static unsigned parse_weight(struct str text)
{
    unsigned weight = 0, digit = 1000;

    for (size_t i = 0; i < text.length && digit > 0; i++) {
        char c = text.data[i];

        if (i == 1 ? c != '.' : c < '0' || c > '9')
            return 0;
        if (i == 1)
            continue;
        weight += (unsigned)(c - '0') * digit;
        digit /= 10;
    }
    return weight > 1000 ? 1000 : weight;
}

static unsigned weight_of(struct str parameters)
{
    while (parameters.data) {
        struct str value = str_trim(header_cut(&parameters, ';'));
        struct str name = str_trim(str_cut(&value, '='));

        if (value.data && str_equal_nocase(name, STR("q")))
            return parse_weight(str_trim(value));
    }
    return 1000;
}

/* The specificity of a range that matches the type, 1 to 3 (the full name); 0: no match. */
static unsigned range_specificity(struct str range, struct str type)
{
    size_t front = (size_t)(str_find(type, '/') + 1);

    if (str_equal_nocase(range, type))
        return 3;
    if (range.length == front + 1 && str_ends(range, STR("*")) &&
        str_equal_nocase(str_slice(range, 0, front), str_slice(type, 0, front)))
        return 2;
    return str_equal(range, STR("*/*")) ? 1 : 0;
}

unsigned accept_weight(const struct headers *fields, struct str type)
{
    struct header_list list;
    struct str member;
    unsigned best = 0, weight = 0;
    bool listed = false;

    header_list_start(&list, fields, STR("Accept"));
    while (header_list_next(&list, &member)) {
        struct str parameters = member;
        struct str range = str_trim(str_cut(&parameters, ';'));
        unsigned exact = range_specificity(range, type);

        listed = true;
        if (exact > best) {
            best = exact;
            weight = weight_of(parameters);
        }
    }
    return listed ? weight : 1000;
}
