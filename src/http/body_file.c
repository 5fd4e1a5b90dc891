/*
 * The body of a file: returns the span, or bytes from the server's reader. It uses no descriptor itself.
 */
#include "http/body.h"

#include "base/limits.h"
#include "base/list.h"
#include "base/saturate.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Memory for reading a span, outside the arena. If the body is closed during a read, the window and `resource` are
 * released in body_read_done.
 */
struct file_window {
    struct body_read read;
    struct file_body *file;         /* NULL once the body is closed */
    void (*released)(void *resource);
    void *resource;
    bool reading;
    int result;                     /* of a completed read, until next has returned all of it; -EAGAIN: none */
    size_t pulled;
    char bytes[LIMIT_FILE_WINDOW];
};

struct file_body {
    struct body body;
    int fd;
    int64_t at;
    struct body_reader *reader;
    struct file_window *window;     /* allocated when bytes are first requested */
    void (*released)(void *resource);
    void *resource;
};

static int file_next_span(struct file_body *file, struct chunk *out)
{
    *out = (struct chunk){.kind = CHUNK_FILE, .file = {.fd = file->fd, .at = file->at, .length = file->body.length}};
    file->at += (int64_t)file->body.length;
    file->body.length = 0;
    return 1;
}

/* Returns at most `room` of the bytes that were read. -errno if the file ended early. */
static int file_next_read(struct file_body *file, size_t room, struct chunk *out)
{
    struct file_window *window = file->window;
    int count = window->result;
    size_t left = count > 0 ? size_sub_sat((size_t)count, window->pulled) : 0;

    if (count <= 0) {
        window->result = -EAGAIN;
        return count < 0 ? count : -EIO;
    }
    if (room > left)
        room = left;
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = str_of(window->bytes + window->pulled, room)};
    window->pulled += room;
    if (room == left)
        window->result = -EAGAIN;
    file->at += (int64_t)room;
    file->body.length = u64_sub_sat(file->body.length, room);
    return 1;
}

static int file_next_bytes(struct file_body *file, size_t room, struct chunk *out)
{
    struct file_window *window = file->window;
    int result;

    if (!file->reader)
        return -ENOTSUP;
    if (!window) {
        window = file->window = malloc(sizeof(*window));
        if (!window)
            return -ENOMEM;
        window->file = file;
        window->reading = false;
        window->result = -EAGAIN;
    }
    if (window->reading)
        return -EAGAIN;
    if (window->result != -EAGAIN)
        return file_next_read(file, room, out);
    if (room > sizeof(window->bytes))
        room = sizeof(window->bytes);
    if (room > file->body.length)
        room = (size_t)file->body.length;
    window->read = (struct body_read){
        .fd = file->fd, .at = file->at, .into = window->bytes, .length = room, .rest = file->body.length};
    window->reading = true;
    window->pulled = 0;
    result = file->reader->read(file->reader, &window->read);
    if (result == -EAGAIN)
        return -EAGAIN;
    window->reading = false;
    window->result = result;
    return file_next_read(file, room, out);
}

static int file_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct file_body *file = container_of(body, struct file_body, body);

    if (body->length == 0)
        return 0;
    if ((accept & CHUNK_FILE) &&
        !(file->window && (file->window->reading || file->window->result != -EAGAIN)))
        return file_next_span(file, out);
    return file_next_bytes(file, room, out);
}

static void file_close(struct body *body)
{
    struct file_body *file = container_of(body, struct file_body, body);
    struct file_window *window = file->window;

    if (window && window->reading) {
        window->file = NULL;
        window->released = file->released;
        window->resource = file->resource;
        if (file->reader->cancel)
            file->reader->cancel(file->reader, &window->read);
        return;
    }
    free(window);
    if (file->released)
        file->released(file->resource);
}

void body_read_done(struct body_read *read, int result)
{
    struct file_window *window = container_of(read, struct file_window, read);
    struct file_body *file = window->file;

    window->reading = false;
    if (!file) {
        if (window->released)
            window->released(window->resource);
        free(window);
        return;
    }
    window->result = result == -EAGAIN ? -EIO : result;
    if (file->body.wake)
        file->body.wake(file->body.owner);
}

struct body *body_file(struct arena *arena, int fd, int64_t at, uint64_t length, void (*released)(void *resource),
                       void *resource)
{
    static const struct body_ops ops = {.next = file_next, .close = file_close};
    struct file_body *file = arena_alloc(arena, sizeof(*file));

    if (!file)
        return NULL;
    *file = (struct file_body){
        .body = {.ops = &ops, .length = length}, .fd = fd, .at = at, .released = released, .resource = resource};
    return &file->body;
}

void body_file_read_with(struct body *body, struct body_reader *reader)
{
    container_of(body, struct file_body, body)->reader = reader;
}
