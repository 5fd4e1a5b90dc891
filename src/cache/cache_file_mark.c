/*
 * The end of a file of a cache: key, head and mark. Also the system calls that all cache_file*.c use.
 */
#include "cache/cache_file_private.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAGIC 0x32306863696c7573ull /* "sulich02", which includes the version of the format */

int cache_open_beneath(int directory, const char *name, int flags, mode_t mode)
{
    struct open_how how = {.flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
                           .mode = mode,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    int fd = (int)syscall(SYS_openat2, directory, name, &how, sizeof(how));

    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        fd = openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW, mode);
    return fd < 0 ? -errno : fd;
}

/* Parses 32 hexadecimal digits with dashes between them. */
static void parse_boot_id(const char *text, unsigned char into[16])
{
    size_t digits = 0;

    for (const char *c = text; *c && digits < 32; c++) {
        int digit = str_hex_digit(*c);

        if (digit >= 0 && digits % 2 == 0)
            into[digits++ / 2] = (unsigned char)(digit << 4);
        else if (digit >= 0)
            into[digits++ / 2] |= (unsigned char)digit;
    }
}

static void read_boot_id(unsigned char into[16])
{
    char text[40] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (read(fd, text, sizeof(text) - 1) > 0)
        parse_boot_id(text, into);
    close(fd);
}

void cache_boot_id(unsigned char into[16])
{
    static unsigned char known[16];
    static bool read_once; /* several threads may write it at once, with the same result */

    if (!__atomic_load_n(&read_once, __ATOMIC_ACQUIRE)) {
        unsigned char boot[16] = {0};

        read_boot_id(boot);
        memcpy(known, boot, sizeof(known));
        __atomic_store_n(&read_once, true, __ATOMIC_RELEASE);
    }
    memcpy(into, known, sizeof(known));
}

uint64_t cache_mark_sum(const struct cache_mark *mark, struct str key, struct str head)
{
    struct cache_checksum sum = {0};

    cache_checksum_add(&sum, key);
    cache_checksum_add(&sum, head);
    cache_checksum_add(&sum, str_of((const char *)mark, offsetof(struct cache_mark, sum)));
    return cache_checksum_end(&sum);
}

int cache_write_all(int fd, struct str bytes, uint64_t at)
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

int cache_read_exactly(int fd, char *into, size_t length, uint64_t at)
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

int cache_mark_write(int fd, struct cache_mark *mark, struct str key, struct str head, uint64_t at)
{
    struct buffer end = {0};
    int error;

    mark->magic = MAGIC;
    mark->key_length = (uint32_t)key.length;
    mark->head_length = (uint32_t)head.length;
    cache_boot_id(mark->boot);
    mark->sum = cache_mark_sum(mark, key, head);
    error = buffer_append(&end, key);
    if (error == 0)
        error = buffer_append(&end, head);
    if (error == 0)
        error = buffer_append(&end, str_of((const char *)mark, sizeof(*mark)));
    if (error == 0)
        error = cache_write_all(fd, buffer_str(&end), at);
    buffer_finish(&end);
    return error;
}

int cache_mark_read(int fd, const struct cache_id *id, uint64_t size, struct cache_mark *out)
{
    uint64_t before;
    int error;

    if (size < sizeof(*out))
        return -EBADMSG;
    error = cache_read_exactly(fd, (char *)out, sizeof(*out), size - sizeof(*out));
    if (error < 0)
        return error;
    before = (uint64_t)out->key_length + out->head_length;
    if (out->magic != MAGIC || memcmp(&out->id, id, sizeof(*id)) != 0 || before > LIMIT_CACHE_HEAD ||
        before + sizeof(*out) > size || out->body_length > size - sizeof(*out) - before)
        return -EBADMSG;
    return 0;
}
