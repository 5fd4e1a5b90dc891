/*
 * Whether a variable leads a path out of the folder that the configuration has written.
 */
#include "http/url_climb.h"
#include "server/module.h"

/* Without two dots there is none, however they are written. */
static bool may_climb(struct str path, bool encoded)
{
    return str_search(path, STR("..")) >= 0 || (encoded && str_find(path, '%') >= 0);
}

bool exchange_climbs(struct exchange *x, const struct template *template, struct str value, struct str path,
                     bool encoded)
{
    struct url_climb climb = {.encoded = encoded};
    size_t begin = (size_t)(path.data - value.data);
    size_t end = begin + path.length;
    size_t at = 0;

    if (template_constant(template) || !may_climb(path, encoded))
        return false;
    for (size_t i = 0; i < template_part_count(template); i++) {
        bool variable;
        struct str part = template_part(template, i, x, &x->arena, &variable);
        struct str inside = at >= end ? STR("") : str_slice(part, 0, end - at);

        url_climb_add(&climb, at < begin ? str_skip(inside, begin - at) : inside, variable);
        at += part.length;
    }
    return at != value.length || url_climb_end(&climb);
}
