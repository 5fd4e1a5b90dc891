/*
 * The file system, for includes.
 */
#include "import/nginx_tree.h"

#include "base/buffer.h"
#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_to_end(int fd, struct buffer *into)
{
    for (;;) {
        ssize_t count;

        if (buffer_reserve(into, 65536) < 0)
            return -ENOMEM;
        count = read(fd, into->data + into->length, 65536);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? -errno : 0;
        into->length += (size_t)count;
        if (into->length > LIMIT_CONF_FILE)
            return -EFBIG;
    }
}

static int read_nginx_file(void *owner, struct arena *arena, struct str path, struct str *out_text)
{
    struct str name = arena_copy(arena, path);
    struct buffer text = {0};
    int fd = name.data ? open(name.data, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    int error = !name.data ? -ENOMEM : fd < 0 ? -errno : read_to_end(fd, &text);

    if (fd >= 0)
        close(fd);
    if (error == 0) {
        *out_text = arena_copy(arena, buffer_str(&text));
        error = out_text->data ? 0 : -ENOMEM;
    }
    buffer_finish(&text);
    return error;
}

static int match_files(void *owner, struct arena *arena, struct str pattern, struct str **out_paths,
                       size_t *out_count)
{
    struct str name = arena_copy(arena, pattern);
    glob_t found = {0};
    int result = name.data ? glob(name.data, 0, NULL, &found) : GLOB_NOSPACE;
    int error = result == GLOB_NOSPACE ? -ENOMEM : result && result != GLOB_NOMATCH ? -EIO : 0;

    *out_count = result == 0 ? found.gl_pathc : 0;
    *out_paths = arena_zalloc(arena, *out_count + 1, sizeof(**out_paths));
    if (error == 0 && !*out_paths)
        error = -ENOMEM;
    for (size_t i = 0; i < *out_count && error == 0; i++) {
        (*out_paths)[i] = arena_copy(arena, str_from(found.gl_pathv[i]));
        error = (*out_paths)[i].data ? 0 : -ENOMEM;
    }
    globfree(&found);
    return error;
}

const struct nginx_files nginx_files_of_system = {.read = read_nginx_file, .match = match_files};
