#include "modules/fastcgi/fastcgi_reply.h"

#include "../http/suite.h"
#include "../runner.h"

/* The records of the application. */
static struct buffer wire;

static void append_record(unsigned kind, const char *content, size_t padding)
{
    char header[FASTCGI_HEADER];
    size_t length = strlen(content);

    fastcgi_write_header(kind, length, header);
    header[6] = (char)padding;
    ck_assert_int_eq(buffer_append(&wire, str_of(header, sizeof(header))), 0);
    ck_assert_int_eq(buffer_append(&wire, str_of(content, length)), 0);
    for (size_t i = 0; i < padding; i++)
        ck_assert_int_eq(buffer_append(&wire, STR("\xff")), 0);
}

static void put_end(unsigned status)
{
    const char content[FASTCGI_HEADER] = {0, 0, 0, 0, (char)status, 0, 0, 0};
    char header[FASTCGI_HEADER];

    fastcgi_write_header(FASTCGI_END, sizeof(content), header);
    ck_assert_int_eq(buffer_append(&wire, str_of(header, sizeof(header))), 0);
    ck_assert_int_eq(buffer_append(&wire, str_of(content, sizeof(content))), 0);
}

static struct arena arena;
static struct h1_reply reply;
static struct fastcgi_reply reader;
static struct buffer body;
static enum h1_reply_step last;

static void open_reply(bool head)
{
    arena_init(&arena, NULL, 0);
    fastcgi_reply_init(&reader, &reply, &arena, 200, head);
    body.length = 0;
    last = REPLY_MORE;
}

static void close_reply(void)
{
    fastcgi_reply_finish(&reader);
    arena_reset(&arena);
}

/* Reads until more input is needed or the response has ended. */
static void read_reply(struct str bytes)
{
    struct str part;

    if (last == REPLY_BAD || last == REPLY_WHOLE)
        return;
    do {
        last = fastcgi_reply_read(&reader, &bytes, &part);
        if (last == REPLY_PART)
            ck_assert_int_eq(buffer_append(&body, part), 0);
    } while (last == REPLY_PART || last == REPLY_HEAD);
    assert_in_loop(last == REPLY_BAD || bytes.length == 0);
}

static void put_answer(void)
{
    wire.length = 0;
    append_record(FASTCGI_STDERR, "a warning\n", 3);
    append_record(FASTCGI_STDOUT, "Status: 201 Made\r\nX-A: ", 5);
    append_record(FASTCGI_STDOUT, "b\r\nContent-Length: 8\n\nfour", 0);
    append_record(FASTCGI_STDERR, "", 0);
    append_record(FASTCGI_STDOUT, "more", 255);
    append_record(FASTCGI_STDOUT, "", 1);
    put_end(0);
}

START_TEST(response_in_two_pieces)
{
    put_answer();
    for (size_t first = 0; first <= wire.length; first++) {
        for (size_t second = first; second <= wire.length; second += 1 + second % 3) {
            open_reply(false);
            read_reply(str_slice(buffer_str(&wire), 0, first));
            read_reply(str_slice(buffer_str(&wire), first, second));
            read_reply(str_skip(buffer_str(&wire), second));
            ck_assert_int_eq(last, REPLY_WHOLE);
            ck_assert_int_eq(reply.status, 201);
            ck_assert_uint_eq(reply.content_length, 8);
            ck_assert_text(headers_value(&reply.headers, STR("X-A")), "b");
            ck_assert(!headers_find(&reply.headers, STR("Status")));
            ck_assert_text(buffer_str(&body), "fourmore");
            ck_assert_text(buffer_str(&reader.stderr_text), "a warning\n");
            close_reply();
        }
    }
}
END_TEST

START_TEST(response_byte_by_byte)
{
    put_answer();
    open_reply(false);
    for (size_t i = 0; i < wire.length; i++)
        read_reply(str_slice(buffer_str(&wire), i, i + 1));
    ck_assert_int_eq(last, REPLY_WHOLE);
    ck_assert_text(buffer_str(&body), "fourmore");
    close_reply();
}
END_TEST

/*
 * The longest permitted head, one byte at a time. The reader must not scan bytes again: the time would be quadratic,
 * minutes here.
 */
START_TEST(a_long_head_byte_by_byte)
{
    const size_t length = 1024 * 1024;
    char header[FASTCGI_HEADER];
    struct buffer head = {0};

    ck_assert_int_eq(buffer_append(&head, STR("X-A: ")), 0);
    while (head.length < length - 4)
        assert_in_loop(buffer_append(&head, STR("x")) == 0);
    ck_assert_int_eq(buffer_append(&head, STR("\r\n\r\n")), 0);
    arena_init(&arena, NULL, 0);
    fastcgi_reply_init(&reader, &reply, &arena, length, false);
    last = REPLY_MORE;
    for (size_t i = 0; i < length && last == REPLY_MORE; i++) {
        fastcgi_write_header(FASTCGI_STDOUT, 1, header);
        read_reply(str_of(header, sizeof(header)));
        read_reply(str_slice(buffer_str(&head), i, i + 1));
    }
    ck_assert_int_eq(last, REPLY_MORE);
    ck_assert_int_eq(reply.status, 200);
    ck_assert_uint_eq(headers_value(&reply.headers, STR("X-A")).length, length - 9);
    buffer_finish(&head);
    close_reply();
}
END_TEST

static const struct {
    const char *head;
    int status;
    const char *reason;
} heads[] = {
    {"A: b\r\n\r\n", 200, ""},
    {"\r\nbody", 200, ""},
    {"Location: /x\n\n", 302, ""},
    {"Status: 404\r\n\r\n", 404, ""},
    {"Status: 599 Not Mine\r\n\r\n", 599, "Not Mine"},
    {"sTATUS:200 OK\r\nLocation: /\r\n\r\n", 200, "OK"},
};

START_TEST(heads_have_a_status)
{
    for (size_t i = 0; i < COUNT(heads); i++) {
        wire.length = 0;
        append_record(FASTCGI_STDOUT, heads[i].head, 0);
        put_end(0);
        open_reply(false);
        read_reply(buffer_str(&wire));
        ck_assert_int_eq(last, REPLY_WHOLE);
        ck_assert_int_eq(reply.status, heads[i].status);
        ck_assert_text(reply.reason, heads[i].reason);
        close_reply();
    }
}
END_TEST

static const struct {
    const char *head, *fault;
} bad_heads[] = {
    {"no colon\r\n\r\n", "an invalid header field"},
    {": empty\r\n\r\n", "an invalid header field"},
    {"A B: c\r\n\r\n", "an invalid header field"},
    {"A : c\r\n\r\n", "an invalid header field"},
    {" A: folded\r\n\r\n", "an invalid header field"},
    {"A: b\rc\r\n\r\n", "an invalid header field"},
    {"Status: 20\r\n\r\n", "an invalid Status"},
    {"Status: 2000\r\n\r\n", "an invalid Status"},
    {"Status: 100\r\n\r\n", "an invalid Status"},
    {"Status: 600\r\n\r\n", "an invalid Status"},
    {"Status: \r\n\r\n", "an invalid Status"},
    {"Status: 200\r\nStatus: 200\r\n\r\n", "more than one Status"},
    {"Content-Length: -1\r\n\r\n", "an invalid Content-Length"},
    {"Content-Length: 1, 1\r\n\r\n", "an invalid Content-Length"},
    {"Content-Length: 99999999999999999999\r\n\r\n", "an invalid Content-Length"},
    {"Content-Length: 1\r\ncontent-length: 1\r\n\r\nx", "more than one Content-Length"},
    {"Content-Length: 1\r\n\r\nxy", "a body longer than its Content-Length"},
    {"Content-Length: 3\r\n\r\nxy", "a body shorter than its Content-Length"},
    {"Connection: a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a\r\n\r\n",
     "too many options in Connection"},
    {"A: b\r\n", "an end without a header"},
};

START_TEST(invalid_heads_are_rejected)
{
    for (size_t i = 0; i < COUNT(bad_heads); i++) {
        for (size_t piece = 1; piece < 500; piece += 250) {
            wire.length = 0;
            append_record(FASTCGI_STDOUT, bad_heads[i].head, 2);
            put_end(0);
            open_reply(false);
            for (size_t at = 0; at < wire.length; at += piece)
                read_reply(str_slice(buffer_str(&wire), at, at + piece));
            ck_assert_msg(last == REPLY_BAD && strcmp(reply.fault, bad_heads[i].fault) == 0, "%s: %s",
                          bad_heads[i].head, reply.fault ? reply.fault : "taken");
            close_reply();
        }
    }
}
END_TEST

START_TEST(head_length_is_limited)
{
    for (size_t length = 180; length < 220; length++) {
        char text[256] = "A: ";

        memset(text + 3, 'x', length - 7);
        memcpy(text + length - 4, "\r\n\r\n", 5);
        wire.length = 0;
        append_record(FASTCGI_STDOUT, text, 0);
        put_end(0);
        open_reply(false);
        read_reply(buffer_str(&wire));
        ck_assert_int_eq(last, length <= 200 ? REPLY_WHOLE : REPLY_BAD);
        close_reply();
    }
}
END_TEST

static const struct {
    char header[FASTCGI_HEADER + 1];
    const char *fault;
} bad_headers[] = {
    {"\2\6\0\1\0\1\0\0", "no FastCGI"},
    {"\1\4\0\1\0\1\0\0", "a record of unknown type"},
    {"\1\13\0\0\0\0\0\0", "a record of unknown type"},
    {"\1\6\0\2\0\1\0\0", "a record of another request"},
    {"\1\6\1\1\0\1\0\0", "a record of another request"},
    {"\1\3\0\1\0\7\0\0", "an invalid FCGI_END_REQUEST record"},
    {"\1\3\0\1\1\10\0\0", "an invalid FCGI_END_REQUEST record"},
};

START_TEST(invalid_records_are_rejected)
{
    for (size_t i = 0; i < COUNT(bad_headers); i++) {
        open_reply(false);
        read_reply(str_of(bad_headers[i].header, FASTCGI_HEADER));
        ck_assert_int_eq(last, REPLY_BAD);
        ck_assert_str_eq(reply.fault, bad_headers[i].fault);
        read_reply(STR("more"));
        ck_assert_int_eq(last, REPLY_BAD);
        close_reply();
    }
    wire.length = 0;
    append_record(FASTCGI_STDOUT, "A: b\n\n", 0);
    append_record(FASTCGI_STDOUT, "", 0);
    append_record(FASTCGI_STDOUT, "c", 0);
    open_reply(false);
    read_reply(buffer_str(&wire));
    ck_assert_str_eq(reply.fault, "output after its end");
    close_reply();
    wire.length = 0;
    put_end(3);
    open_reply(false);
    read_reply(buffer_str(&wire));
    ck_assert_str_eq(reply.fault, "FastCGI rejected the request");
    close_reply();
}
END_TEST

START_TEST(bodiless_responses_lose_their_body)
{
    for (unsigned i = 0; i < 3; i++) {
        wire.length = 0;
        append_record(FASTCGI_STDOUT,
                      i == 0   ? "A: b\n\nbody"
                      : i == 1 ? "Status: 204\n\nbody"
                               : "Content-Length: 9\n\n",
                      0);
        put_end(0);
        open_reply(i != 1);
        read_reply(buffer_str(&wire));
        ck_assert_int_eq(last, REPLY_WHOLE);
        ck_assert(reply.bodiless);
        ck_assert_uint_eq(body.length, 0);
        close_reply();
    }
}
END_TEST

START_TEST(stderr_text_is_limited)
{
    open_reply(false);
    wire.length = 0;
    for (unsigned i = 0; i < 1000; i++)
        append_record(FASTCGI_STDERR, "0123456789", 0);
    append_record(FASTCGI_STDOUT, "A: b\n\n", 0);
    put_end(0);
    read_reply(buffer_str(&wire));
    ck_assert_int_eq(last, REPLY_WHOLE);
    ck_assert_uint_eq(reader.stderr_text.length, 4096);
    close_reply();
    buffer_finish(&wire);
    buffer_finish(&body);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        response_in_two_pieces, response_byte_by_byte, heads_have_a_status, invalid_heads_are_rejected,
        head_length_is_limited, invalid_records_are_rejected, bodiless_responses_lose_their_body,
        stderr_text_is_limited,
        a_long_head_byte_by_byte,
    };

    return suite_run("fastcgi reply", tests, COUNT(tests));
}
