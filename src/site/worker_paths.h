/*
 * The files and ports that the workers of a configuration use while they run, for their sandbox.
 */
#ifndef SITE_WORKER_PATHS_H
#define SITE_WORKER_PATHS_H

#include "sandbox/sandbox.h"
#include "site/configuration.h"

/*
 * Adds document roots (of one with variables, the directories before the first variable), files of directives that are
 * `opened`, caches, temporary directories, and the files of the name resolver. Called before privileges are dropped.
 * Returns 0, -EMFILE, -ENFILE or -ENOMEM.
 */
MUST_CHECK int worker_paths_collect(const struct configuration *configuration, struct sandbox_paths *paths);
/* Adds the ports of upstream servers and name servers. Returns 0 or -ENOMEM. */
MUST_CHECK int worker_ports_collect(const struct configuration *configuration, struct sandbox_ports *ports);

#endif
