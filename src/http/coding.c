/*
 * Accept-Encoding, read once into one weight for each coding; a sort of at most three.
 */
#include "http/coding.h"

/* Places of weights: one for each coding, then for names that are none of ours. */
enum { OTHERS = CODINGS, IDENTITY, ANY, WISHES };

#define NOT_SAID (-1)

struct wishes {
    int weights[WISHES]; /* in thousandths, or NOT_SAID */
};

static const struct str names[CODINGS] = {
    [CODING_BR] = {"br", 2}, [CODING_ZSTD] = {"zstd", 4}, [CODING_GZIP] = {"gzip", 4}};

struct str coding_name(enum coding coding)
{
    return names[coding];
}

enum coding coding_by_name(struct str name)
{
    for (enum coding coding = 0; coding < CODINGS; coding++) {
        if (str_equal_nocase(name, names[coding]))
            return coding;
    }
    return str_equal_nocase(name, STR("x-gzip")) ? CODING_GZIP : CODINGS;
}

/* qvalue (12.4.2) in thousandths: up to three digits behind the point, and no more than 1. What is none is 0. */
static int parse_weight(struct str text)
{
    int weight = 0;

    if (text.length == 0 || text.length > 5 || (text.length > 1 && text.data[1] != '.'))
        return 0;
    for (size_t i = 0, unit = 1000; i < text.length; i++) {
        if (i == 1)
            continue;
        if (text.data[i] < '0' || text.data[i] > '9')
            return 0;
        weight += (text.data[i] - '0') * (int)unit;
        unit /= 10;
    }
    return weight <= 1000 ? weight : 0;
}

/* What follows the name: nothing, or "q=" and a weight. */
static int parse_parameters(struct str rest)
{
    struct str parameter = str_trim(rest);

    if (!rest.data)
        return 1000;
    if (!str_equal_nocase(str_slice(parameter, 0, 2), STR("q=")))
        return 0;
    return parse_weight(str_skip(parameter, 2));
}

static unsigned place_of(struct str name)
{
    if (str_equal(name, STR("*")))
        return ANY;
    return str_equal_nocase(name, STR("identity")) ? IDENTITY : coding_by_name(name);
}

static void parse_wishes(struct header_list *list, struct wishes *out)
{
    struct str rest;

    for (unsigned i = 0; i < WISHES; i++)
        out->weights[i] = NOT_SAID;
    while (header_list_next(list, &rest)) {
        int *place = &out->weights[place_of(str_trim(str_cut(&rest, ';')))];
        int weight = parse_parameters(rest);

        if (*place == NOT_SAID || weight < *place)
            *place = weight;
    }
}

/* What is not named is as the star says; without one it is refused, and identity is what is left. */
static int weight_of(const struct wishes *wishes, unsigned place)
{
    int weight = wishes->weights[place] == NOT_SAID ? wishes->weights[ANY] : wishes->weights[place];

    return weight == NOT_SAID ? 0 : weight;
}

unsigned coding_choose(const struct headers *asked, const enum coding *offered, unsigned count,
                       enum coding out[CODINGS])
{
    struct header_list list;
    struct wishes wishes;
    unsigned chosen = 0;

    header_list_start(&list, asked, STR("Accept-Encoding"));
    if (!list.current)
        return 0;
    parse_wishes(&list, &wishes);
    for (unsigned i = 0; i < count && chosen < CODINGS; i++) {
        int weight = weight_of(&wishes, offered[i]);
        unsigned at = chosen;

        if (weight == 0 || weight < weight_of(&wishes, IDENTITY))
            continue;
        while (at > 0 && weight > weight_of(&wishes, out[at - 1])) {
            out[at] = out[at - 1];
            at--;
        }
        out[at] = offered[i];
        chosen++;
    }
    return chosen;
}
