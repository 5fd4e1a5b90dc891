/*
 * Parses Accept-Encoding into one weight per coding; sorts at most three codings.
 */
#include "http/coding.h"

/* Indexes into `weights`: one per coding, then unknown codings, identity, "*". */
enum { OTHERS = CODINGS, IDENTITY, ANY, ACCEPTED_CODINGS };

#define WEIGHT_ABSENT (-1)

struct accepted_codings {
    int weights[ACCEPTED_CODINGS]; /* in thousandths, or WEIGHT_ABSENT */
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

/* Parses a qvalue (12.4.2) into thousandths: up to three digits, at most 1. Invalid: 0. */
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

/* Parses the part after the name: nothing, or "q=" and a weight. */
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

static void parse_accepted_codings(struct header_list *list, struct accepted_codings *out)
{
    struct str rest;

    for (unsigned i = 0; i < ACCEPTED_CODINGS; i++)
        out->weights[i] = WEIGHT_ABSENT;
    while (header_list_next(list, &rest)) {
        int *place = &out->weights[place_of(str_trim(str_cut(&rest, ';')))];
        int weight = parse_parameters(rest);

        if (*place == WEIGHT_ABSENT || weight < *place)
            *place = weight;
    }
}

/* A coding that is not named has the weight of "*"; without "*" it is rejected, except identity. */
static int coding_weight(const struct accepted_codings *accepted, unsigned place)
{
    int weight = accepted->weights[place] == WEIGHT_ABSENT ? accepted->weights[ANY] : accepted->weights[place];

    return weight == WEIGHT_ABSENT ? 0 : weight;
}

unsigned coding_choose(const struct headers *request_headers, const enum coding *offered, unsigned count,
                       enum coding out[CODINGS])
{
    struct header_list list;
    struct accepted_codings accepted;
    unsigned chosen = 0;

    header_list_start(&list, request_headers, STR("Accept-Encoding"));
    if (!list.current)
        return 0;
    parse_accepted_codings(&list, &accepted);
    for (unsigned i = 0; i < count && chosen < CODINGS; i++) {
        int weight = coding_weight(&accepted, offered[i]);
        unsigned at = chosen;

        if (weight == 0 || weight < coding_weight(&accepted, IDENTITY))
            continue;
        while (at > 0 && weight > coding_weight(&accepted, out[at - 1])) {
            out[at] = out[at - 1];
            at--;
        }
        out[at] = offered[i];
        chosen++;
    }
    return chosen;
}
