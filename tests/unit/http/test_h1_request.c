#include "http/h1_request.h"

#include "suite.h"

#include <errno.h>
#include <stdio.h>

static struct arena arena;

static const struct {
    const char *method, *target, *name, *value;
    const char *connection;
    bool send_content_length;
    uint64_t content_length;
    const char *written; /* NULL: rejected */
} heads[] = {
    {"GET", "/", "Host", "a", "", false, 0, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"GET", "/a?b=%20", "Host", "a", "close", false, 0,
     "GET /a?b=%20 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"},
    {"POST", "/", "Host", "a", "", true, 0, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"},
    {"PUT", "/", "Host", "a", "", true, 18, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 18\r\n\r\n"},
    {"PUT", "/", "Host", "a", "", true, BODY_LENGTH_UNKNOWN,
     "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {"GET", "/", "Content-Length", "7", "", false, 0, "GET / HTTP/1.1\r\n\r\n"},
    {"GET", "/", "Transfer-Encoding", "chunked", "", false, 0, "GET / HTTP/1.1\r\n\r\n"},
    {"GET", "/", "Connection", "X-A", "", false, 0, "GET / HTTP/1.1\r\n\r\n"},
    {"GET", "/a b", "Host", "a", "", false, 0, NULL},
    {"GET", "/a\r\nX: y", "Host", "a", "", false, 0, NULL},
    {"GET", "/a\tb", "Host", "a", "", false, 0, NULL},
    {"GET", "", "Host", "a", "", false, 0, NULL},
    {"", "/", "Host", "a", "", false, 0, NULL},
    {"G T", "/", "Host", "a", "", false, 0, NULL},
    {"GET", "/", "Host", "a\r\nX: y", "", false, 0, "GET / HTTP/1.1\r\nHost: a  X: y\r\n\r\n"},
    {"GET", "/", "Ho st", "a", "", false, 0, NULL},
    {"GET", "/", "", "a", "", false, 0, NULL},
    {"GET", "/", "Host", "a", "x\r\ny", false, 0, NULL},
};

START_TEST(heads_are_written_or_rejected)
{
    for (size_t i = 0; i < COUNT(heads); i++) {
        struct headers headers = {0};
        struct h1_request_head head = {.method = str_from(heads[i].method),
                                       .target = str_from(heads[i].target),
                                       .headers = &headers,
                                       .connection = str_from(heads[i].connection),
                                       .send_content_length = heads[i].send_content_length,
                                       .content_length = heads[i].content_length};
        struct str fault = {0};
        struct str bytes = {0};
        int result;

        arena_init(&arena, NULL, 0);
        ck_assert_int_eq(headers_add(&headers, &arena, str_from(heads[i].name), str_from(heads[i].value)), 0);
        result = h1_write_request(&arena, &head, &fault, &bytes);
        if (heads[i].written) {
            ck_assert_int_eq(result, 0);
            ck_assert_text(bytes, heads[i].written);
        } else {
            ck_assert_msg(result == -EINVAL, "%zu: written", i);
            ck_assert_ptr_nonnull(fault.data);
        }
        arena_reset(&arena);
    }
}
END_TEST

/* Returns its pieces one by one; an empty piece stands for -EAGAIN. */
struct pieces {
    struct body body;
    const char *const *next;
};

static int next_piece(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct pieces *pieces = (struct pieces *)(void *)body;
    const char *piece = *pieces->next;

    if (!piece)
        return 0;
    pieces->next++;
    if (!*piece)
        return -EAGAIN;
    if (strcmp(piece, "broken") == 0)
        return -ECONNRESET;
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = str_from(piece)};
    return 1;
}

static const struct body_ops piece_ops = {.next = next_piece};

/* Returns the whole output, `room` bytes at a time; "|" marks -EAGAIN, "!" an error. */
static struct str send_all(bool chunked, const char *const *parts, struct headers *trailers, size_t room)
{
    struct pieces pieces = {{.ops = &piece_ops}, parts};
    struct h1_request request = {.pending = STR("HEAD."),
                                 .body = &pieces.body,
                                 .arena = &arena,
                                 .trailers = trailers,
                                 .chunked = chunked};
    struct str sent = STR("");
    struct chunk chunk;
    int result;

    while ((result = h1_request_next(&request, room, &chunk)) != 0) {
        struct str more = result == 1 ? chunk.bytes : result == -EAGAIN ? STR("|") : STR("!");

        ck_assert_uint_le(more.length, room);
        sent = arena_printf(&arena, STR_FMT STR_FMT, STR_ARG(sent), STR_ARG(more));
        if (result < 0 && result != -EAGAIN)
            break;
    }
    return sent;
}

START_TEST(bodies_are_framed)
{
    const char *const parts[] = {"hello", "", ", world", NULL};
    const char *const broken[] = {"hello", "broken", NULL};
    const char *const none[] = {NULL};

    for (size_t room = 1; room < 30; room++) {
        struct headers trailers = {0};

        arena_init(&arena, NULL, 0);
        ck_assert_text(send_all(false, parts, &trailers, room), "HEAD.hello|, world");
        ck_assert_text(send_all(true, parts, &trailers, room),
                       "HEAD.5\r\nhello\r\n|7\r\n, world\r\n0\r\n\r\n");
        ck_assert_text(send_all(true, none, &trailers, room), "HEAD.0\r\n\r\n");
        ck_assert_text(send_all(true, broken, &trailers, room), "HEAD.5\r\nhello\r\n!");
        ck_assert_int_eq(headers_add(&trailers, &arena, STR("X-T"), STR("v")), 0);
        ck_assert_text(send_all(true, none, &trailers, room), "HEAD.0\r\nX-T: v\r\n\r\n");
        ck_assert_text(send_all(false, none, &trailers, room), "HEAD.");
        arena_reset(&arena);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {heads_are_written_or_rejected, bodies_are_framed};

    return suite_run("h1_request", tests, COUNT(tests));
}
