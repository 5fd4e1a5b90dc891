/*
 * Creates, opens and updates the files of a cache. The mark is written last, before the file is renamed to its name.
 */
#include "cache/cache_file.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAGIC 0x32306863696c7573ull /* "sulich02", which includes the version of the format */

/* The end of a file and of each update. */
struct mark {
    uint64_t magic;
    struct cache_id id;
    uint64_t body_length;
    uint64_t body_sum;
    uint32_t key_length;
    uint32_t head_length;
    uint32_t updates;
    uint32_t unused;
    unsigned char boot[16];         /* boot id: files of the current boot need no check of the body */
    uint64_t sum;                   /* over key, head, and all above */
};

_Static_assert(sizeof(struct mark) == 88, "the mark has no holes");

/* Opens a file below the directory, without following links. */
static int open_beneath(int directory, const char *name, int flags, mode_t mode)
{
    struct open_how how = {.flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
                           .mode = mode,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    int fd = (int)syscall(SYS_openat2, directory, name, &how, sizeof(how));

    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        fd = openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW, mode);
    return fd < 0 ? -errno : fd;
}

/* Reads the kernel's boot id; zeros if there is none. */
static void read_boot(unsigned char into[16])
{
    static unsigned char known[16];
    static bool read_once; /* several threads may write it at once, with the same result */
    char text[40] = "";
    size_t digits = 0;
    int fd = -1;

    if (!__atomic_load_n(&read_once, __ATOMIC_ACQUIRE)) {
        unsigned char boot[16] = {0};

        fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0) {
            for (const char *c = text; *c && digits < 32; c++) {
                int digit = str_hex_digit(*c);

                if (digit >= 0 && digits % 2 == 0)
                    boot[digits++ / 2] = (unsigned char)(digit << 4);
                else if (digit >= 0)
                    boot[digits++ / 2] |= (unsigned char)digit;
            }
        }
        if (fd >= 0)
            close(fd);
        memcpy(known, boot, sizeof(known));
        __atomic_store_n(&read_once, true, __ATOMIC_RELEASE);
    }
    memcpy(into, known, sizeof(known));
}

static uint64_t sum_of(const struct mark *mark, struct str key, struct str head)
{
    struct cache_checksum sum = {0};

    cache_checksum_add(&sum, key);
    cache_checksum_add(&sum, head);
    cache_checksum_add(&sum, str_of((const char *)mark, offsetof(struct mark, sum)));
    return cache_checksum_end(&sum);
}

/* Writes all bytes at the offset. Returns 0 or -errno. */
static int write_all(int fd, struct str bytes, uint64_t at)
{
    while (bytes.length > 0) {
        ssize_t written = pwrite(fd, bytes.data, bytes.length, (off_t)at);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? -errno : -ENOSPC;
        bytes = str_skip(bytes, (size_t)written);
        at += (uint64_t)written;
    }
    return 0;
}

/* Reads exactly `length` bytes; a shorter file is invalid. */
static int read_exactly(int fd, char *into, size_t length, uint64_t at)
{
    while (length > 0) {
        ssize_t count = pread(fd, into, length, (off_t)at);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? -errno : -EBADMSG;
        into += count;
        length -= (size_t)count;
        at += (uint64_t)count;
    }
    return 0;
}

/* Writes key, head and mark by one call, so that they are usually contiguous on disk. */
static int write_trailer(int fd, struct mark *mark, struct str key, struct str head, uint64_t at)
{
    struct buffer end = {0};
    int error;

    mark->magic = MAGIC;
    mark->key_length = (uint32_t)key.length;
    mark->head_length = (uint32_t)head.length;
    read_boot(mark->boot);
    mark->sum = sum_of(mark, key, head);
    error = buffer_append(&end, key);
    if (error == 0)
        error = buffer_append(&end, head);
    if (error == 0)
        error = buffer_append(&end, str_of((const char *)mark, sizeof(*mark)));
    if (error == 0)
        error = write_all(fd, buffer_str(&end), at);
    buffer_finish(&end);
    return error;
}

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
    int fd = open_beneath(writer->directory->fd, name, flags, 0600);
    int error;

    if (fd != -ENOENT)
        return fd;
    error = create_directories(writer->directory, name);
    return error < 0 ? error : open_beneath(writer->directory->fd, name, flags, 0600);
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
    int error = write_all(writer->fd, bytes, writer->length);

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

        error = read_exactly(from, piece, count, at);
        if (error == 0)
            error = cache_file_write(writer, str_of(piece, count));
        at += count;
        length -= count;
    }
    return error;
}

int cache_file_complete(struct cache_writer *writer, struct str key, struct str head, uint64_t *out_size)
{
    struct cache_hash own = writer->id.hash;

    return cache_file_complete_as(writer, &own, key, head, out_size);
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

int cache_file_complete_as(struct cache_writer *writer, const struct cache_hash *hash, struct str key, struct str head,
                           uint64_t *out_size)
{
    struct cache_id id = {*hash, writer->id.sequence};
    struct mark mark = {.id = id, .body_length = writer->length, .body_sum = cache_checksum_end(&writer->sum)};
    int error = write_trailer(writer->fd, &mark, key, head, writer->length);

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

/* Reads the mark that ends at `size`, and checks that its lengths fit into the bytes before it. */
static int read_mark(int fd, const struct cache_id *id, uint64_t size, struct mark *out)
{
    uint64_t before;
    int error;

    if (size < sizeof(*out))
        return -EBADMSG;
    error = read_exactly(fd, (char *)out, sizeof(*out), size - sizeof(*out));
    if (error < 0)
        return error;
    before = (uint64_t)out->key_length + out->head_length;
    if (out->magic != MAGIC || memcmp(&out->id, id, sizeof(*id)) != 0 || before > LIMIT_CACHE_HEAD ||
        before + sizeof(*out) > size || out->body_length > size - sizeof(*out) - before)
        return -EBADMSG;
    return 0;
}

/* Reads the whole body: detects data that was not on disk when the machine went down. */
static int check_body(int fd, const struct mark *mark)
{
    struct cache_checksum sum = {0};
    char piece[16384];

    while (sum.length < mark->body_length) {
        uint64_t left = mark->body_length - sum.length;
        size_t length = left < sizeof(piece) ? (size_t)left : sizeof(piece);
        int error = read_exactly(fd, piece, length, sum.length);

        if (error < 0)
            return error;
        cache_checksum_add(&sum, str_of(piece, length));
    }
    return cache_checksum_end(&sum) == mark->body_sum ? 0 : -EBADMSG;
}

static int read_text(struct cache_opened *opened, const struct mark *mark, uint64_t size, size_t content_max)
{
    size_t noted = (size_t)mark->key_length + mark->head_length;
    size_t content = mark->body_length <= content_max ? (size_t)mark->body_length : 0;
    int error = buffer_reserve(&opened->text, noted + content + 1);

    if (error == 0)
        error = read_exactly(opened->fd, opened->text.data, noted, u64_sub_sat(size, sizeof(*mark) + noted));
    if (error == 0 && content > 0)
        error = read_exactly(opened->fd, opened->text.data + noted, content, 0);
    if (error < 0)
        return error;
    opened->key = str_of(opened->text.data, mark->key_length);
    opened->head = str_of(opened->text.data + mark->key_length, mark->head_length);
    if (mark->body_length <= content_max)
        opened->content = str_of(opened->text.data + noted, content);
    return sum_of(mark, opened->key, opened->head) == mark->sum ? 0 : -EBADMSG;
}

static int read_opened(struct cache_opened *opened, const struct cache_id *id, uint64_t size, size_t content_max)
{
    unsigned char boot[16];
    struct mark mark;
    struct stat found;
    int error;

    if (fstat(opened->fd, &found) < 0)
        return -errno;
    if (!S_ISREG(found.st_mode) || (uint64_t)found.st_size < size)
        return -EBADMSG;
    size = size ? size : (uint64_t)found.st_size;
    error = read_mark(opened->fd, id, size, &mark);
    if (error < 0)
        return error;
    error = read_text(opened, &mark, size, content_max);
    read_boot(boot);
    if (error == 0 && memcmp(boot, mark.boot, sizeof(boot)) != 0)
        error = check_body(opened->fd, &mark);
    opened->body_length = mark.body_length;
    opened->updates = mark.updates;
    return error;
}

int cache_file_open(const struct cache_directory *directory, const struct cache_id *id, uint64_t size,
                    size_t content_max,
                    struct cache_opened *out)
{
    struct cache_opened opened = {.fd = -1};
    char name[CACHE_NAME];
    int error;

    cache_file_name(directory, id, name);
    opened.fd = open_beneath(directory->fd, name, O_RDONLY | O_NONBLOCK, 0);
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
    struct mark mark;
    size_t length;
    int error, fd;

    cache_file_name(directory, id, name);
    fd = open_beneath(directory->fd, name, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    error = read_mark(fd, id, size, &mark);
    length = error == 0 ? mark.key_length + (mark.head_length < head_max ? mark.head_length : head_max) : 0;
    text->length = 0;
    if (error == 0)
        error = buffer_reserve(text, length);
    if (error == 0)
        error = read_exactly(fd, text->data, length, size - sizeof(mark) - mark.head_length - mark.key_length);
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
    struct mark mark;
    int error = read_mark(fd, id, size, &mark);

    if (error < 0)
        return error;
    error = read_text(&opened, &mark, size, 0);
    if (error == 0 && ftruncate(fd, (off_t)size) < 0) /* removes an incomplete update of a dead process */
        error = -errno;
    mark.updates++;
    if (error == 0)
        error = write_trailer(fd, &mark, opened.key, head, size);
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
    fd = open_beneath(directory->fd, name, O_RDWR | O_NONBLOCK, 0);
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
