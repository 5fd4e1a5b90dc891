/*
 * Paths and digests of configuration files.
 */
#include "site/configuration_files.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>

struct str configuration_file_path(struct arena *arena, const struct conf_file *file)
{
    ssize_t slash = str_rfind(file->path, '/');
    bool root = str_equal(file->directory, STR("/"));

    if (!file->inode || slash == 0)
        return arena_copy(arena, file->path);
    return arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(root ? STR("") : file->directory),
                        STR_ARG(str_skip(file->path, (size_t)(slash + 1))));
}

int configuration_file_digest(struct str bytes, char out_digest[CONFIGURATION_DIGEST])
{
    unsigned char digest[(CONFIGURATION_DIGEST - 1) / 2];

    if (EVP_Digest(bytes.data, bytes.length, digest, NULL, EVP_sha256(), NULL) != 1)
        return -ENOMEM;
    for (size_t i = 0; i < sizeof(digest); i++)
        snprintf(out_digest + 2 * i, 3, "%02x", digest[i]);
    return 0;
}
