/*
 * `etag: hash`: the ETag is a hash of the content: identical on all machines and independent of the modification
 * time. A helper thread reads the file once; the file cache entry keeps the hash.
 */
#include "static.h"

#include "base/limits.h"

#include <errno.h>
#include <openssl/evp.h>
#include <unistd.h>

static int digest_file(EVP_MD_CTX *hash, int fd, uint64_t size)
{
    unsigned char piece[LIMIT_FILE_WINDOW];
    uint64_t at = 0;

    while (at < size) {
        ssize_t count = pread(fd, piece, sizeof(piece), (off_t)at);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? -errno : -EIO; /* the file was truncated */
        if (EVP_DigestUpdate(hash, piece, (size_t)count) != 1)
            return -ENOMEM;
        at += (uint64_t)count;
    }
    return 0;
}

int static_digest(const struct file_entry *entry, unsigned char out[STATIC_DIGEST])
{
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    unsigned char whole[EVP_MAX_MD_SIZE];
    int error = hash && EVP_DigestInit_ex(hash, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;

    if (error == 0 && entry->content.data)
        error = EVP_DigestUpdate(hash, entry->content.data, entry->content.length) == 1 ? 0 : -ENOMEM;
    else if (error == 0)
        error = digest_file(hash, entry->fd, (uint64_t)entry->stat.st_size);
    if (error == 0 && EVP_DigestFinal_ex(hash, whole, NULL) != 1)
        error = -ENOMEM;
    EVP_MD_CTX_free(hash);
    if (error == 0)
        memcpy(out, whole, STATIC_DIGEST);
    return error;
}
