/*
 * Writes a file of a cache under a temporary name. The mark is written last, before the file is renamed to its name.
 */
#include "cache/cache_file_private.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* "NAME.tmp", locked while it is written, so that a file of a dead process is recognised. */
static void temporary_name(const struct cache_writer *writer, char into[CACHE_NAME + 32])
{
    char name[CACHE_NAME];

    cache_file_name(writer->directory, &writer->id, name);
    snprintf(into, CACHE_NAME + 32, "%s.tmp", name);
}

static int create_directories(const struct cache_directory *directory, const char *name)
{
    char path[CACHE_NAME + 32];

    for (size_t i = 0; name[i]; i++) {
        if (name[i] != '/')
            continue;
        memcpy(path, name, i);
        path[i] = '\0';
        if (mkdirat(directory->fd, path, 0700) < 0 && errno != EEXIST)
            return -errno;
    }
    return 0;
}

static int open_new(struct cache_writer *writer, const char *name)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL;
    int fd = cache_open_beneath(writer->directory->fd, name, flags, 0600);
    int error;

    if (fd != -ENOENT)
        return fd;
    error = create_directories(writer->directory, name);
    return error < 0 ? error : cache_open_beneath(writer->directory->fd, name, flags, 0600);
}

/* True if the cache manager has deleted the file before it was locked, as the temporary file of a dead process. */
static bool was_removed(int fd)
{
    struct stat found;

    return fstat(fd, &found) == 0 && found.st_nlink == 0;
}

int cache_file_create(struct cache_writer *writer)
{
    char name[CACHE_NAME + 32];

    temporary_name(writer, name);
    for (int attempt = 0; attempt < LIMIT_CACHE_ATTEMPTS; attempt++) {
        int fd = open_new(writer, name);
        if (fd < 0)
            return fd;
        writer->fd = fd;
        if (flock(fd, LOCK_EX) < 0)
            return -errno;
        if (!was_removed(fd))
            return 0;
        close(fd);
        writer->fd = -1;
    }
    return -ESTALE;
}

int cache_file_write(struct cache_writer *writer, struct str bytes)
{
    int error = cache_write_all(writer->fd, bytes, writer->length);

    if (error < 0)
        return error;
    cache_checksum_add(&writer->sum, bytes);
    writer->length += bytes.length;
    return 0;
}

int cache_file_copy(struct cache_writer *writer, int from, uint64_t at, uint64_t length)
{
    char piece[16384];
    int error = 0;

    while (length > 0 && error == 0) {
        size_t count = length < sizeof(piece) ? (size_t)length : sizeof(piece);

        error = cache_read_exactly(from, piece, count, at);
        if (error == 0)
            error = cache_file_write(writer, str_of(piece, count));
        at += count;
        length -= count;
    }
    return error;
}

/*
 * Renames the file to the name of `id`. Directories are created if missing: the hash may differ from that at
 * creation.
 */
static int rename_to_final_name(const struct cache_writer *writer, const struct cache_id *id)
{
    char temporary[CACHE_NAME + 32];
    char name[CACHE_NAME];
    int directory = writer->directory->fd, error;

    temporary_name(writer, temporary);
    cache_file_name(writer->directory, id, name);
    if (renameat(directory, temporary, directory, name) == 0)
        return 0;
    error = errno == ENOENT ? create_directories(writer->directory, name) : -errno;
    if (error < 0)
        return error;
    return renameat(directory, temporary, directory, name) < 0 ? -errno : 0;
}

int cache_file_complete(struct cache_writer *writer, const struct cache_hash *hash, struct str key, struct str head,
                        uint64_t *out_size)
{
    struct cache_id id = {*hash, writer->id.sequence};
    struct cache_mark mark = {.id = id, .body_length = writer->length, .body_sum = cache_checksum_end(&writer->sum)};
    int error = cache_mark_write(writer->fd, &mark, key, head, writer->length);

    if (error == 0)
        error = rename_to_final_name(writer, &id);
    if (error < 0)
        return error;
    close(writer->fd);
    writer->fd = -1;
    writer->id = id;
    *out_size = writer->length + key.length + head.length + sizeof(mark);
    return 0;
}

void cache_file_discard(struct cache_writer *writer)
{
    char name[CACHE_NAME + 32];

    if (writer->fd < 0)
        return;
    temporary_name(writer, name);
    (void)unlinkat(writer->directory->fd, name, 0);
    close(writer->fd);
    writer->fd = -1;
}
