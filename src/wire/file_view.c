/*
 * Maps files for sending. Views grow as sendfile's windows do: while a file is in the page cache, a large one costs few
 * calls.
 */
#include "wire/file_view.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void file_view_release(struct wire_shared *shared, struct file_view **view)
{
    struct file_view *released = *view;

    *view = NULL;
    if (!released || --released->references > 0)
        return;
    (void)munmap(released->mapping, released->mapping_length);
    free(released);
    shared->file_views--;
}

static struct file_view *map_view(struct wire_shared *shared, int fd, int64_t at, size_t length)
{
    size_t before = (size_t)at % (size_t)getpagesize();
    struct file_view *view;
    void *mapping;

    if (shared->file_views >= LIMIT_FILE_VIEWS)
        return NULL;
    view = malloc(sizeof *view);
    if (!view)
        return NULL;
    mapping = mmap(NULL, before + length, PROT_READ, MAP_SHARED, fd, (off_t)at - (off_t)before);
    if (mapping == MAP_FAILED) { /* the file system has no mappings, or the process has too many */
        free(view);
        return NULL;
    }
    *view = (struct file_view){.references = 1,
                               .fd = fd,
                               .at = at,
                               .length = length,
                               .checked_ms = shared->loop->clock.monotonic_ms,
                               .bytes = (const char *)mapping + before,
                               .mapping = mapping,
                               .mapping_length = before + length};
    shared->file_views++;
    return view;
}

bool file_view_has(const struct file_view *view, int fd, int64_t at, size_t length)
{
    return view && view->fd == fd && at >= view->at && length <= view->length &&
           (uint64_t)(at - view->at) <= view->length - length;
}

/* Probes the rest of an old view again, since pages may have been evicted. */
static bool is_fresh(const struct wire_shared *shared, struct file_view *view, int64_t at)
{
    uint64_t now = shared->loop->clock.monotonic_ms;

    if (u64_sub_sat(now, view->checked_ms) < LIMIT_FILE_VIEW_CHECK_MS)
        return true;
    view->checked_ms = now;
    return loop_is_cached(view->fd, at, view->length - (size_t)(at - view->at));
}

static size_t next_length(const struct file_view *before, size_t length, uint64_t run)
{
    uint64_t max = before ? 8 * (uint64_t)before->length : LIMIT_FILE_VIEW_FIRST;

    if (max > LIMIT_FILE_VIEW)
        max = LIMIT_FILE_VIEW;
    if (max > run)
        max = run;
    return max < length ? length : (size_t)max;
}

const char *file_view_cover(struct wire_shared *shared, struct file_view **view, int fd, int64_t at, size_t length,
                            uint64_t run)
{
    size_t mapped;

    if (file_view_has(*view, fd, at, length) && is_fresh(shared, *view, at))
        return (*view)->bytes + (at - (*view)->at);
    mapped = next_length(*view, length, run);
    file_view_release(shared, view);
    if (at < 0 || !loop_is_cached(fd, at, mapped))
        return NULL;
    *view = map_view(shared, fd, at, mapped);
    return *view ? (*view)->bytes : NULL;
}
