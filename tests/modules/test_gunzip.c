#include "loopback.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#define SITE                                                                                                 \
    "http: {gunzip: on, server: {listen: 8080, root: @/www, gzip_static: always, location: {"                \
    "/off/: {alias: @/www/, gunzip: off}, /on/: {alias: @/www/, gzip_static: on}, "                          \
    "/br/: {alias: @/www/, brotli: on}, "                                                                    \
    "/keep/: {alias: @/www/, add_header: {Cache-Control: 'no-transform'}}, "                                 \
    "/digest/: {alias: @/www/, add_header: {Repr-Digest: 'sha-256=:AA=:', Content-MD5: aa}}, "               \
    "/twice/: {alias: @/www/, add_header: {Content-Encoding: br}}, "                                         \
    "/other/: {alias: @/www/, gzip_static: off, add_header: {Content-Encoding: compress}}, "                 \
    "/broken/: {alias: @/www/, gzip_static: off, add_header: {Content-Encoding: X-GZIP}}, "                  \
    "/vary/: {alias: @/www/, add_header: {Vary: 'cookie, accept-encoding'}}}}}"

static struct loopback server;
static char page[50000];
static char packed[sizeof(page)];
static size_t packed_length;

static void set_up(const char *configuration)
{
    z_stream stream = {.next_in = (unsigned char *)page,
                       .avail_in = sizeof(page) - 1,
                       .next_out = (unsigned char *)packed,
                       .avail_out = sizeof(packed)};

    for (size_t i = 0; i < sizeof(page); i += 20)
        snprintf(page + i, sizeof(page) - i, "<p>line %09zu</p>\n", i);
    ck_assert_int_eq(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    packed_length = sizeof(packed) - stream.avail_out;
    deflateEnd(&stream);
    loopback_make_directory(&server);
    loopback_mkdir(&server, "www");
    loopback_write(&server, "www/page.html", str_of(page, sizeof(page) - 1));
    loopback_write(&server, "www/page.html.gz", str_of(packed, packed_length));
    loopback_write(&server, "www/cut.html", STR("cut"));
    loopback_write(&server, "www/cut.html.gz", str_of(packed, packed_length - 1));
    loopback_write(&server, "www/more.html", STR("more"));
    packed[packed_length] = 0;
    loopback_write(&server, "www/more.html.gz", str_of(packed, packed_length + 1));
    loopback_write(&server, "www/bare.html", STR("bare"));
    loopback_open(&server, configuration);
}

static void send_request(const char *line, const char *fields)
{
    char request[512];

    snprintf(request, sizeof(request), "%s%s%s", line, fields[0] ? "\n" : "", fields);
    loopback_request(&server, request);
}

/* Joins the chunks of the body. *stdout_ended: the last chunk was received. */
static struct str joined(bool *out_ended)
{
    static char text[2 * sizeof(page)];
    struct str rest = server.body;
    size_t length = 0;

    *out_ended = false;
    while (rest.length) {
        size_t size = strtoul(rest.data, NULL, 16);

        (void)str_cut(&rest, '\n');
        *out_ended = size == 0;
        if (size == 0)
            break;
        ck_assert_uint_le(length + size, sizeof(text));
        memcpy(text + length, rest.data, size);
        length += size;
        rest = str_skip(rest, size + 2);
    }
    return str_of(text, length);
}

#define GZIP "Accept-Encoding: gzip"

enum form { PLAIN, PACKED, DECODED };

static const struct {
    const char *line;
    const char *fields;
    int status;
    enum form form;
    bool varies;
} cases[] = {
    {"GET /page.html HTTP/1.1", "", 200, DECODED, true},
    {"GET /page.html HTTP/1.1", "Accept-Encoding: br, gzip;q=0", 200, DECODED, true},
    {"GET /page.html HTTP/1.1", "Accept-Encoding: gzip;q=0.2, identity;q=0.3", 200, DECODED, true},
    {"GET /page.html HTTP/1.1", GZIP, 200, PACKED, true},
    {"GET /page.html HTTP/1.1", "Accept-Encoding: x-gzip", 200, PACKED, true},
    {"GET /page.html HTTP/1.1", "Accept-Encoding: *", 200, PACKED, true},
    {"GET /bare.html HTTP/1.1", "", 200, PLAIN, true},
    {"GET /on/page.html HTTP/1.1", "", 200, PLAIN, true},
    {"GET /off/page.html HTTP/1.1", "", 200, PACKED, true},
    {"GET /vary/page.html HTTP/1.1", "", 200, DECODED, true},
    {"GET /digest/page.html HTTP/1.1", "", 200, DECODED, true},
    {"GET /keep/page.html HTTP/1.1", "", 200, PACKED, true},
    {"GET /page.html HTTP/1.1", "Cache-Control: no-transform", 200, PACKED, true},
    {"GET /page.html HTTP/1.1", "Range: bytes=0-99", 200, DECODED, true},
    {"GET /page.html HTTP/1.1", "Range: bytes=99999999-", 200, DECODED, true},
    {"GET /page.html HTTP/1.1", GZIP "\nRange: bytes=0-99", 206, PACKED, true},
    {"GET /off/page.html HTTP/1.1", "Range: bytes=0-99", 206, PACKED, true},
    {"GET /bare.html HTTP/1.1", "Range: bytes=0-0", 206, PLAIN, true},
    {"GET /nowhere HTTP/1.1", "", 404, PLAIN, false},
};

START_TEST(responds_to_each_case)
{
    set_up(SITE);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *line = cases[i].line;
        bool ended, decoded = cases[i].form == DECODED;

        send_request(line, cases[i].fields);
        ck_assert_msg(server.status == cases[i].status, "%s: %d", line, server.status);
        ck_assert_msg(str_equal(loopback_field(&server, "Content-Encoding"),
                                cases[i].form == PACKED ? STR("gzip") : STR("")),
                      "%s %s", line, cases[i].fields);
        if (cases[i].varies)
            ck_assert_int_ge(str_search(server.head, STR("ccept-")), 0);
        if (server.status == 200)
            ck_assert_int_eq(str_starts(loopback_field(&server, "ETag"), STR("W/\"")), decoded);
        ck_assert_int_eq(str_empty(loopback_field(&server, "Content-Length")), decoded);
        if (decoded) {
            ck_assert(str_equal(joined(&ended), str_of(page, sizeof(page) - 1)));
            ck_assert(ended);
            ck_assert_text(loopback_field(&server, "Accept-Ranges"), "");
            ck_assert_text(loopback_field(&server, "Repr-Digest"), "");
            ck_assert_text(loopback_field(&server, "Content-MD5"), "");
        }
        if (cases[i].form == PACKED && server.status == 200)
            ck_assert_uint_eq(server.body.length, packed_length);
    }
    loopback_close(&server);
}
END_TEST

/* Other codings, or several codings, are passed to the client unchanged. */
START_TEST(other_codings_are_unchanged)
{
    set_up(SITE);
    send_request("GET /twice/page.html HTTP/1.1", "");
    ck_assert_int_ge(str_search(server.head, STR("Content-Encoding: gzip")), 0);
    ck_assert_int_ge(str_search(server.head, STR("Content-Encoding: br")), 0);
    ck_assert_uint_eq(server.body.length, packed_length);
    send_request("GET /other/page.html HTTP/1.1", "");
    ck_assert_text(loopback_field(&server, "Content-Encoding"), "compress");
    ck_assert_uint_eq(server.body.length, sizeof(page) - 1);
    loopback_close(&server);
}
END_TEST

/* A decoded body is encoded again with a coding that the client accepts. */
START_TEST(body_is_encoded_again)
{
    set_up(SITE);
    send_request("GET /br/page.html HTTP/1.1", "Accept-Encoding: br");
    ck_assert_text(loopback_field(&server, "Content-Encoding"), "br");
    ck_assert_text(loopback_field(&server, "Vary"), "Accept-Encoding");
    send_request("GET /br/page.html HTTP/1.1", "Accept-Encoding: gzip, br");
    ck_assert_text(loopback_field(&server, "Content-Encoding"), "gzip");
    ck_assert_uint_eq(server.body.length, packed_length);
    loopback_close(&server);
}
END_TEST

/* After invalid or incomplete gzip data the response ends without its last chunk, and possibly without its head. */
START_TEST(invalid_gzip_breaks_off)
{
    static const char *const targets[] = {"/cut.html", "/more.html", "/broken/page.html"};

    set_up(SITE);
    for (size_t i = 0; i < 3; i++) {
        char line[100];
        bool ended;

        snprintf(line, sizeof(line), "GET %s HTTP/1.1", targets[i]);
        send_request(line, "");
        ck_assert_text(loopback_field(&server, "Content-Encoding"), "");
        (void)joined(&ended);
        ck_assert_msg(!ended, "%s", targets[i]);
    }
    send_request("GET /page.html HTTP/1.1", "");
    ck_assert_int_eq(server.status, 200);
    loopback_close(&server);
}
END_TEST

/*
 * HEAD has the same fields as GET. A 304 has the weak ETag for the decoded and the strong one for the encoded form.
 * If-Match and If-Range do not match across these forms.
 */
START_TEST(etags_and_304)
{
    char strong[100], weak[100], request[300];

    set_up(SITE);
    send_request("HEAD /page.html HTTP/1.1", "");
    ck_assert_text(loopback_field(&server, "Content-Encoding"), "");
    ck_assert_text(loopback_field(&server, "Content-Length"), "");
    ck_assert_text(loopback_field(&server, "Accept-Ranges"), "");
    ck_assert_text(server.body, "");
    snprintf(weak, sizeof(weak), STR_FMT, STR_ARG(loopback_field(&server, "ETag")));
    send_request("HEAD /page.html HTTP/1.1", GZIP);
    snprintf(strong, sizeof(strong), STR_FMT, STR_ARG(loopback_field(&server, "ETag")));
    ck_assert_str_eq(weak + 2, strong);
    snprintf(request, sizeof(request), "If-None-Match: \"x\\\", %s", weak);
    send_request("GET /page.html HTTP/1.1", request);
    ck_assert_int_eq(server.status, 304);
    ck_assert_text(loopback_field(&server, "ETag"), weak);
    ck_assert_text(loopback_field(&server, "Vary"), "Accept-Encoding");
    snprintf(request, sizeof(request), "If-None-Match: %s", strong);
    send_request("GET /page.html HTTP/1.1", request);
    ck_assert_int_eq(server.status, 304);
    ck_assert_text(loopback_field(&server, "ETag"), strong);
    snprintf(request, sizeof(request), "If-Match: %s", weak);
    send_request("GET /page.html HTTP/1.1", request);
    ck_assert_int_eq(server.status, 412);
    snprintf(request, sizeof(request), "Range: bytes=0-1\nIf-Range: %s", strong);
    send_request("GET /page.html HTTP/1.1", request);
    ck_assert_int_eq(server.status, 200);
    ck_assert(str_starts(loopback_field(&server, "ETag"), STR("W/")));
    loopback_close(&server);
}
END_TEST

START_TEST(clients_may_disconnect)
{
    bool ended;

    set_up(SITE);
    for (unsigned turns = 0; turns < 12; turns++)
        loopback_disconnect(&server, "GET /page.html HTTP/1.1", turns);
    send_request("GET /page.html HTTP/1.1", "");
    ck_assert(str_equal(joined(&ended), str_of(page, sizeof(page) - 1)));
    loopback_close(&server);
}
END_TEST

START_TEST(invalid_configurations_are_rejected)
{
    loopback_configuration_rejected("gunzip: maybe", "gunzip");
    loopback_configuration_rejected("gunzip_buffers: 32 4k", "gunzip_buffers");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        responds_to_each_case, other_codings_are_unchanged, body_is_encoded_again, invalid_gzip_breaks_off,
        etags_and_304, clients_may_disconnect, invalid_configurations_are_rejected, NULL,
    };

    return loopback_run("gunzip", tests);
}
