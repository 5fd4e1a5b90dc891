#include "loopback.h"

#include "base/limits.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <zlib.h>

#define SITE                                                                                                 \
    "http: {gzip: on, gzip_types: [text/css, application/json], server: {listen: 8080, root: @/www, "        \
    "autoindex: on, "                                                                                        \
    "add_header: {X-Test: '$sent_http_content_encoding'}, location: {"                                       \
    "/text: {return: 200 'a text that is long enough to be worth it'}, /short: {return: 200 short}, "        \
    "/keep/: {alias: @/www/, add_header: {Cache-Control: 'no-transform'}}, "                                 \
    "/said/: {alias: @/www/, add_header: {Content-Encoding: compress}}, "                                    \
    "/digest/: {alias: @/www/, add_header: {Repr-Digest: 'sha-256=:AA=:'}}, "                                \
    "/vary/: {alias: @/www/, add_header: {Vary: 'cookie, accept-encoding'}}, "                               \
    "/trailer/: {alias: @/www/, add_trailer: [X-Sent $body_bytes_sent]}, "                                   \
    "/off/: {alias: @/www/, gzip: off}, /long/: {alias: @/www/, gzip_min_length: 1m}, "                      \
    "/any/: {alias: @/www/, gzip_types: '*', gzip_http_version: '1.0', gzip_proxied: any}, "                 \
    "/private/: {alias: @/www/, gzip_proxied: [private, auth], add_header: {Cache-Control: private}}, "      \
    "/auth/: {alias: @/www/, gzip_proxied: [private, auth]}}}}"

static struct loopback server;
static char page[200000];

/* Bytes encoded in an iteration of the loop, and the largest number; the time that a step takes, and their sum. */
static size_t encoded, most_encoded;
static uint64_t step_us, steps_us;

int __real_deflate(z_stream *stream, int flush);
int __wrap_deflate(z_stream *stream, int flush);
uint64_t __wrap_clock_monotonic_us(void);

/* If `cold`, the page cache has nothing, and helper threads read all bytes. */
static bool cold;
static atomic_size_t ahead_until;

ssize_t __real_preadv64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags);
ssize_t __wrap_preadv64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags);
ssize_t __wrap_readahead(int fd, off64_t at, size_t length);

ssize_t __wrap_preadv64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags)
{
    if (!cold || !(flags & RWF_NOWAIT))
        return __real_preadv64v2(fd, parts, count, at, flags);
    errno = EAGAIN;
    return -1;
}

ssize_t __wrap_readahead(int fd, off64_t at, size_t length)
{
    atomic_store(&ahead_until, (size_t)at + length);
    return 0;
}

int __wrap_deflate(z_stream *stream, int flush)
{
    size_t before = stream->total_in;
    int result = __real_deflate(stream, flush);

    encoded += stream->total_in - before;
    steps_us += step_us;
    return result;
}

uint64_t __wrap_clock_monotonic_us(void)
{
    return server.worker.loop.clock.monotonic_us + steps_us;
}
static size_t encoded_length; /* of the last decoded body */

static void set_up(const char *configuration)
{
    for (size_t i = 0; i < sizeof(page); i += 20)
        snprintf(page + i, sizeof(page) - i, "<p>line %09zu</p>\n", i);
    loopback_make_directory(&server);
    loopback_mkdir(&server, "www");
    loopback_mkdir(&server, "www/folder");
    loopback_write(&server, "www/page.html", str_of(page, sizeof(page) - 1));
    loopback_write(&server, "www/small.css", str_of(page, 1000));
    loopback_write(&server, "www/tiny.css", str_of(page, 19));
    loopback_write(&server, "www/picture.png", str_of(page, 1000));
    loopback_open(&server, configuration);
}

/* Decodes the gzip body of the last response, after joining its chunks. */
static struct str decoded(void)
{
    static char joined[sizeof(page) * 2], plain[sizeof(page) * 2];
    struct str rest = server.body;
    size_t length = 0;
    z_stream stream = {.next_out = (unsigned char *)plain, .avail_out = sizeof(plain)};

    while (rest.length) {
        size_t size = strtoul(rest.data, NULL, 16);

        (void)str_cut(&rest, '\n');
        if (size == 0)
            break;
        ck_assert_uint_le(length + size, sizeof(joined));
        memcpy(joined + length, rest.data, size);
        length += size;
        rest = str_skip(rest, size + 2);
    }
    stream.next_in = (unsigned char *)joined;
    stream.avail_in = (unsigned)length;
    encoded_length = length;
    ck_assert_int_eq(inflateInit2(&stream, 15 + 16), Z_OK);
    ck_assert_int_eq(inflate(&stream, Z_FINISH), Z_STREAM_END);
    inflateEnd(&stream);
    return str_of(plain, sizeof(plain) - stream.avail_out);
}

static void send_request(const char *line, const char *fields)
{
    char request[512];

    snprintf(request, sizeof(request), "%s%s%s", line, fields[0] ? "\n" : "", fields);
    loopback_request(&server, request);
}

#define GZIP "Accept-Encoding: gzip"
#define VIA  "Accept-Encoding: gzip\nVia: 1.1 other"

static const struct {
    const char *line;
    const char *fields;
    int status;
    bool encoded;
    bool varies;
} cases[] = {
    {"GET /page.html HTTP/1.1", GZIP, 200, true, true},
    {"GET /page.html HTTP/1.1", "Accept-Encoding: br, zstd, *;q=0.1", 200, true, true},
    {"GET /page.html HTTP/1.1", "", 200, false, true},
    {"GET /page.html HTTP/1.1", "Accept-Encoding: br", 200, false, true},
    {"GET /page.html HTTP/1.1", "Accept-Encoding: gzip;q=0", 200, false, true},
    {"GET /page.html HTTP/1.1", GZIP "\nCache-Control: no-transform", 200, false, true},
    {"GET /page.html HTTP/1.0", GZIP, 200, false, true},
    {"GET /small.css HTTP/1.1", GZIP, 200, true, true},
    {"GET /tiny.css HTTP/1.1", GZIP, 200, false, false},
    {"GET /picture.png HTTP/1.1", GZIP, 200, false, false},
    {"GET /folder/ HTTP/1.1", GZIP, 200, true, true}, /* a directory listing */
    {"GET /nowhere HTTP/1.1", GZIP, 404, true, true}, /* an error page */
    {"GET /folder HTTP/1.1", GZIP, 301, true, true},
    {"GET /text HTTP/1.1", GZIP, 200, false, false}, /* text/plain is not in gzip_types */
    {"GET /page.html HTTP/1.1", GZIP "\nRange: bytes=0-1", 206, false, true}, /* the same Vary as for the file */
    {"GET /page.html HTTP/1.1", GZIP "\nRange: bytes=0-1,5-6", 206, false, true},
    {"GET /page.html HTTP/1.1", "Range: bytes=0-1", 206, false, true},
    {"GET /picture.png HTTP/1.1", GZIP "\nRange: bytes=0-1", 206, false, false},
    {"GET /off/page.html HTTP/1.1", GZIP "\nRange: bytes=0-1", 206, false, false},
    {"GET /page.html HTTP/1.1", GZIP "\nRange: bytes=999999-", 416, false, false},
    {"GET /page.html HTTP/1.1", GZIP "\nIf-None-Match: *", 304, false, true},
    {"OPTIONS /page.html HTTP/1.1", GZIP, 204, false, false},
    {"GET /keep/page.html HTTP/1.1", GZIP, 200, false, false},
    {"GET /digest/page.html HTTP/1.1", GZIP, 200, false, false},
    {"GET /vary/page.html HTTP/1.1", GZIP, 200, true, true},
    {"GET /off/page.html HTTP/1.1", GZIP, 200, false, false},
    {"GET /long/page.html HTTP/1.1", GZIP, 200, false, false},
    {"GET /any/picture.png HTTP/1.1", GZIP, 200, true, true},
    {"GET /any/page.html HTTP/1.1", VIA, 200, true, true},
    {"GET /page.html HTTP/1.1", VIA, 200, false, true},
    {"GET /private/page.html HTTP/1.1", VIA, 200, true, true},
    {"GET /auth/page.html HTTP/1.1", VIA, 200, false, true},
    {"GET /auth/page.html HTTP/1.1", VIA "\nAuthorization: Basic eDp5", 200, true, true},
};

START_TEST(responds_to_each_case)
{
    set_up(SITE);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct str coding, vary, etag, length;

        send_request(cases[i].line, cases[i].fields);
        ck_assert_msg(server.status == cases[i].status, "%s: %d", cases[i].line, server.status);
        coding = loopback_field(&server, "Content-Encoding");
        vary = loopback_field(&server, "Vary");
        etag = loopback_field(&server, "ETag");
        length = loopback_field(&server, "Content-Length");
        ck_assert_msg(str_equal(coding, cases[i].encoded ? STR("gzip") : STR("")), "%s %s: " STR_FMT,
                      cases[i].line, cases[i].fields, STR_ARG(coding));
        if (str_equal(vary, STR("Accept"))) /* the built-in page has its own Vary: Accept, and another for codings */
            vary = str_search(server.head, STR("Vary: Accept-Encoding")) < 0 ? STR("") : vary;
        ck_assert_msg(str_empty(vary) != cases[i].varies, "%s %s: " STR_FMT, cases[i].line, cases[i].fields,
                      STR_ARG(vary));
        if (etag.length)
            ck_assert_int_eq(str_starts(etag, STR("W/\"")), cases[i].encoded);
        if (cases[i].encoded) {
            ck_assert(str_empty(length));
            ck_assert(str_empty(loopback_field(&server, "Accept-Ranges")));
            ck_assert_uint_gt(decoded().length, 0);
        }
    }
    loopback_close(&server);
}
END_TEST

START_TEST(decodes_to_the_original)
{
    set_up(SITE);
    send_request("GET /page.html HTTP/1.1", GZIP);
    ck_assert_uint_lt(server.body.length, sizeof(page) / 4);
    ck_assert(str_equal(decoded(), str_of(page, sizeof(page) - 1)));
    send_request("GET /vary/page.html HTTP/1.1", GZIP);
    ck_assert_text(loopback_field(&server, "Vary"), "cookie, accept-encoding");
    send_request("GET /said/page.html HTTP/1.1", GZIP);
    ck_assert_text(loopback_field(&server, "Content-Encoding"), "compress");
    ck_assert_uint_eq(server.body.length, sizeof(page) - 1);
    send_request("GET /any/page.html HTTP/1.0", GZIP);
    ck_assert_text(loopback_field(&server, "Content-Encoding"), "gzip");
    ck_assert_text(loopback_field(&server, "Transfer-Encoding"), "");
    ck_assert_int_eq(server.body.data[0], 0x1f);
    loopback_close(&server);
}
END_TEST

/*
 * HEAD has the same fields as GET, without a body. A 304 has the weak ETag if the client sent it, else the strong one.
 */
START_TEST(etags_and_304)
{
    char strong[100], weak[100], request[300];

    set_up(SITE);
    send_request("HEAD /page.html HTTP/1.1", GZIP);
    ck_assert_text(loopback_field(&server, "Content-Encoding"), "gzip");
    ck_assert_text(loopback_field(&server, "Content-Length"), "");
    ck_assert_text(server.body, "");
    snprintf(weak, sizeof(weak), STR_FMT, STR_ARG(loopback_field(&server, "ETag")));
    send_request("HEAD /page.html HTTP/1.1", "");
    snprintf(strong, sizeof(strong), STR_FMT, STR_ARG(loopback_field(&server, "ETag")));
    ck_assert_str_eq(weak + 2, strong);
    snprintf(request, sizeof(request), GZIP "\nIf-None-Match: \"x\", %s", weak);
    send_request("GET /page.html HTTP/1.1", request);
    ck_assert_int_eq(server.status, 304);
    ck_assert_text(loopback_field(&server, "ETag"), weak);
    snprintf(request, sizeof(request), GZIP "\nIf-None-Match: %s", strong);
    send_request("GET /page.html HTTP/1.1", request);
    ck_assert_int_eq(server.status, 304);
    ck_assert_text(loopback_field(&server, "ETag"), strong);
    snprintf(request, sizeof(request), GZIP "\nIf-Match: %s", weak);
    send_request("GET /page.html HTTP/1.1", request);
    ck_assert_int_eq(server.status, 412);
    snprintf(request, sizeof(request), GZIP "\nRange: bytes=0-1\nIf-Range: %s", weak);
    send_request("GET /page.html HTTP/1.1", request);
    ck_assert_int_eq(server.status, 200);
    loopback_close(&server);
}
END_TEST

/* An empty body is never encoded, for any least length. */
START_TEST(empty_bodies_are_not_encoded)
{
    set_up("http: {gzip: on, gzip_types: '*', gzip_min_length: 0, server: {listen: 8080, root: @/www, location: {"
           "/none: {return: '200 \"\"'}}}}");
    loopback_write(&server, "www/empty.css", STR(""));
    for (unsigned i = 0; i < 8; i++) {
        send_request(i % 2 ? "HEAD /empty.css HTTP/1.1" : i % 4 ? "HEAD /none HTTP/1.1" : "GET /none HTTP/1.1", GZIP);
        ck_assert_int_eq(server.status, 200);
        ck_assert_text(loopback_field(&server, "Content-Encoding"), "");
        ck_assert_text(loopback_field(&server, "Content-Length"), "0");
    }
    loopback_close(&server);
}
END_TEST

/*
 * Several codings: the server's order decides between equal weights. Each coding has its own types and least length.
 */
START_TEST(weights_types_and_order_select_the_coding)
{
    static const struct {
        const char *path, *takes, *coding;
    } rows[] = {
        {"/page.html", "gzip, zstd, br", "br"},   {"/page.html", "gzip, zstd", "zstd"},
        {"/page.html", "gzip, br;q=0.5", "gzip"}, {"/small.css", "gzip, zstd, br", "zstd"},
        {"/small.css", "br, gzip", "gzip"},       {"/small.css", "br", ""},
    };

    set_up(
        "http: {brotli: on, zstd: on, gzip: on, gzip_types: text/css, zstd_types: '*', brotli_comp_level: 0, "
        "zstd_comp_level: 9, server: {listen: 8080, root: @/www}}");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char fields[100], line[100];

        snprintf(line, sizeof(line), "GET %s HTTP/1.1", rows[i].path);
        snprintf(fields, sizeof(fields), "Accept-Encoding: %s", rows[i].takes);
        send_request(line, fields);
        ck_assert_text(loopback_field(&server, "Content-Encoding"), rows[i].coding);
        ck_assert_text(loopback_field(&server, "Vary"), "Accept-Encoding");
    }
    loopback_close(&server);
}
END_TEST

/* A precompressed file is not encoded again. */
START_TEST(precompressed_file_takes_precedence)
{
    set_up("http: {gzip: on, brotli: on, server: {listen: 8080, root: @/www, precompressed: gzip}}");
    loopback_write(&server, "www/page.html.gz", STR("<gzip>"));
    send_request("GET /page.html HTTP/1.1", "Accept-Encoding: gzip, br");
    ck_assert_text(loopback_field(&server, "Content-Encoding"), "gzip");
    ck_assert_text(server.body, "<gzip>");
    send_request("GET /page.html HTTP/1.1", "Accept-Encoding: br");
    ck_assert_text(loopback_field(&server, "Content-Encoding"), "br");
    ck_assert_text(loopback_field(&server, "Vary"), "Accept-Encoding");
    loopback_close(&server);
}
END_TEST

/* Trailers are evaluated after the last encoded byte was sent; a body that is too short is not encoded. */
START_TEST(trailers_after_encoding)
{
    char text[64];

    set_up(SITE);
    send_request("GET /trailer/page.html HTTP/1.1", GZIP);
    ck_assert_text(loopback_field(&server, "Content-Encoding"), "gzip");
    ck_assert_uint_eq(decoded().length, sizeof(page) - 1);
    snprintf(text, sizeof(text), "\nX-Sent: %zu\r\n\r\n", encoded_length);
    ck_assert(str_ends(server.body, str_from(text)));
    send_request("GET /trailer/tiny.css HTTP/1.1", GZIP);
    ck_assert_text(loopback_field(&server, "Content-Encoding"), "");
    ck_assert(str_ends(server.body, STR("\nX-Sent: 19\r\n\r\n")));
    loopback_close(&server);
}
END_TEST

static void count_encoded(bool iteration_begins)
{
    if (encoded > most_encoded)
        most_encoded = encoded;
    encoded = steps_us = 0;
}

/* An iteration of the loop encodes until its bytes or its time are used up, but at least one piece. */
START_TEST(encoding_ends_by_time)
{
    static const struct {
        uint64_t step_us;
        size_t most;
    } rows[] = {
        {0, LIMIT_COMPRESS_ITERATION},
        {LIMIT_ITERATION_US / 2, 2 * LIMIT_COMPRESS_INPUT},
        {LIMIT_ITERATION_US, LIMIT_COMPRESS_INPUT},
        {100 * LIMIT_ITERATION_US, LIMIT_COMPRESS_INPUT},
    };

    set_up(SITE);
    server.server_code_runs = count_encoded;
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        step_us = rows[row].step_us;
        most_encoded = 0;
        send_request("GET /page.html HTTP/1.1", GZIP);
        ck_assert(str_equal(decoded(), str_of(page, sizeof(page) - 1)));
        ck_assert_uint_eq(most_encoded, rows[row].most);
    }
    step_us = 0;
    server.server_code_runs = NULL;
    loopback_close(&server);
}
END_TEST

/* The kernel's readahead may be off for a descriptor (io/loop.h): what the encoder will need is requested. */
START_TEST(files_are_read_ahead)
{
    set_up(SITE);
    cold = true;
    send_request("GET /page.html HTTP/1.1", GZIP);
    cold = false;
    ck_assert(str_equal(decoded(), str_of(page, sizeof(page) - 1)));
    ck_assert_uint_ge(atomic_load(&ahead_until), sizeof(page) - 1);
    ck_assert_uint_lt(atomic_load(&ahead_until), sizeof(page) + 1024);
    loopback_close(&server);
}
END_TEST

/* Clients disconnect at different moments: nothing leaks. */
START_TEST(clients_may_disconnect)
{
    set_up(SITE);
    for (unsigned turns = 0; turns < 12; turns++)
        loopback_disconnect(&server, "GET /page.html HTTP/1.1\nAccept-Encoding: gzip", turns);
    send_request("GET /page.html HTTP/1.1", GZIP);
    ck_assert(str_equal(decoded(), str_of(page, sizeof(page) - 1)));
    loopback_close(&server);
}
END_TEST

START_TEST(invalid_configurations_are_rejected)
{
    loopback_configuration_rejected("gzip_types: [css]", "\"css\" is not a media type");
    loopback_configuration_rejected("gzip_comp_level: 10", "gzip_comp_level");
    loopback_configuration_rejected("brotli_comp_level: 11", "brotli_comp_level");
    loopback_configuration_rejected("zstd_comp_level: 0", "zstd_comp_level");
    loopback_configuration_rejected("gzip_http_version: 2", "gzip_http_version");
    loopback_configuration_rejected("gzip_proxied: [some]", "gzip_proxied");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        responds_to_each_case, decodes_to_the_original, etags_and_304, empty_bodies_are_not_encoded,
        weights_types_and_order_select_the_coding, precompressed_file_takes_precedence, trailers_after_encoding,
        encoding_ends_by_time, files_are_read_ahead, clients_may_disconnect, invalid_configurations_are_rejected, NULL,
    };

    return loopback_run("compress", tests);
}
