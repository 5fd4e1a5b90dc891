/*
 * Finds the root folders that the configuration names outright (those with
 * variables are opened when they are asked for), so that a worker can open them before it gives up root.
 */
#include "server/document_roots.h"

static int keep_root(struct roots *roots, const struct location *location)
{
    const struct template *root = location->site->root;

    if (!root || !template_constant(root))
        return 0;
    return roots_keep(roots, template_text(root));
}

static int keep_all(struct roots *roots, const struct location *location)
{
    int result = keep_root(roots, location);

    for (size_t i = 0; i < location->inner_count && result == 0; i++)
        result = keep_all(roots, location->inner[i]);
    return result;
}

int document_roots_open(struct roots *roots, const struct configuration *configuration)
{
    int result = 0;

    for (size_t i = 0; i < configuration->server_count && result == 0; i++)
        result = configuration->servers[i]->root ? keep_all(roots, configuration->servers[i]->root) : 0;
    return result;
}
