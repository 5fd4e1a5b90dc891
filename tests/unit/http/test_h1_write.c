#include "http/h1_write.h"

#include "suite.h"

#include <errno.h>

#define DATED "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"

static const struct session_settings settings = {.server_header = {"sluice", 6}};

static struct exchange *new_exchange(enum method method, enum http_version version, int status)
{
    struct exchange *x = exchange_create(NULL, sizeof(*x));

    x->request.method = method;
    x->request.version = version;
    x->response.status = status;
    return x;
}

static void add_field(struct exchange *x, const char *name, struct str value)
{
    ck_assert_int_eq(headers_add(&x->response.headers, &x->arena, str_from(name), value), 0);
}

START_TEST(body_and_version_decide_the_framing_fields)
{
    static const struct {
        enum method method;
        enum http_version version;
        int status;
        bool body, unknown;
        enum h1_framing framing;
        const char *fields;
    } cases[] = {
        {METHOD_GET, HTTP_1_1, 200, true, false, FRAMING_LENGTH, "Content-Length: 3\r\n"},
        {METHOD_GET, HTTP_1_1, 200, false, false, FRAMING_LENGTH, "Content-Length: 0\r\n"},
        {METHOD_GET, HTTP_1_1, 200, true, true, FRAMING_CHUNKED, "Transfer-Encoding: chunked\r\n"},
        {METHOD_GET, HTTP_1_0, 200, true, false, FRAMING_LENGTH, "Content-Length: 3\r\n"},
        {METHOD_GET, HTTP_1_0, 200, true, true, FRAMING_CLOSE, ""},
        {METHOD_HEAD, HTTP_1_1, 200, true, false, FRAMING_NONE, "Content-Length: 3\r\n"},
        {METHOD_HEAD, HTTP_1_1, 200, true, true, FRAMING_NONE, ""},
        {METHOD_HEAD, HTTP_1_1, 200, false, false, FRAMING_NONE, ""},
        {METHOD_GET, HTTP_1_1, 204, true, false, FRAMING_NONE, ""},
        {METHOD_GET, HTTP_1_1, 304, true, false, FRAMING_NONE, ""},
        {METHOD_GET, HTTP_1_1, 304, false, false, FRAMING_NONE, ""},
        {METHOD_HEAD, HTTP_1_1, 304, true, true, FRAMING_NONE, ""},
        {METHOD_GET, HTTP_1_1, 205, false, false, FRAMING_LENGTH, "Content-Length: 0\r\n"},
        {METHOD_POST, HTTP_1_1, 404, true, false, FRAMING_LENGTH, "Content-Length: 3\r\n"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct exchange *x = new_exchange(cases[i].method, cases[i].version, cases[i].status);
        struct str head;
        struct str expected;

        if (cases[i].body)
            x->response.body = body_bytes(&x->arena, STR("abc"));
        if (cases[i].unknown)
            x->response.body->length = BODY_LENGTH_UNKNOWN;
        ck_assert_int_eq(h1_framing_of(x), cases[i].framing);
        ck_assert_int_eq(h1_write_head(x, &settings, 0, cases[i].framing, false, &head), 0);
        expected = arena_printf(
            &x->arena, "HTTP/1.1 %d " STR_FMT "\r\nServer: sluice\r\n" DATED "%sConnection: close\r\n\r\n",
            cases[i].status, STR_ARG(status_reason(cases[i].status)), cases[i].fields);
        ck_assert_text(head, expected.data);
        exchange_release(x);
    }
}
END_TEST

START_TEST(connection_field_follows_version_and_keepalive)
{
    static const struct session_settings nameless = {0};
    struct exchange *x = new_exchange(METHOD_GET, HTTP_1_1, 999);
    struct str head;

    ck_assert_int_eq(h1_write_head(x, &nameless, 0, FRAMING_LENGTH, true, &head), 0);
    ck_assert_text(head, "HTTP/1.1 999 \r\n" DATED "Content-Length: 0\r\n\r\n");
    x->request.version = HTTP_1_0;
    ck_assert_int_eq(h1_write_head(x, &nameless, 0, FRAMING_LENGTH, true, &head), 0);
    ck_assert_text(head, "HTTP/1.1 999 \r\n" DATED "Content-Length: 0\r\nConnection: keep-alive\r\n\r\n");
    ck_assert_int_eq(h1_write_head(x, &nameless, 0, FRAMING_LENGTH, false, &head), 0);
    ck_assert_text(head, "HTTP/1.1 999 \r\n" DATED "Content-Length: 0\r\nConnection: close\r\n\r\n");
    exchange_release(x);
}
END_TEST

START_TEST(fields_set_by_modules)
{
    struct exchange *x = new_exchange(METHOD_GET, HTTP_1_1, 200);
    struct str head;

    add_field(x, "server", STR("other"));
    add_field(x, "DATE", STR("then"));
    add_field(x, "content-length", STR("7"));
    add_field(x, "Transfer-Encoding", STR("gzip"));
    add_field(x, "Connection", STR("upgrade"));
    add_field(x, "Keep-Alive", STR("timeout=5"));
    add_field(x, "X-Empty", STR(""));
    ck_assert_int_eq(h1_write_head(x, &settings, 0, FRAMING_LENGTH, true, &head), 0);
    ck_assert_text(
        head, "HTTP/1.1 200 OK\r\nserver: other\r\nDATE: then\r\nX-Empty: \r\nContent-Length: 0\r\n\r\n");
    exchange_release(x);
}
END_TEST

START_TEST(greatest_content_length_is_written)
{
    struct exchange *x = new_exchange(METHOD_GET, HTTP_1_1, 200);
    struct str head;

    x->response.body = body_bytes(&x->arena, STR("abc"));
    x->response.body->length = UINT64_MAX - 1;
    ck_assert_int_eq(h1_write_head(x, &settings, 253402300799, FRAMING_LENGTH, false, &head), 0);
    ck_assert_text(head, "HTTP/1.1 200 OK\r\nServer: sluice\r\nDate: Fri, 31 Dec 9999 23:59:59 GMT\r\n"
                         "Content-Length: 18446744073709551614\r\nConnection: close\r\n\r\n");
    exchange_release(x);
}
END_TEST

START_TEST(invalid_heads_are_not_sent)
{
    static const struct {
        struct str name, value;
    } cases[] = {
        {{"A\r\nB", 4}, {"c", 1}}, {{"", 0}, {"c", 1}},         {{"A B", 3}, {"c", 1}},
        {{"A:", 2}, {"c", 1}},     {{"\xc3\xa9", 2}, {"c", 1}}, {{"A:", 2}, {"b\r\nC: d", 7}},
    };
    static const int statuses[] = {0, -1, 99, 100, 102, 199, 1000, 70000};
    struct str head = STR("untouched");
    struct buffer interims = {0};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct exchange *x = new_exchange(METHOD_GET, HTTP_1_1, 200);

        add_field(x, "Fine", STR("yes"));
        ck_assert_int_eq(headers_add(&x->response.headers, &x->arena, cases[i].name, cases[i].value), 0);
        ck_assert_int_eq(h1_write_head(x, &settings, 0, FRAMING_LENGTH, true, &head), -EINVAL);
        ck_assert(str_equal(x->response.fault, cases[i].name));
        ck_assert_int_eq(h1_write_interim(&interims, 103, &x->response.headers), -EINVAL);
        ck_assert_uint_eq(interims.length, 0);
        ck_assert_text(head, "untouched");
        exchange_release(x);
    }
    for (size_t i = 0; i < COUNT(statuses); i++) {
        struct exchange *x = new_exchange(METHOD_GET, HTTP_1_1, statuses[i]);

        ck_assert_int_eq(h1_write_head(x, &settings, 0, FRAMING_LENGTH, true, &head), -EINVAL);
        ck_assert_uint_gt(x->response.fault.length, 0);
        exchange_release(x);
    }
}
END_TEST

START_TEST(valid_reason_of_the_upstream_is_preserved)
{
    static const struct {
        int status, of;
        struct str reason;
        const char *line;               /* NULL: must not be sent */
    } cases[] = {
        {200, 200, {"Fine", 4}, "HTTP/1.1 200 Fine\r\n"},
        {299, 299, {"All (\xc3\xa9) well", 13}, "HTTP/1.1 299 All (\xc3\xa9) well\r\n"},
        {200, 200, {"", 0}, "HTTP/1.1 200 OK\r\n"},
        {206, 200, {"Fine", 4}, "HTTP/1.1 206 Partial Content\r\n"},
        {500, 0, {NULL, 0}, "HTTP/1.1 500 Internal Server Error\r\n"},
        {200, 200, {"a\r\nX: b", 7}, NULL},
        {200, 200, {"a\0b", 3}, NULL},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct exchange *x = new_exchange(METHOD_GET, HTTP_1_1, cases[i].status);
        struct str head = STR("");
        int error;

        x->response.reason.status = cases[i].of;
        x->response.reason.text = cases[i].reason;
        error = h1_write_head(x, &settings, 0, FRAMING_LENGTH, true, &head);
        ck_assert_int_eq(error, cases[i].line ? 0 : -EINVAL);
        if (cases[i].line)
            ck_assert(str_starts(head, str_from(cases[i].line)));
        else
            ck_assert_text(x->response.fault, "the reason phrase");
        exchange_release(x);
    }
}
END_TEST

START_TEST(interim_responses_are_written_or_do_not_fit)
{
    struct exchange *x = new_exchange(METHOD_GET, HTTP_1_1, 0);
    struct buffer into;

    buffer_init(&into, 80);
    add_field(x, "Link", STR("</a>"));
    ck_assert_int_eq(h1_write_interim(&into, 103, &x->response.headers), 0);
    ck_assert_text(buffer_str(&into), "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    ck_assert_int_eq(h1_write_interim(&into, 103, &x->response.headers), -ENOBUFS);
    ck_assert_int_eq(h1_write_interim(&into, 100, NULL), 0);
    ck_assert_text(buffer_str(&into),
                   "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
    ck_assert_int_eq(h1_write_interim(&into, 101, NULL), -EINVAL);
    ck_assert_int_eq(h1_write_interim(&into, 200, NULL), -EINVAL);
    buffer_finish(&into);
    exchange_release(x);
}
END_TEST

/* RFC 9110 5.5; the first and the last field remain unchanged. */
START_TEST(control_bytes_of_values_are_replaced)
{
    static const struct {
        const char *name;
        struct str value;
        const char *written;
    } cases[] = {
        {"A", {"b\r\nC: d", 7}, "A: b  C: d\r\n"},
        {"A", {"b\n", 2}, "A: b \r\n"},
        {"A", {"\r", 1}, "A:  \r\n"},
        {"A", {"b\0c", 3}, "A: b c\r\n"},
        {"A", {"\x7f\t\xc3\xa9", 4}, "A:  \t\xc3\xa9\r\n"},
        {"location", {"/\xc3\xa9 \r\n\x1f\x7f\0", 9}, "location: /\xc3\xa9 %0D%0A%1F%7F%00\r\n"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct exchange *x = new_exchange(METHOD_GET, HTTP_1_1, 200);
        struct buffer interims = {0}, expected = {0};
        struct str head;

        ck_assert_int_eq(buffer_printf(&expected, "Fine: yes\r\n%sLast: 1\r\n", cases[i].written), 0);
        add_field(x, "Fine", STR("yes"));
        add_field(x, cases[i].name, cases[i].value);
        add_field(x, "Last", STR("1"));
        ck_assert_int_eq(h1_write_interim(&interims, 103, &x->response.headers), -EINVAL);
        ck_assert_uint_eq(interims.length, 0);
        ck_assert_int_eq(h1_write_head(x, &settings, 0, FRAMING_LENGTH, true, &head), 0);
        ck_assert_msg(str_search(head, buffer_str(&expected)) >= 0, STR_FMT, STR_ARG(head));
        ck_assert(str_starts(x->response.fault, STR("a control byte in ")));
        ck_assert(str_ends(x->response.fault, str_from(cases[i].name)));
        buffer_finish(&expected);
        exchange_release(x);
    }
}
END_TEST

START_TEST(last_chunk_has_only_permitted_trailers)
{
    struct exchange *x = new_exchange(METHOD_GET, HTTP_1_1, 200);
    struct headers *trailers = &x->response.trailers;
    struct str bytes;

    ck_assert_int_eq(h1_write_last_chunk(&x->arena, &x->response.trailers, &x->response.fault, &bytes), 0);
    ck_assert_text(bytes, "0\r\n\r\n");
    ck_assert_int_eq(headers_add(trailers, &x->arena, STR("A"), STR("1")), 0);
    ck_assert_int_eq(headers_add(trailers, &x->arena, STR("Evil"), STR("1\r\n\r\nGET")), 0);
    ck_assert_int_eq(headers_add(trailers, &x->arena, STR(""), STR("1")), 0);
    ck_assert_int_eq(headers_add(trailers, &x->arena, STR("Content-Length"), STR("1")), 0);
    ck_assert_int_eq(headers_add(trailers, &x->arena, STR("B"), STR("2")), 0);
    ck_assert_int_eq(h1_write_last_chunk(&x->arena, &x->response.trailers, &x->response.fault, &bytes), 0);
    ck_assert_text(bytes, "0\r\nA: 1\r\nEvil: 1    GET\r\nB: 2\r\n\r\n");
    exchange_release(x);
}
END_TEST

START_TEST(chunk_lines_have_hexadecimal_sizes)
{
    static const struct {
        uint64_t size;
        const char *line;
    } cases[] = {{0, "0\r\n"},
                 {1, "1\r\n"},
                 {15, "f\r\n"},
                 {16, "10\r\n"},
                 {255, "ff\r\n"},
                 {0x12345, "12345\r\n"},
                 {UINT64_MAX, "ffffffffffffffff\r\n"},
                 {1ull << 60, "1000000000000000\r\n"}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        char into[H1_CHUNK_LINE];

        ck_assert_text(h1_write_chunk_line(cases[i].size, into), cases[i].line);
    }
}
END_TEST

START_TEST(head_is_not_written_without_memory)
{
    struct exchange *x = new_exchange(METHOD_GET, HTTP_1_1, 200);
    struct str head;

    ck_assert_int_eq(headers_add(&x->response.trailers, &x->arena, STR("A"), STR("1")), 0);
    x->arena.max_size = 1;
    x->arena.next = x->arena.end;
    ck_assert_int_eq(h1_write_head(x, &settings, 0, FRAMING_LENGTH, true, &head), -ENOMEM);
    ck_assert_int_eq(h1_write_last_chunk(&x->arena, &x->response.trailers, &x->response.fault, &head),
                     -ENOMEM);
    exchange_release(x);
}
END_TEST

START_TEST(switching_protocols_has_no_framing_fields)
{
    struct exchange *x = new_exchange(METHOD_GET, HTTP_1_1, 101);
    struct str head;

    ck_assert_int_eq(h1_framing_of(x), FRAMING_CLOSE);
    ck_assert_int_eq(h1_write_head(x, &settings, 0, FRAMING_CLOSE, false, &head), 0);
    ck_assert(str_starts(head, STR("HTTP/1.1 101 Switching Protocols\r\n")));
    ck_assert(str_ends(head, STR("Connection: upgrade\r\n\r\n")));
    ck_assert_int_lt(str_search(head, STR("Content-Length")), 0);
    exchange_release(x);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        switching_protocols_has_no_framing_fields, body_and_version_decide_the_framing_fields,
        connection_field_follows_version_and_keepalive, fields_set_by_modules, greatest_content_length_is_written,
        invalid_heads_are_not_sent, valid_reason_of_the_upstream_is_preserved,
        interim_responses_are_written_or_do_not_fit, last_chunk_has_only_permitted_trailers,
        chunk_lines_have_hexadecimal_sizes, head_is_not_written_without_memory, control_bytes_of_values_are_replaced,
    };

    return suite_run("h1_write", tests, COUNT(tests));
}
