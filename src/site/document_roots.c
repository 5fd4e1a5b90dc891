/*
 * Collects the constant root directories of the configuration, which a worker opens before it drops root. Roots with
 * variables are opened on demand.
 */
#include "site/document_roots.h"

#include "site/when.h"

static int open_location_root(struct root_directories *roots, const struct location *location)
{
    const struct core_site *site = location->site;
    const struct template *root = site->alias.path ? site->alias.path : site->root;
    struct str front = root ? template_front(root) : STR("");

    if (root && template_constant(root))
        return root_directories_open(roots, template_text(root));
    /* The root directory of such files is the one that precedes the first variable. */
    if (site->alias.whole && front.length > 1)
        return root_directories_open(roots, str_slice(front, 0, (size_t)str_rfind(front, '/') + 1));
    return 0;
}

static int open_location_roots(struct root_directories *roots, const struct location *location)
{
    int result = open_location_root(roots, location);

    for (size_t i = 0; i < location->inner_count && result == 0; i++)
        result = open_location_roots(roots, location->inner[i]);
    for (size_t i = 0; i < location->when_block_count && result == 0; i++)
        result = open_location_root(roots, location->when_blocks[i].location);
    for (size_t i = 0; i < location->pattern_count && result == 0; i++)
        result = open_location_roots(roots, location->patterns[i]);
    return result;
}

int document_roots_open(struct root_directories *roots, const struct configuration *configuration)
{
    int result = 0;

    for (size_t i = 0; i < configuration->server_count && result == 0; i++)
        result = configuration->servers[i]->root ? open_location_roots(roots, configuration->servers[i]->root) : 0;
    return result;
}
