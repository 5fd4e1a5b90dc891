#include "http/body.h"

#include "base/list.h"
#include "suite.h"

#include <errno.h>

static struct arena arena;
static int woken;
static int released;

static void wake(void *owner)
{
    woken++;
}

static void release(void *resource)
{
    ck_assert_ptr_eq(resource, &released);
    released++;
}

/* Reads the body as bytes into `into`, `room` bytes at a time; returns the last result of next. */
static int read_body(struct body *body, size_t room, char *into)
{
    struct chunk chunk;
    int result;

    while ((result = body->ops->next(body, CHUNK_BYTES, room, &chunk)) == 1) {
        ck_assert_int_eq(chunk.kind, CHUNK_BYTES);
        ck_assert_uint_gt(chunk.bytes.length, 0);
        ck_assert_uint_le(chunk.bytes.length, room);
        strncat(into, chunk.bytes.data, chunk.bytes.length);
    }
    return result;
}

START_TEST(bodies_of_bytes_are_read_in_pieces_of_any_size)
{
    for (size_t room = 1; room < 8; room++) {
        char seen[20] = "";
        struct body *body;

        arena_init(&arena, NULL, 0);
        body = body_bytes(&arena, STR("abcdef"));
        ck_assert_uint_eq(body->length, 6);
        ck_assert_int_eq(read_body(body, room, seen), 0);
        ck_assert_str_eq(seen, "abcdef");
        ck_assert_uint_eq(body->length, 0);
        body_close(&body);
        ck_assert_ptr_null(body);
        body_close(&body);
        body = body_empty();
        ck_assert_uint_eq(body->length, 0);
        ck_assert_int_eq(read_body(body, room, seen), 0);
        body_close(&body);
        arena_reset(&arena);
    }
    arena_init(&arena, NULL, 1);
    ck_assert_ptr_null(body_bytes(&arena, STR("a")));
    ck_assert_ptr_null(body_file(&arena, 0, 0, 1, release, &released));
    ck_assert_ptr_null(body_concat(&arena, NULL, 0));
}
END_TEST

START_TEST(referenced_bytes_are_released_at_close)
{
    for (size_t room = 1; room < 8; room++) {
        char seen[20] = "";
        struct body *body;

        arena_init(&arena, NULL, 0);
        released = 0;
        body = body_referenced(&arena, STR("abcdef"), release, &released);
        ck_assert_uint_eq(body->length, 6);
        ck_assert_int_eq(read_body(body, room, seen), 0);
        ck_assert_str_eq(seen, "abcdef");
        ck_assert_int_eq(released, 0);
        body_close(&body);
        ck_assert_int_eq(released, 1);
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(file_body_is_one_span_released_at_close)
{
    struct chunk chunk;
    struct body *body;

    released = 0;
    arena_init(&arena, NULL, 0);
    body = body_file(&arena, 77, 5000000000, 6000000000, release, &released);
    ck_assert_uint_eq(body->length, 6000000000);
    ck_assert_int_eq(body->ops->next(body, CHUNK_BYTES, 100, &chunk), -ENOTSUP);
    ck_assert_int_eq(body->ops->next(body, CHUNK_BYTES | CHUNK_FILE, 100, &chunk), 1);
    ck_assert_int_eq(chunk.kind, CHUNK_FILE);
    ck_assert_int_eq(chunk.file.fd, 77);
    ck_assert_int_eq(chunk.file.at, 5000000000);
    ck_assert_uint_eq(chunk.file.length, 6000000000);
    ck_assert_int_eq(body->ops->next(body, CHUNK_BYTES | CHUNK_FILE, 100, &chunk), 0);
    ck_assert_int_eq(released, 0);
    body_close(&body);
    ck_assert_int_eq(released, 1);
    arena_reset(&arena);
}
END_TEST

/* Reads from a constant, and completes at once or later. */
struct fake_reader {
    struct body_reader reader;
    struct str content;
    bool later;
    int error;
    struct body_read *waiting;
    int cancelled;
};

static int fake_fill(struct fake_reader *fake, struct body_read *read)
{
    struct str part = str_slice(fake->content, (size_t)read->at, (size_t)read->at + read->length);

    if (fake->error)
        return fake->error;
    if (part.length)
        memcpy(read->into, part.data, part.length);
    return (int)part.length;
}

static int fake_read(struct body_reader *reader, struct body_read *read)
{
    struct fake_reader *fake = container_of(reader, struct fake_reader, reader);

    if (!fake->later)
        return fake_fill(fake, read);
    ck_assert_ptr_null(fake->waiting);
    fake->waiting = read;
    return -EAGAIN;
}

static void fake_cancel(struct body_reader *reader, struct body_read *read)
{
    struct fake_reader *fake = container_of(reader, struct fake_reader, reader);

    ck_assert_ptr_eq(fake->waiting, read);
    fake->cancelled++;
}

static void fake_finish(struct fake_reader *fake)
{
    struct body_read *read = fake->waiting;

    fake->waiting = NULL;
    body_read_done(read, fake_fill(fake, read));
}

static struct body *file_read_by(struct fake_reader *fake, uint64_t length)
{
    struct body *body = body_file(&arena, 3, 2, length, release, &released);

    released = woken = 0;
    fake->reader = (struct body_reader){fake_read, fake_cancel};
    body_file_read_with(body, &fake->reader);
    body->wake = wake;
    return body;
}

START_TEST(file_is_read_up_to_its_length_or_fails)
{
    struct fake_reader fake = {.content = STR("..abcdefghij..")};
    char seen[20] = "";
    struct body *body;

    arena_init(&arena, NULL, 0);
    body = file_read_by(&fake, 10);
    ck_assert_int_eq(read_body(body, 3, seen), 0);
    ck_assert_str_eq(seen, "abcdefghij");
    ck_assert_int_eq(released, 0);
    body_close(&body);
    ck_assert_int_eq(released, 1);

    /* shorter than its declared length */
    seen[0] = '\0';
    body = file_read_by(&fake, 100);
    ck_assert_int_eq(read_body(body, 50, seen), -EIO);
    ck_assert_str_eq(seen, "abcdefghij..");
    body_close(&body);
    fake.error = -EIO;
    body = file_read_by(&fake, 10);
    ck_assert_int_eq(read_body(body, 50, seen), -EIO);
    body_close(&body);
    arena_reset(&arena);
}
END_TEST

START_TEST(file_reads_that_complete_later)
{
    struct fake_reader fake = {.content = STR("..abcdefghij.."), .later = true};
    char seen[20] = "";
    struct chunk chunk;
    struct body *body;

    arena_init(&arena, NULL, 0);
    body = file_read_by(&fake, 10);
    for (int i = 1; read_body(body, 4, seen) == -EAGAIN; i++) {
        /* another call before completion returns -EAGAIN and starts no second read */
        ck_assert_int_eq(body->ops->next(body, CHUNK_BYTES, 4, &chunk), -EAGAIN);
        ck_assert_int_eq(woken, i - 1);
        fake_finish(&fake);
        ck_assert_int_eq(woken, i);
    }
    ck_assert_str_eq(seen, "abcdefghij");
    body_close(&body);
    ck_assert_int_eq(released, 1);

    /* a completed read is not lost when the caller changes to file spans */
    body = file_read_by(&fake, 10);
    ck_assert_int_eq(body->ops->next(body, CHUNK_BYTES, 4, &chunk), -EAGAIN);
    fake_finish(&fake);
    ck_assert_int_eq(body->ops->next(body, CHUNK_BYTES | CHUNK_FILE, 4, &chunk), 1);
    ck_assert_int_eq(chunk.kind, CHUNK_BYTES);
    ck_assert_uint_eq(chunk.bytes.length, 4);
    ck_assert_int_eq(body->ops->next(body, CHUNK_BYTES | CHUNK_FILE, 4, &chunk), 1);
    ck_assert_int_eq(chunk.kind, CHUNK_FILE);
    ck_assert_int_eq(chunk.file.at, 6);
    ck_assert_uint_eq(chunk.file.length, 6);
    body_close(&body);

    /* with less room than at the start of the read: the next calls return the rest, then file spans */
    body = file_read_by(&fake, 10);
    ck_assert_int_eq(body->ops->next(body, CHUNK_BYTES, 6, &chunk), -EAGAIN);
    fake_finish(&fake);
    ck_assert_int_eq(body->ops->next(body, CHUNK_BYTES, 4, &chunk), 1);
    ck_assert_mem_eq(chunk.bytes.data, "abcd", 4);
    ck_assert_uint_eq(chunk.bytes.length, 4);
    ck_assert_uint_eq(body->length, 6);
    ck_assert_int_eq(body->ops->next(body, CHUNK_BYTES | CHUNK_FILE, 4, &chunk), 1);
    ck_assert_uint_eq(chunk.bytes.length, 2);
    ck_assert_mem_eq(chunk.bytes.data, "ef", 2);
    ck_assert_int_eq(body->ops->next(body, CHUNK_BYTES | CHUNK_FILE, 4, &chunk), 1);
    ck_assert_int_eq(chunk.kind, CHUNK_FILE);
    ck_assert_int_eq(chunk.file.at, 8);
    body_close(&body);

    /* an error after -EAGAIN */
    body = file_read_by(&fake, 10);
    ck_assert_int_eq(body->ops->next(body, CHUNK_BYTES, 4, &chunk), -EAGAIN);
    fake.error = -EBADF;
    fake_finish(&fake);
    ck_assert_int_eq(body->ops->next(body, CHUNK_BYTES, 4, &chunk), -EBADF);
    body_close(&body);
    arena_reset(&arena);
}
END_TEST

START_TEST(file_closed_while_reading)
{
    struct fake_reader fake = {.content = STR("..abcdefghij.."), .later = true};
    struct chunk chunk;
    struct body *body;

    arena_init(&arena, NULL, 0);
    body = file_read_by(&fake, 10);
    ck_assert_int_eq(body->ops->next(body, CHUNK_BYTES, 4, &chunk), -EAGAIN);
    body_close(&body);
    arena_reset(&arena);
    ck_assert_int_eq(fake.cancelled, 1);
    ck_assert_int_eq(released, 0);
    fake_finish(&fake);
    ck_assert_int_eq(released, 1);
    ck_assert_int_eq(woken, 0);
}
END_TEST

START_TEST(concatenated_bodies_keep_their_order)
{
    for (size_t room = 1; room < 12; room++) {
        struct body *parts[5];
        struct body *body;
        char seen[40] = "";

        arena_init(&arena, NULL, 0);
        parts[0] = body_bytes(&arena, STR("abc"));
        parts[1] = body_empty();
        parts[2] = body_bytes(&arena, STR(""));
        parts[3] = body_bytes(&arena, STR("defgh"));
        parts[4] = body_bytes(&arena, STR("i"));
        body = body_concat(&arena, parts, 5);
        ck_assert_uint_eq(body->length, 9);
        ck_assert_int_eq(read_body(body, room, seen), 0);
        ck_assert_str_eq(seen, "abcdefghi");
        ck_assert_uint_eq(body->length, 0);
        body_close(&body);
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(concat_wakes_and_closes)
{
    struct fake_reader fake = {.content = STR("..abcdefghij.."), .later = true};
    struct body *parts[3];
    struct body *body;
    char seen[40] = "";

    arena_init(&arena, NULL, 0);
    parts[0] = body_bytes(&arena, STR("<"));
    parts[1] = file_read_by(&fake, 3);
    parts[2] = body_file(&arena, 9, 0, BODY_LENGTH_UNKNOWN, release, &released);
    body = body_concat(&arena, parts, 3);
    body->wake = wake;
    ck_assert_uint_eq(body->length, BODY_LENGTH_UNKNOWN);
    ck_assert_int_eq(read_body(body, 10, seen), -EAGAIN);
    fake_finish(&fake);
    ck_assert_int_eq(woken, 1);
    ck_assert_int_eq(read_body(body, 10, seen), -ENOTSUP);
    ck_assert_str_eq(seen, "<abc");
    ck_assert_int_eq(released, 1);
    body_close(&body);
    ck_assert_int_eq(released, 2);
    arena_reset(&arena);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        bodies_of_bytes_are_read_in_pieces_of_any_size, referenced_bytes_are_released_at_close,
        file_body_is_one_span_released_at_close, file_is_read_up_to_its_length_or_fails, file_reads_that_complete_later,
        file_closed_while_reading, concatenated_bodies_keep_their_order, concat_wakes_and_closes,
    };

    return suite_run("body", tests, COUNT(tests));
}
