/*
 * The selected requests are spread evenly: the counter goes through the residues of the denominator in steps of the
 * numerator, and a residue below the numerator selects.
 */
#include "log/log_selection.h"

#include "base/limits.h"

#include <errno.h>

static int parse_fraction(struct str text, uint64_t *out_numerator, uint64_t *out_denominator)
{
    struct str denominator = text;
    struct str numerator = str_cut(&denominator, '/');
    int error = str_to_u64(numerator, out_numerator);

    return error < 0 ? error : str_to_u64(denominator, out_denominator);
}

/* "0.25" is 25/100. */
static int parse_decimal(struct str text, uint64_t *out_numerator, uint64_t *out_denominator)
{
    struct str decimals = text;
    struct str whole = str_cut(&decimals, '.');
    uint64_t units, rest;

    if (decimals.length > LIMIT_LOG_SAMPLE_DIGITS)
        return -ERANGE;
    if (str_to_u64(whole, &units) < 0 || str_to_u64(decimals, &rest) < 0)
        return -EINVAL;
    *out_denominator = 1;
    for (size_t i = 0; i < decimals.length; i++)
        *out_denominator *= 10;
    if (units > 1)
        return -ERANGE;
    *out_numerator = units * *out_denominator + rest;
    return 0;
}

int log_sample_parse(struct str text, uint32_t *out_numerator, uint32_t *out_denominator)
{
    uint64_t numerator = 0, denominator = 1;
    int error;

    if (str_find(text, '/') >= 0)
        error = parse_fraction(text, &numerator, &denominator);
    else if (str_find(text, '.') >= 0)
        error = parse_decimal(text, &numerator, &denominator);
    else
        error = str_to_u64(text, &numerator);
    if (error < 0)
        return error;
    if (numerator == 0 || numerator > denominator || denominator > LIMIT_LOG_SAMPLE)
        return -ERANGE;
    *out_numerator = (uint32_t)numerator;
    *out_denominator = (uint32_t)denominator;
    return 0;
}

bool log_selection_includes(const struct log_selection *selection, const struct template *condition, uint32_t *counter,
                            const void *subject, struct arena *arena)
{
    bool selected;

    if (condition) {
        struct str value = template_eval(condition, subject, arena);

        if (str_empty(value) || str_equal(value, STR("0")))
            return false;
    }
    if (!selection->denominator)
        return true;
    selected = *counter < selection->numerator;
    *counter = (*counter + selection->numerator) % selection->denominator;
    return selected;
}
