/*
 * The root directories of a configuration.
 */
#ifndef SITE_DOCUMENT_ROOTS_H
#define SITE_DOCUMENT_ROOTS_H

#include "io/root_directory.h"
#include "site/configuration.h"

/*
 * Opens every constant `root` of every server and location (io/root_directory.h); the configuration keeps owning the
 * paths. Returns 0 or -ENOMEM.
 */
MUST_CHECK int document_roots_open(struct root_directories *roots, const struct configuration *configuration);

#endif
