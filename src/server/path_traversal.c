/*
 * Checks whether a variable makes a path leave the configured directory.
 */
#include "http/url_traversal.h"
#include "server/module.h"

/* Quick check: a traversal needs "..", plain or percent-encoded. */
static bool may_traverse(struct str path, bool encoded)
{
    return str_search(path, STR("..")) >= 0 || (encoded && str_find(path, '%') >= 0);
}

bool exchange_path_traverses(struct exchange *x, const struct template *template, struct str value, struct str path,
                             bool encoded)
{
    struct url_traversal traversal = {.encoded = encoded};
    size_t begin = (size_t)(path.data - value.data);
    size_t end = begin + path.length;
    size_t at = 0;

    if (template_constant(template) || !may_traverse(path, encoded))
        return false;
    for (size_t i = 0; i < template_part_count(template); i++) {
        bool variable;
        struct str part = template_part(template, i, x, &x->arena, &variable);
        struct str inside = at >= end ? STR("") : str_slice(part, 0, end - at);

        url_traversal_add(&traversal, at < begin ? str_skip(inside, begin - at) : inside, variable);
        at += part.length;
    }
    return at != value.length || url_traversal_end(&traversal);
}
