/*
 * Opens, updates and deletes the files of a cache. cache_file_write.c creates them.
 */
#include "cache/cache_file_private.h"

#include "base/saturate.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads the whole body: detects data that was not on disk when the machine went down. */
static int check_body(int fd, const struct cache_mark *mark)
{
    struct cache_checksum sum = {0};
    char piece[16384];

    while (sum.length < mark->body_length) {
        uint64_t left = mark->body_length - sum.length;
        size_t length = left < sizeof(piece) ? (size_t)left : sizeof(piece);
        int error = cache_read_exactly(fd, piece, length, sum.length);

        if (error < 0)
            return error;
        cache_checksum_add(&sum, str_of(piece, length));
    }
    return cache_checksum_end(&sum) == mark->body_sum ? 0 : -EBADMSG;
}

static int read_text(struct cache_opened *opened, const struct cache_mark *mark, uint64_t size, size_t content_max)
{
    size_t text = (size_t)mark->key_length + mark->head_length;
    size_t content = mark->body_length <= content_max ? (size_t)mark->body_length : 0;
    int error = buffer_reserve(&opened->text, text + content + 1);

    if (error == 0)
        error = cache_read_exactly(opened->fd, opened->text.data, text, u64_sub_sat(size, sizeof(*mark) + text));
    if (error == 0 && content > 0)
        error = cache_read_exactly(opened->fd, opened->text.data + text, content, 0);
    if (error < 0)
        return error;
    opened->key = str_of(opened->text.data, mark->key_length);
    opened->head = str_of(opened->text.data + mark->key_length, mark->head_length);
    if (mark->body_length <= content_max)
        opened->content = str_of(opened->text.data + text, content);
    return cache_mark_sum(mark, opened->key, opened->head) == mark->sum ? 0 : -EBADMSG;
}

static int read_opened(struct cache_opened *opened, const struct cache_id *id, uint64_t size, size_t content_max)
{
    unsigned char boot[16];
    struct cache_mark mark;
    struct stat found;
    int error;

    if (fstat(opened->fd, &found) < 0)
        return -errno;
    if (!S_ISREG(found.st_mode) || (uint64_t)found.st_size < size)
        return -EBADMSG;
    size = size ? size : (uint64_t)found.st_size;
    error = cache_mark_read(opened->fd, id, size, &mark);
    if (error < 0)
        return error;
    error = read_text(opened, &mark, size, content_max);
    cache_boot_id(boot);
    if (error == 0 && memcmp(boot, mark.boot, sizeof(boot)) != 0)
        error = check_body(opened->fd, &mark);
    opened->body_length = mark.body_length;
    opened->updates = mark.updates;
    return error;
}

int cache_file_open(const struct cache_directory *directory, const struct cache_id *id, uint64_t size,
                    size_t content_max, struct cache_opened *out)
{
    struct cache_opened opened = {.fd = -1};
    char name[CACHE_NAME];
    int error;

    cache_file_name(directory, id, name);
    opened.fd = cache_open_beneath(directory->fd, name, O_RDONLY | O_NONBLOCK, 0);
    if (opened.fd < 0)
        return opened.fd;
    error = read_opened(&opened, id, size, content_max);
    if (error < 0)
        cache_opened_close(&opened);
    else
        *out = opened;
    return error;
}

int cache_file_read_start(const struct cache_directory *directory, const struct cache_id *id, uint64_t size,
                          size_t head_max, struct buffer *text, struct cache_file_start *out)
{
    char name[CACHE_NAME];
    struct cache_mark mark;
    size_t length;
    int error, fd;

    cache_file_name(directory, id, name);
    fd = cache_open_beneath(directory->fd, name, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    error = cache_mark_read(fd, id, size, &mark);
    length = error == 0 ? mark.key_length + (mark.head_length < head_max ? mark.head_length : head_max) : 0;
    text->length = 0;
    if (error == 0)
        error = buffer_reserve(text, length);
    if (error == 0)
        error = cache_read_exactly(fd, text->data, length, size - sizeof(mark) - mark.head_length - mark.key_length);
    close(fd);
    if (error < 0)
        return error;
    text->length = length;
    *out = (struct cache_file_start){.key = str_slice(buffer_str(text), 0, mark.key_length),
                                     .head = str_skip(buffer_str(text), mark.key_length),
                                     .body_length = mark.body_length};
    return 0;
}

void cache_opened_close(struct cache_opened *opened)
{
    if (opened->fd >= 0)
        close(opened->fd);
    opened->fd = -1;
    buffer_finish(&opened->text);
}

static int write_update(int fd, struct cache_zone *zone, const struct cache_id *id, const struct cache_view *known,
                        struct str head)
{
    struct cache_opened opened = {.fd = fd};
    uint64_t size = known->size;
    struct cache_mark mark;
    int error = cache_mark_read(fd, id, size, &mark);

    if (error < 0)
        return error;
    error = read_text(&opened, &mark, size, 0);
    if (error == 0 && ftruncate(fd, (off_t)size) < 0) /* removes an incomplete update of a dead process */
        error = -errno;
    mark.updates++;
    if (error == 0)
        error = cache_mark_write(fd, &mark, opened.key, head, size);
    size += opened.key.length + head.length + sizeof(mark);
    if (error == 0 && !cache_zone_grow(zone, known->node, id->sequence, size))
        error = -EBUSY;
    buffer_finish(&opened.text);
    return error;
}

int cache_file_update(const struct cache_directory *directory, struct cache_zone *zone, const struct cache_id *id,
                      const struct cache_view *known, struct str head)
{
    char name[CACHE_NAME];
    struct cache_victims none = {0};
    struct cache_view now;
    int fd, error = -EBUSY;

    cache_file_name(directory, id, name);
    fd = cache_open_beneath(directory->fd, name, O_RDWR | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && cache_zone_find(zone, &id->hash, false, 0, &now, &none) &&
        now.sequence == id->sequence && now.size == known->size)
        error = write_update(fd, zone, id, known, head);
    close(fd);
    return error;
}

int cache_file_remove_unfinished(int directory, const char *name)
{
    int fd = openat(directory, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int error;

    if (fd < 0)
        return -errno;
    error = flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(directory, name, 0) == 0 ? 0 : -errno;
    close(fd);
    return error;
}

void cache_file_delete(const struct cache_directory *directory, const struct cache_id *id)
{
    char name[CACHE_NAME];

    cache_file_name(directory, id, name);
    (void)unlinkat(directory->fd, name, 0);
}
