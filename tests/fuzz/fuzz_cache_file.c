/*
 * Files of the cache. The first byte of the input selects the file: the bytes themselves (0), a stored response with
 * the bytes as key, head and body (1), or that file with other bytes at its end (2). A file that opens has the key,
 * the head and the body that were stored; its head is a response or is rejected.
 */
#include "fuzz.h"

#include "cache/cache_file.h"
#include "http/h1_parse.h"
#include "modules/gateway/cache/response_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { RAW, STORED, CHANGED, CONTENT_MAX = 64 };

static struct cache_directory directory = {.fd = -1};
static char path[64];
static const struct cache_id id = {.hash = {{1, 2, 3}}, .sequence = 1};

static void remove_directory(void)
{
    cache_file_delete(&directory, &id);
    rmdir(path);
}

static void set_up(void)
{
    /* In memory, if possible: a search runs 500 times faster there than on a disk. */
    snprintf(path, sizeof(path), "%s/sluice-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    HOLDS(mkdtemp(path));
    directory.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    HOLDS(directory.fd >= 0);
    HOLDS(atexit(remove_directory) == 0);
}

static void write_raw(struct str bytes)
{
    char name[CACHE_NAME];
    int fd;

    cache_file_name(&directory, &id, name);
    fd = openat(directory.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    HOLDS(fd >= 0 && pwrite(fd, bytes.data, bytes.length, 0) == (ssize_t)bytes.length);
    close(fd);
}

static uint64_t store(struct str key, struct str head, struct str body)
{
    struct cache_writer making = {.directory = &directory, .id = id, .fd = -1};
    uint64_t size;

    HOLDS(cache_file_create(&making) == 0 && cache_file_write(&making, body) == 0);
    HOLDS(cache_file_complete(&making, &id.hash, key, head, &size) == 0);
    return size;
}

/* XORs the end of the file with the bytes. */
static void change_end(uint64_t size, struct str bytes)
{
    char name[CACHE_NAME], end[512];
    size_t count = bytes.length < sizeof(end) ? bytes.length : sizeof(end);
    int fd;

    count = count < size ? count : (size_t)size;
    cache_file_name(&directory, &id, name);
    fd = openat(directory.fd, name, O_RDWR | O_CLOEXEC);
    HOLDS(fd >= 0 && pread(fd, end, count, (off_t)(size - count)) == (ssize_t)count);
    for (size_t i = 0; i < count; i++)
        end[i] ^= bytes.data[i];
    HOLDS(pwrite(fd, end, count, (off_t)(size - count)) == (ssize_t)count);
    close(fd);
}

/* Parses a head as a stored response: its fields are slices of the head. */
static void read_head(struct str head)
{
    struct cache_entry entry = {.head = head};
    const struct stored_response *stored = stored_response_of(&entry, 784111777);

    if (!stored)
        return;
    for (unsigned i = 0; i < stored->headers.count; i++) {
        const struct header *field = &stored->headers.items[i];

        HOLDS(field->name.data >= head.data && field->name.length <= head.length);
        HOLDS(field->value.data + field->value.length <= head.data + head.length);
        HOLDS(h1_is_token(field->name) && h1_is_value(field->value));
    }
    HOLDS(h1_is_value(stored->reason));
    free(entry.parsed);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct str rest = str_of((const char *)bytes, size);
    struct str key, head, body;
    struct cache_opened opened;
    uint64_t length;
    int error;

    if (directory.fd < 0)
        set_up();
    if (size < 4 || size > 4096)
        return 0;
    rest = str_skip(rest, 4);
    if (bytes[0] % 3 == RAW) {
        write_raw(rest);
        error = cache_file_open(&directory, &id, 0, CONTENT_MAX, &opened);
        HOLDS(error == 0 || error == -EBADMSG);
        if (error == 0)
            cache_opened_close(&opened);
        read_head(rest);
        return 0;
    }
    key = str_slice(rest, 0, bytes[1]);
    rest = str_skip(rest, key.length);
    head = str_slice(rest, 0, bytes[2] * 4u);
    body = str_skip(rest, head.length);
    length = store(key, head, body);
    if (bytes[0] % 3 == CHANGED)
        change_end(length, body);
    error = cache_file_open(&directory, &id, bytes[3] ? length : 0, CONTENT_MAX, &opened);
    HOLDS(error == 0 || (error == -EBADMSG && bytes[0] % 3 == CHANGED));
    if (error < 0)
        return 0;
    HOLDS(str_equal(opened.key, key) && str_equal(opened.head, head) && opened.body_length == body.length);
    HOLDS(opened.content.data ? str_equal(opened.content, body) : body.length > CONTENT_MAX);
    read_head(opened.head);
    cache_opened_close(&opened);
    return 0;
}
