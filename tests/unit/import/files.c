/* A file system in memory, for the importer. */
#include "files.h"

#include <errno.h>

static int read_file(void *owner, struct arena *arena, struct str path, struct str *out_text)
{
    for (const struct memory_file *file = owner; file->path; file++) {
        if (str_equal(str_from(file->path), path)) {
            *out_text = str_from(file->text);
            return 0;
        }
    }
    return -ENOENT;
}

static int match_files(void *owner, struct arena *arena, struct str pattern, struct str **out_paths,
                       size_t *out_count)
{
    ssize_t star = str_find(pattern, '*');
    size_t count = 0;

    for (const struct memory_file *file = owner; file->path; file++)
        count++;
    *out_paths = arena_zalloc(arena, count + 1, sizeof(**out_paths));
    if (!*out_paths)
        return -ENOMEM;
    *out_count = 0;
    for (const struct memory_file *file = owner; file->path; file++) {
        struct str path = str_from(file->path);

        if (star < 0 ? str_equal(path, pattern) : str_starts(path, str_slice(pattern, 0, (size_t)star)))
            (*out_paths)[(*out_count)++] = path;
    }
    return 0;
}

struct nginx_files memory_files(const struct memory_file *rows)
{
    return (struct nginx_files){.read = read_file, .match = match_files, .owner = (void *)(uintptr_t)rows};
}
