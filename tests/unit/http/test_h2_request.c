#include "http/h2/request.h"

#include "suite.h"

#include <errno.h>
#include <stdio.h>

static struct session_settings settings;

static void setup(void)
{
    settings = (struct session_settings){.header_buffer_size = 1024,
                                         .large_header_size = 8192,
                                         .head_max = 32768,
                                         .max_headers = 100,
                                         .merge_slashes = true};
}

/* Reads a section in the form of "name=value" lines; the value begins after the first "=". */
static int read_section(struct exchange *x, struct str lines, bool end_stream)
{
    struct h2_request_reader reader = h2_request_start(x, &settings, false);

    while (lines.length) {
        struct str value = str_cut(&lines, '\n');
        struct str name = str_cut(&value, '=');

        h2_request_field(&reader, name, value);
    }
    return h2_request_finish(&reader, end_stream);
}

#define GET ":method=GET\n:scheme=https\n:path=/\n:authority=a\n"
#define POST ":method=POST\n:scheme=https\n:path=/\n:authority=a\n"

static const struct {
    const char *lines;
    bool end_stream;
    int result;
} sections[] = {
    /* Valid. */
    {GET, true, 0},
    {GET, false, 0},
    {GET "host=a\n", true, 0},
    {GET "host=A\n", true, 0},
    {":path=/\n:authority=a\n:method=GET\n:scheme=https\n", true, 0},
    {":method=GET\n:scheme=http\n:path=/\nhost=a\n", true, 0},
    {":method=GET\n:scheme=A1+-.z\n:path=/\n:authority=a\n", true, 0},
    {":method=OPTIONS\n:scheme=https\n:path=*\n:authority=a\n", true, 0},
    {":method=FOO\n:scheme=https\n:path=/\n:authority=a\n", true, 0},
    {GET "te=trailers\n", true, 0},
    {GET "te=Trailers\n", true, 0},
    {GET "x=\n", true, 0},
    {GET "x=a\tb\xff\n", true, 0},
    {GET "content-length=0\n", true, 0},
    {POST "content-length=5\n", false, 0},
    {POST "expect=100-continue\n", false, 0},
    {POST "expect=100-Continue\ncontent-length=5\n", false, 0},
    /* Malformed (RFC 9113 8.1.1). */
    {"", true, -EBADMSG},
    {"x=y\n", true, -EBADMSG},
    {":scheme=https\n:path=/\n:authority=a\n", true, -EBADMSG},
    {":method=GET\n:path=/\n:authority=a\n", true, -EBADMSG},
    {":method=GET\n:scheme=https\n:authority=a\n", true, -EBADMSG},
    {":method=\n:scheme=https\n:path=/\n:authority=a\n", true, -EBADMSG},
    {":method=G T\n:scheme=https\n:path=/\n:authority=a\n", true, -EBADMSG},
    {":method=GET\n:scheme=\n:path=/\n:authority=a\n", true, -EBADMSG},
    {":method=GET\n:scheme=https:\n:path=/\n:authority=a\n", true, -EBADMSG},
    {":method=GET\n:scheme=https://b/\n:path=/\n:authority=a\n", true, -EBADMSG},
    {":method=GET\n:scheme=1\n:path=/\n:authority=a\n", true, -EBADMSG},
    {":method=GET\n:scheme=a b\n:path=/\n:authority=a\n", true, -EBADMSG},
    {":method=GET\n:scheme=https\n:path=\n:authority=a\n", true, -EBADMSG},
    {":method=GET\n:scheme=https\n:path=a\n:authority=a\n", true, -EBADMSG},
    {":method=GET\n:scheme=https\n:path=*\n:authority=a\n", true, -EBADMSG},
    {":method=GET\n:scheme=https\n:path=http://a/\n:authority=a\n", true, -EBADMSG},
    {":method=GET\n:scheme=https\n:path=/a b\n:authority=a\n", true, -EBADMSG},
    {":method=GET\n:scheme=https\n:path=/a\tb\n:authority=a\n", true, -EBADMSG},
    {GET ":method=GET\n", true, -EBADMSG},
    {GET ":scheme=https\n", true, -EBADMSG},
    {GET ":path=/\n", true, -EBADMSG},
    {GET ":authority=a\n", true, -EBADMSG},
    {GET ":status=200\n", true, -EBADMSG},
    {GET ":protocol=websocket\n", true, -EBADMSG},
    {GET ":=\n", true, -EBADMSG},
    {GET ":Path=/\n", true, -EBADMSG},
    {"x=y\n" GET, true, -EBADMSG},
    {":method=GET\n:scheme=https\n:path=/\nx=y\n:authority=a\n", true, -EBADMSG},
    {"a_b=y\n" GET, true, -EBADMSG}, /* the field is dropped, but still counts as present */
    {GET "=x\n", true, -EBADMSG},
    {GET "X=y\n", true, -EBADMSG},
    {GET "xY=y\n", true, -EBADMSG},
    {GET "x y=y\n", true, -EBADMSG},
    {GET "x\x7f=y\n", true, -EBADMSG},
    {GET "x\x80=y\n", true, -EBADMSG},
    {GET "x:=y\n", true, -EBADMSG},
    {GET "x= y\n", true, -EBADMSG},
    {GET "x=y \n", true, -EBADMSG},
    {GET "x=\ty\n", true, -EBADMSG},
    {GET "x=a\rb\n", true, -EBADMSG},
    {GET "x=a\x01z\n", true, -EBADMSG},
    {GET "connection=close\n", true, -EBADMSG},
    {GET "keep-alive=1\n", true, -EBADMSG},
    {GET "proxy-connection=close\n", true, -EBADMSG},
    {GET "transfer-encoding=chunked\n", true, -EBADMSG},
    {GET "upgrade=h2c\n", true, -EBADMSG},
    {GET "te=gzip\n", true, -EBADMSG},
    {GET "te=trailers, gzip\n", true, -EBADMSG},
    {GET "te=\n", true, -EBADMSG},
    {POST "content-length=5\n", true, -EBADMSG},
    {POST "content-length=\n", false, -EBADMSG},
    {POST "content-length=-1\n", false, -EBADMSG},
    {POST "content-length=+1\n", false, -EBADMSG},
    {POST "content-length=5x\n", false, -EBADMSG},
    {POST "content-length=5, 5\n", false, -EBADMSG},
    {POST "content-length=5\ncontent-length=5\n", false, -EBADMSG},
    {":method=CONNECT\n:authority=a:443\n:path=/\n", false, -EBADMSG},
    {":method=CONNECT\n:authority=a:443\n:scheme=https\n", false, -EBADMSG},
    {":method=CONNECT\n", false, -EBADMSG},
    {":method=GET\n:scheme=https\n:path=/%zz\n:authority=a\nconnection=x\n", true, -EBADMSG},
    /* Rejected. */
    {":method=CONNECT\n:authority=a:443\n", false, 501},
    {":method=GET\n:scheme=https\n:path=/\n", true, 400},
    {GET "host=b\n", true, 400},
    {GET "host=a\nhost=a\n", true, 400},
    {GET "host=\n", true, 400},
    {":method=GET\n:scheme=https\n:path=/\n:authority=\n", true, 400},
    {":method=GET\n:scheme=https\n:path=/\n:authority=a b\n", true, 400},
    {":method=GET\n:scheme=https\n:path=/\n:authority=a:99999\n", true, 400},
    {":method=GET\n:scheme=https\n:path=/\n:authority=user@a\n", true, 400},
    {":method=GET\n:scheme=https\n:path=/%zz\n:authority=a\n", true, 400},
    {":method=GET\n:scheme=https\n:path=/../x\n:authority=a\n", true, 400},
    {":method=GET\n:scheme=https\n:path=/%00\n:authority=a\n", true, 400},
    {POST "content-length=9223372036854775808\n", false, 413},
    {POST "content-length=99999999999999999999999\n", false, 413},
    {POST "content-length=99999999999999999999999\n", true, 413},
    {POST "expect=200-ok\ncontent-length=5\n", false, 417},
    {POST "expect=100-continue\nexpect=100-continue\n", false, 417},
    {GET "expect=\n", true, 417},
};

/* Extended CONNECT (RFC 8441), where it is offered. */
#define CONNECT ":method=CONNECT\n:scheme=https\n:path=/chat?a=b\n:authority=a\n"
#define WEBSOCKET CONNECT ":protocol=websocket\n"

static const struct {
    const char *lines;
    bool end_stream;
    int result;
} tunnels[] = {
    {WEBSOCKET, false, 0},
    {WEBSOCKET, true, 0},
    {CONNECT ":protocol=WebSocket\nsec-websocket-version=13\n", false, 0},
    {GET, true, 0},
    {":method=GET\n:scheme=https\n:path=/\n:authority=a\n:protocol=websocket\n", false, -EBADMSG},
    {":method=POST\n:scheme=https\n:path=/\n:authority=a\n:protocol=websocket\n", false, -EBADMSG},
    {":method=CONNECT\n:path=/\n:authority=a\n:protocol=websocket\n", false, -EBADMSG},
    {":method=CONNECT\n:scheme=https\n:authority=a\n:protocol=websocket\n", false, -EBADMSG},
    {":method=CONNECT\n:scheme=https\n:path=*\n:authority=a\n:protocol=websocket\n", false, -EBADMSG},
    {":scheme=https\n:path=/\n:authority=a\n:protocol=websocket\n", false, -EBADMSG},
    {CONNECT ":protocol=\n", false, -EBADMSG},
    {CONNECT ":protocol=web socket\n", false, -EBADMSG},
    {CONNECT ":protocol=websocket, h2c\n", false, -EBADMSG},
    {WEBSOCKET ":protocol=websocket\n", false, -EBADMSG},
    {CONNECT "x=y\n:protocol=websocket\n", false, -EBADMSG},
    {WEBSOCKET "content-length=0\n", false, -EBADMSG},
    {WEBSOCKET "content-length=5\n", false, -EBADMSG},
    {WEBSOCKET "upgrade=websocket\n", false, -EBADMSG},
    {WEBSOCKET "connection=upgrade\n", false, -EBADMSG},
    {WEBSOCKET "transfer-encoding=chunked\n", false, -EBADMSG},
    {CONNECT, false, -EBADMSG},
    {":method=CONNECT\n:authority=a:443\n", false, 501},
    {CONNECT ":protocol=connect-udp\n", false, 501},
    {CONNECT ":protocol=h2c\n", false, 501},
    {":method=CONNECT\n:scheme=https\n:path=/\n:protocol=websocket\n", false, 400},
    {WEBSOCKET "host=b\n", false, 400},
    {WEBSOCKET "expect=x\n", false, 417},
};

START_TEST(extended_connect_is_accepted_or_rejected)
{
    struct exchange *x = exchange_create(NULL, sizeof(*x));
    int result;

    setup();
    settings.http2.connect_protocol = true;
    result = read_section(x, str_from(tunnels[_i].lines), tunnels[_i].end_stream);
    ck_assert_msg(result == tunnels[_i].result, "%d instead of %d:\n%s", result, tunnels[_i].result,
                  tunnels[_i].lines);
    if (result != 0)
        ck_assert_ptr_null(x->request.tunnel);
    exchange_release(x);
}
END_TEST

/* The exchange is that of the GET with Upgrade; a key of the client has no meaning. */
START_TEST(tunnel_request_has_the_fields_of_an_upgrade)
{
    struct exchange *x = exchange_create(NULL, sizeof(*x));
    const struct headers *headers = &x->request.headers;

    setup();
    settings.http2.connect_protocol = true;
    ck_assert_int_eq(read_section(x, STR(WEBSOCKET "sec-websocket-key=x\nsec-websocket-version=13\n"), false), 0);
    ck_assert_int_eq(x->request.method, METHOD_GET);
    ck_assert_text(x->request.method_name, "GET");
    ck_assert_text(x->request.line, "CONNECT /chat?a=b HTTP/2.0");
    ck_assert_text(x->request.path, "/chat");
    ck_assert_text(headers_value(headers, STR("Upgrade")), "websocket");
    ck_assert_text(headers_value(headers, STR("Connection")), "upgrade");
    ck_assert_text(headers_value(headers, STR("Sec-WebSocket-Version")), "13");
    ck_assert_ptr_null(headers_find(headers, STR("Sec-WebSocket-Key")));
    ck_assert_uint_eq(x->request.content_length, 0);
    ck_assert_ptr_eq(x->request.body, body_empty());
    ck_assert_ptr_nonnull(x->request.tunnel);
    exchange_release(x);
}
END_TEST

START_TEST(request_heads_are_accepted_or_rejected)
{
    struct exchange *x = exchange_create(NULL, sizeof(*x));
    int result;

    setup();
    result = read_section(x, str_from(sections[_i].lines), sections[_i].end_stream);
    ck_assert_msg(result == sections[_i].result, "%d instead of %d:\n%s", result, sections[_i].result,
                  sections[_i].lines);
    ck_assert_int_eq(x->request.version, HTTP_2);
    if (result >= 0)
        ck_assert(str_ends(x->request.line, STR(" HTTP/2.0")));
    exchange_release(x);
}
END_TEST

START_TEST(pseudo_header_fields_become_the_request_line)
{
    struct exchange *x = exchange_create(NULL, sizeof(*x));

    setup();
    ck_assert_int_eq(read_section(x,
                                  STR(":method=GET\n:scheme=https\n:authority=Example.COM:8443\n"
                                      ":path=//a/./%62?c=d\nuser-agent=test\naccept=\n"),
                                  true),
                     0);
    ck_assert_int_eq(x->request.method, METHOD_GET);
    ck_assert_text(x->request.method_name, "GET");
    ck_assert_text(x->request.path, "/a/b");
    ck_assert_text(x->request.query, "c=d");
    ck_assert_text(x->request.target, "//a/./%62?c=d");
    ck_assert_text(x->request.line, "GET //a/./%62?c=d HTTP/2.0");
    ck_assert_text(x->request.host, "example.com");
    ck_assert_uint_eq(x->request.port, 8443);
    ck_assert_uint_eq(x->request.headers.count, 3);
    ck_assert_text(headers_value(&x->request.headers, STR("host")), "Example.COM:8443");
    ck_assert_text(headers_value(&x->request.headers, STR("user-agent")), "test");
    ck_assert_uint_eq(x->request.content_length, 0);
    ck_assert_uint_eq(x->request.bytes, 7 + 3 + 4 + 7 + 5 + 4 + 10 + 16 + 4 + 5 + 13 + 4 + 10 + 4 + 4 + 6 + 4);
    exchange_release(x);
}
END_TEST

START_TEST(body_length_follows_content_length_and_end_stream)
{
    static const struct {
        const char *lines;
        bool end_stream;
        uint64_t length;
        bool expects;
    } rows[] = {
        {POST, true, 0, false},
        {POST, false, BODY_LENGTH_UNKNOWN, false},
        {POST "content-length=9223372036854775807\n", false, INT64_MAX, false},
        {POST "expect=100-continue\n", false, BODY_LENGTH_UNKNOWN, true},
        {POST "expect=100-continue\ncontent-length=0\n", false, 0, false},
        {POST "expect=100-continue\n", true, 0, false},
    };

    setup();
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct exchange *x = exchange_create(NULL, sizeof(*x));

        ck_assert_int_eq(read_section(x, str_from(rows[i].lines), rows[i].end_stream), 0);
        ck_assert_uint_eq(x->request.content_length, rows[i].length);
        ck_assert_int_eq(x->request.expects_continue, rows[i].expects);
        exchange_release(x);
    }
}
END_TEST

START_TEST(cookies_are_joined)
{
    struct exchange *x = exchange_create(NULL, sizeof(*x));
    const struct headers *headers = &x->request.headers;

    setup();
    ck_assert_int_eq(read_section(x, STR(GET "cookie=a=b\nx=1\ncookie=c=d\ncookie=e=f; g=h\n"), true), 0);
    ck_assert_text(headers_value(headers, STR("cookie")), "a=b; c=d; e=f; g=h");
    ck_assert_ptr_null(headers_next(headers, STR("cookie"), headers_find(headers, STR("cookie"))));
    ck_assert_text(headers_value(headers, STR("x")), "1");
    exchange_release(x);
}
END_TEST

START_TEST(names_with_underscores_are_dropped_unless_permitted)
{
    static const char lines[] = GET "a_b=1\ncontent_length=9\nx-forwarded_for=9\n";
    struct exchange *x = exchange_create(NULL, sizeof(*x));

    setup();
    ck_assert_int_eq(read_section(x, str_from(lines), true), 0);
    ck_assert_ptr_null(headers_find(&x->request.headers, STR("a_b")));
    exchange_release(x);
    x = exchange_create(NULL, sizeof(*x));
    settings.underscores_in_headers = true;
    ck_assert_int_eq(read_section(x, str_from(lines), true), 0);
    ck_assert_text(headers_value(&x->request.headers, STR("a_b")), "1");
    ck_assert_ptr_null(headers_find(&x->request.headers, STR("content_length"))); /* like Content-Length: dropped */
    exchange_release(x);
}
END_TEST

/* Without :authority the host comes from the Host field. */
START_TEST(host_field_replaces_a_missing_authority)
{
    struct exchange *x = exchange_create(NULL, sizeof(*x));

    setup();
    ck_assert_int_eq(read_section(x, STR(":method=GET\n:scheme=http\n:path=/\nhost=B:81\n"), true), 0);
    ck_assert_text(x->request.host, "b");
    ck_assert_uint_eq(x->request.port, 81);
    ck_assert_uint_eq(x->request.headers.count, 1);
    exchange_release(x);
}
END_TEST

static int read_long(const char *before, const char *after, size_t length)
{
    struct exchange *x = exchange_create(NULL, sizeof(*x));
    size_t size = strlen(before) + length + strlen(after) + 1;
    char *lines = malloc(size);
    int result;

    ck_assert_ptr_nonnull(lines);
    snprintf(lines, size, "%s%0*d%s", before, (int)length, 0, after);
    result = read_section(x, str_from(lines), true);
    ck_assert(result < 0 || x->request.line.length > 0);
    free(lines);
    exchange_release(x);
    return result;
}

START_TEST(long_target_is_414_and_long_field_431)
{
    static const char path[] = ":method=GET\n:scheme=https\n:authority=a\n:path=/";

    setup();
    ck_assert_int_eq(read_long(path, "\n", 8192 - 9 - 6), 0);
    ck_assert_int_eq(read_long(path, "\n", 8192), 414);
    ck_assert_int_eq(read_long(GET "x=", "\n", 8192 - 9 - 6), 0);
    ck_assert_int_eq(read_long(GET "x=", "\n", 8192), 431);
    ck_assert_int_eq(read_long(GET "", "=x\n", 8192), 431);
    /* :method may follow the field that is too long. */
    ck_assert_int_eq(read_long(":path=/", "\n:method=GET\n", 8192), 414);
    ck_assert_int_eq(read_long(":path=/", "\n:method=GET\n:method=GET\n", 8192), -EBADMSG);
    ck_assert_int_eq(read_long(":path=/", "\n", 8192), -EBADMSG);
    /* A malformed field before the one that is too long. */
    ck_assert_int_eq(read_long(GET "X=y\nx=", "\n", 8192), -EBADMSG);
}
END_TEST

START_TEST(head_above_the_limit_is_431)
{
    setup();
    settings.head_max = 120;
    ck_assert_int_eq(read_long(GET "x=", "\n", 20), 0);
    ck_assert_int_eq(read_long(GET "x=", "\n", 100), 431);
}
END_TEST

START_TEST(fields_above_the_limit_are_431)
{
    struct exchange *x = exchange_create(NULL, sizeof(*x));

    setup();
    settings.max_headers = 3; /* :authority counts as Host does in HTTP/1.1 */
    ck_assert_int_eq(read_section(x, STR(GET "a=1\nb=2\n"), true), 0);
    exchange_release(x);
    x = exchange_create(NULL, sizeof(*x));
    ck_assert_int_eq(read_section(x, STR(GET "a=1\nb=2\nc=3\n"), true), 431);
    ck_assert_uint_eq(x->request.headers.count, 2);
    exchange_release(x);
    x = exchange_create(NULL, sizeof(*x));
    ck_assert_int_eq(read_section(x, STR(":method=GET\n:scheme=https\n:path=/\nhost=a\na=1\nb=2\n"), true), 0);
    exchange_release(x);
    x = exchange_create(NULL, sizeof(*x));
    ck_assert_int_eq(read_section(x, STR(GET "a_a=1\nb_b=2\nc_c=3\n"), true), 431); /* dropped fields count */
    exchange_release(x);
}
END_TEST

static const struct {
    const char *name, *value;
    int result;
} trailers[] = {
    {"x", "y", 0},        {"x", "", 0},          {"X", "y", -EBADMSG},     {":path", "/", -EBADMSG},
    {":x", "", -EBADMSG}, {"x", " ", -EBADMSG},  {"te", "a", -EBADMSG},    {"connection", "a", -EBADMSG},
    {"", "a", -EBADMSG},  {"x", "a\nb", -EBADMSG},
};

START_TEST(trailer_fields_are_added_or_rejected)
{
    struct exchange *x = exchange_create(NULL, sizeof(*x));
    struct h2_request_reader reader;

    setup();
    reader = h2_request_start(x, &settings, true);
    h2_request_field(&reader, str_from(trailers[_i].name), str_from(trailers[_i].value));
    ck_assert_int_eq(h2_trailers_finish(&reader), trailers[_i].result);
    ck_assert_uint_eq(x->request.trailers.count, trailers[_i].result == 0);
    ck_assert_uint_eq(x->request.headers.count, 0);
    exchange_release(x);
}
END_TEST

START_TEST(control_bytes_in_values_are_rejected)
{
    setup();
    for (int byte = 0; byte < 256; byte++) {
        struct exchange *x = exchange_create(NULL, sizeof(*x));
        struct h2_request_reader reader = h2_request_start(x, &settings, true);
        const char value[] = {'a', (char)byte, 'b'};
        bool valid = byte == '\t' || (byte >= ' ' && byte != 127);

        h2_request_field(&reader, STR("x"), str_of(value, sizeof(value)));
        ck_assert_int_eq(h2_trailers_finish(&reader), valid ? 0 : -EBADMSG);
        exchange_release(x);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        pseudo_header_fields_become_the_request_line, body_length_follows_content_length_and_end_stream,
        cookies_are_joined, names_with_underscores_are_dropped_unless_permitted,
        host_field_replaces_a_missing_authority, long_target_is_414_and_long_field_431, head_above_the_limit_is_431,
        fields_above_the_limit_are_431, control_bytes_in_values_are_rejected,
        tunnel_request_has_the_fields_of_an_upgrade,
    };
    const struct suite_loop loops[] = {
        {request_heads_are_accepted_or_rejected, COUNT(sections)},
        {extended_connect_is_accepted_or_rejected, COUNT(tunnels)},
        {trailer_fields_are_added_or_rejected, COUNT(trailers)},
    };

    return suite_run_loops("h2_request", tests, COUNT(tests), loops, COUNT(loops));
}
