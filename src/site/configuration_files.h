/*
 * The files that a configuration was loaded from: the main file and its includes, not certificates and other files that
 * directives name.
 */
#ifndef SITE_CONFIGURATION_FILES_H
#define SITE_CONFIGURATION_FILES_H

#include "conf/conf_tree.h"

enum { CONFIGURATION_DIGEST = 65 }; /* 64 hexadecimal digits and a NUL */

/* The absolute path of a file. Text in memory has only a name. data NULL: out of memory. */
struct str configuration_file_path(struct arena *arena, const struct conf_file *file);
/* The SHA-256 of the bytes of a file, as sha256sum(1) prints it. 0 or -ENOMEM. */
MUST_CHECK int configuration_file_digest(struct str bytes, char out_digest[CONFIGURATION_DIGEST]);

#endif
