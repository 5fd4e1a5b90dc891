#include "loopback.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SITE "http: {server: {listen: 8080, root: @/www}}"

static struct loopback server;

static void set_up(const char *configuration)
{
    loopback_make_directory(&server);
    loopback_mkdir(&server, "www");
    loopback_mkdir(&server, "www/folder");
    loopback_mkdir(&server, "www/empty");
    loopback_mkdir(&server, "www/.git");
    loopback_mkdir(&server, "www/.well-known");
    loopback_write(&server, "secret", STR("secret"));
    loopback_write(&server, "www/hello.txt", STR("Hello, world\n"));
    loopback_write(&server, "www/nothing.css", STR(""));
    loopback_write(&server, "www/page", STR("<p>"));
    loopback_write(&server, "www/folder/index.html", STR("index"));
    loopback_write(&server, "www/.git/config", STR("private"));
    loopback_write(&server, "www/.well-known/security.txt", STR("Contact"));
    loopback_write(&server, "www/a b\xc3\xa9.txt", STR("spaced"));
    loopback_link(&server, "hello.txt", "www/inside");
    loopback_link(&server, "../secret", "www/outside");
    loopback_link(&server, "/etc/passwd", "www/absolute");
    loopback_open(&server, configuration);
}

START_TEST(serves_a_file)
{
    set_up(SITE);
    loopback_request(&server, "GET /hello.txt HTTP/1.1");
    ck_assert_int_eq(server.status, 200);
    ck_assert_text(server.body, "Hello, world\n");
    ck_assert_text(loopback_field(&server, "Content-Type"), "text/plain; charset=utf-8");
    ck_assert_text(loopback_field(&server, "Content-Length"), "13");
    ck_assert_text(loopback_field(&server, "Accept-Ranges"), "bytes");
    ck_assert_uint_eq(loopback_field(&server, "Last-Modified").length, 29);
    ck_assert(str_starts(loopback_field(&server, "ETag"), STR("\"")));
    ck_assert_text(loopback_field(&server, "Server"), "sluice");
    loopback_request(&server, "HEAD /hello.txt HTTP/1.1");
    ck_assert_int_eq(server.status, 200);
    ck_assert_text(loopback_field(&server, "Content-Length"), "13");
    ck_assert_text(server.body, "");
    loopback_close(&server);
}
END_TEST

static const struct {
    const char *request;
    int status;
    const char *field; /* NULL: not checked */
    const char *value;
    const char *body;
} cases[] = {
    {"GET /nothing.css HTTP/1.1", 200, "Content-Length", "0", ""},
    {"GET /nothing.css HTTP/1.1", 200, "Content-Type", "text/css; charset=utf-8", ""},
    {"GET /page HTTP/1.1", 200, "Content-Type", "application/octet-stream", "<p>"},
    {"GET /a%20b%C3%A9.txt HTTP/1.1", 200, NULL, NULL, "spaced"},
    {"GET /folder/ HTTP/1.1", 200, "Content-Type", "text/html; charset=utf-8", "index"},
    {"GET /folder HTTP/1.1", 301, "Location", "/folder/", NULL},
    {"GET /folder?a=b HTTP/1.1", 301, "Location", "/folder/?a=b", NULL},
    {"GET /folder? HTTP/1.1", 301, "Location", "/folder/", NULL},
    {"GET //folder HTTP/1.1", 301, "Location", "/folder/", NULL},
    {"GET /empty/ HTTP/1.1", 403, NULL, NULL, NULL},
    {"GET /absent HTTP/1.1", 404, "Content-Type", "text/html; charset=utf-8", NULL},
    {"GET /absent/ HTTP/1.1", 404, NULL, NULL, NULL},
    {"GET /hello.txt/ HTTP/1.1", 404, NULL, NULL, NULL},
    {"GET /hello.txt/more HTTP/1.1", 404, NULL, NULL, NULL},
    {"GET /.git/config HTTP/1.1", 404, NULL, NULL, NULL},
    {"GET /.git HTTP/1.1", 404, NULL, NULL, NULL},
    {"GET /.well-known/security.txt HTTP/1.1", 200, NULL, NULL, "Contact"},
    {"GET /.well-known/.git HTTP/1.1", 404, NULL, NULL, NULL},
    {"GET /inside HTTP/1.1", 200, NULL, NULL, "Hello, world\n"},
    {"GET /outside HTTP/1.1", 403, NULL, NULL, NULL},
    {"GET /absolute HTTP/1.1", 403, NULL, NULL, NULL},
    {"POST /hello.txt HTTP/1.1\nContent-Length: 0", 405, "Allow", "GET, HEAD, OPTIONS", NULL},
    {"DELETE /absent HTTP/1.1", 405, "Allow", "GET, HEAD, OPTIONS", NULL},
    {"BREW /hello.txt HTTP/1.1", 501, NULL, NULL, NULL},
    {"OPTIONS /hello.txt HTTP/1.1", 204, "Allow", "GET, HEAD, OPTIONS", ""},
    {"OPTIONS * HTTP/1.1", 204, "Allow", "", ""},
    {"GET /hello.txt HTTP/1.1\nRange: bytes=0-4", 206, "Content-Range", "bytes 0-4/13", "Hello"},
    {"GET /hello.txt HTTP/1.1\nRange: bytes=-6", 206, "Content-Range", "bytes 7-12/13", "world\n"},
    {"GET /hello.txt HTTP/1.1\nRange: bytes=7-", 206, "Content-Length", "6", "world\n"},
    {"GET /hello.txt HTTP/1.1\nRange: bytes=7-99", 206, "Content-Range", "bytes 7-12/13", "world\n"},
    {"GET /hello.txt HTTP/1.1\nRange: bytes=13-", 416, "Content-Range", "bytes */13", NULL},
    {"GET /hello.txt HTTP/1.1\nRange: bytes=x-", 200, NULL, NULL, "Hello, world\n"},
    {"GET /hello.txt HTTP/1.1\nRange: lines=0-1", 200, NULL, NULL, "Hello, world\n"},
    {"HEAD /hello.txt HTTP/1.1\nRange: bytes=0-4", 200, "Content-Length", "13", ""},
    {"GET /hello.txt HTTP/1.1\nRange: bytes=0-4\nIf-Range: \"other\"", 200, NULL, NULL, "Hello, world\n"},
    {"GET /hello.txt HTTP/1.1\nIf-None-Match: *", 304, "Content-Length", "", ""},
    {"GET /hello.txt HTTP/1.1\nIf-None-Match: \"other\"", 200, NULL, NULL, "Hello, world\n"},
    {"GET /hello.txt HTTP/1.1\nIf-Match: \"other\"", 412, NULL, NULL, NULL},
    {"GET /hello.txt HTTP/1.1\nIf-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT", 412, NULL, NULL, NULL},
};

START_TEST(responds_to_each_case)
{
    set_up(SITE);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        loopback_request(&server, cases[i].request);
        ck_assert_msg(server.status == cases[i].status, "%s: %d", cases[i].request, server.status);
        if (cases[i].field)
            ck_assert_text(loopback_field(&server, cases[i].field), cases[i].value);
        if (cases[i].body)
            ck_assert_text(server.body, cases[i].body);
    }
    ck_assert(loopback_logged(&server, "www/outside\" failed (18: Invalid cross-device link); an absolute link, or "
                                       "one that leads out of the root, is followed only with \"disable_symlinks: "
                                       "off\""));
    ck_assert(loopback_logged(&server, "directory index of"));
    loopback_close(&server);
}
END_TEST

START_TEST(same_responses_without_a_cache)
{
    set_up("http: {open_file_cache: off, server: {listen: 8080, root: @/www}}");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        loopback_request(&server, cases[i].request);
        ck_assert_msg(server.status == cases[i].status, "%s: %d", cases[i].request, server.status);
        if (cases[i].body)
            ck_assert_text(server.body, cases[i].body);
    }
    loopback_close(&server);
}
END_TEST

/* off: links are followed as in nginx. A path from the client still cannot leave the root. */
START_TEST(links_with_disable_symlinks_off)
{
    set_up("http: {server: {listen: 8080, root: @/www, index: $arg_index, disable_symlinks: off}}");
    loopback_request(&server, "GET /outside HTTP/1.1");
    ck_assert_int_eq(server.status, 200);
    ck_assert_text(server.body, "secret");
    loopback_request(&server, "GET /absolute HTTP/1.1");
    ck_assert_int_eq(server.status, 200);
    loopback_request(&server, "GET /inside HTTP/1.1");
    ck_assert_text(server.body, "Hello, world\n");
    loopback_request(&server, "GET /%2e%2e/secret HTTP/1.1");
    ck_assert_int_eq(server.status, 400);
    loopback_request(&server, "GET /?index=../secret HTTP/1.1");
    ck_assert_int_eq(server.status, 403);
    loopback_link(&server, "/proc/self/root/etc/passwd", "www/magic");
    loopback_request(&server, "GET /magic HTTP/1.1");
    ck_assert_int_eq(server.status, 403);
    loopback_close(&server);
}
END_TEST

START_TEST(links_of_other_owners)
{
    set_up("http: {merge_slashes: off, server: {listen: 8080, root: @/www, disable_symlinks: if_not_owner}}");
    loopback_request(&server, "GET //inside HTTP/1.1");
    ck_assert_int_eq(server.status, 200);
    loopback_request(&server, "GET //folder HTTP/1.1");
    ck_assert_text(loopback_field(&server, "Location"), "/folder/");
    loopback_request(&server, "GET /outside HTTP/1.1");
    ck_assert_int_eq(server.status, 200);
    if (geteuid() == 0) {
        loopback_link(&server, "hello.txt", "www/foreign");
        ck_assert_int_eq(lchown(loopback_path(&server, "www/foreign"), 65534, 65534), 0);
        loopback_request(&server, "GET /foreign HTTP/1.1");
        ck_assert_int_eq(server.status, 403);
        ck_assert(loopback_logged(&server, "disable_symlinks rejects the link"));
    }
    loopback_close(&server);
}
END_TEST

START_TEST(not_modified_carries_what_200_would)
{
    char request[512];
    char etag[128];
    char modified[64];

    set_up("http: {add_header: {Cache-Control: max-age=60, X-Good: 'yes'}, server: {listen: 8080, root: "
           "@/www}}");
    loopback_request(&server, "GET /hello.txt HTTP/1.1");
    snprintf(etag, sizeof(etag), STR_FMT, STR_ARG(loopback_field(&server, "ETag")));
    snprintf(modified, sizeof(modified), STR_FMT, STR_ARG(loopback_field(&server, "Last-Modified")));
    snprintf(request, sizeof(request), "GET /hello.txt HTTP/1.1\nIf-None-Match: %s", etag);
    loopback_request(&server, request);
    ck_assert_int_eq(server.status, 304);
    ck_assert_text(loopback_field(&server, "ETag"), etag);
    ck_assert_text(loopback_field(&server, "Last-Modified"), modified);
    ck_assert_text(loopback_field(&server, "Cache-Control"), "max-age=60");
    ck_assert_text(server.body, "");
    snprintf(request, sizeof(request), "GET /hello.txt HTTP/1.1\nIf-Modified-Since: %s", modified);
    loopback_request(&server, request);
    ck_assert_int_eq(server.status, 304);
    snprintf(request, sizeof(request), "GET /hello.txt HTTP/1.1\nRange: bytes=0-4\nIf-Range: %s", etag);
    loopback_request(&server, request);
    ck_assert_int_eq(server.status, 206);
    loopback_close(&server);
}
END_TEST

START_TEST(several_ranges_are_a_multipart)
{
    char expected[1024];
    struct str type;
    struct str boundary;

    set_up(SITE);
    loopback_request(&server, "GET /hello.txt HTTP/1.1\nRange: bytes=0-4, 7-11");
    ck_assert_int_eq(server.status, 206);
    type = loopback_field(&server, "Content-Type");
    ck_assert(str_starts(type, STR("multipart/byteranges; boundary=")));
    ck_assert_text(loopback_field(&server, "Content-Range"), "");
    boundary = str_skip(type, sizeof("multipart/byteranges; boundary=") - 1);
    snprintf(expected, sizeof(expected),
             "--" STR_FMT
             "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 0-4/13\r\n\r\nHello"
             "\r\n--" STR_FMT
             "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 7-11/13\r\n\r\nworld"
             "\r\n--" STR_FMT "--\r\n",
             STR_ARG(boundary), STR_ARG(boundary), STR_ARG(boundary));
    ck_assert_text(server.body, expected);
    loopback_close(&server);
}
END_TEST

START_TEST(large_files_and_their_ends)
{
    static char large[300000];
    struct str content = str_of(large, sizeof(large));

    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)('a' + i % 23);
    set_up(SITE);
    loopback_write(&server, "www/large", content);
    loopback_request(&server, "GET /large HTTP/1.1");
    ck_assert_int_eq(server.status, 200);
    ck_assert(str_equal(server.body, content));
    loopback_request(&server, "GET /large HTTP/1.1\nRange: bytes=100000-100004,299999-");
    ck_assert_int_eq(server.status, 206);
    ck_assert_int_ge(str_search(server.body, STR("bytes 299999-299999/300000")), 0);
    loopback_close(&server);
}
END_TEST

START_TEST(settings_of_the_location_apply)
{
    set_up("http: {server: {listen: 8080, root: @/www, etag: off, max_ranges: 0, disable_symlinks: on, "
           "charset: off, "
           "default_type: text/plain, types: {text/x-log: [txt]}, index: [none.html, /hello.txt], "
           "absolute_redirect: on}}");
    loopback_request(&server, "GET /hello.txt HTTP/1.1\nRange: bytes=0-1");
    ck_assert_int_eq(server.status, 200);
    ck_assert_text(loopback_field(&server, "ETag"), "");
    ck_assert_text(loopback_field(&server, "Accept-Ranges"), "");
    ck_assert_text(loopback_field(&server, "Content-Type"), "text/x-log");
    loopback_request(&server, "GET /page HTTP/1.1");
    ck_assert_text(loopback_field(&server, "Content-Type"), "text/plain");
    loopback_request(&server, "GET /inside HTTP/1.1");
    ck_assert_int_eq(server.status, 403);
    loopback_request(&server, "GET /empty/ HTTP/1.1");
    ck_assert_text(server.body, "Hello, world\n");
    loopback_request(&server, "GET /folder HTTP/1.1\nHost: example.com:9999");
    ck_assert_text(loopback_field(&server, "Location"), "http://example.com:8080/folder/");
    loopback_request_raw(&server, STR("GET /folder HTTP/1.0\r\n\r\n"));
    ck_assert_text(loopback_field(&server, "Location"), "/folder/");
    loopback_close(&server);
}
END_TEST

START_TEST(a_changed_file_is_seen_again)
{
    set_up("http: {open_file_cache_valid: 0, server: {listen: 8080, root: @/www}}");
    loopback_request(&server, "GET /hello.txt HTTP/1.1");
    ck_assert_text(server.body, "Hello, world\n");
    loopback_write(&server, "www/hello.txt", STR("changed"));
    loopback_request(&server, "GET /hello.txt HTTP/1.1");
    ck_assert_text(server.body, "changed");
    ck_assert_int_eq(unlink(loopback_path(&server, "www/hello.txt")), 0);
    loopback_request(&server, "GET /hello.txt HTTP/1.1");
    ck_assert_int_eq(server.status, 404);
    loopback_close(&server);
}
END_TEST

START_TEST(special_files_are_not_opened)
{
    set_up(SITE);
    ck_assert_int_eq(mkfifo(loopback_path(&server, "www/fifo"), 0644), 0);
    loopback_request(&server, "GET /fifo HTTP/1.1");
    ck_assert_int_eq(server.status, 403);
    if (geteuid() != 0) {
        loopback_write(&server, "www/closed", STR("x"));
        ck_assert_int_eq(chmod(loopback_path(&server, "www/closed"), 0), 0);
        loopback_request(&server, "GET /closed HTTP/1.1");
        ck_assert_int_eq(server.status, 403);
    }
    loopback_close(&server);
}
END_TEST

/* Without a free descriptor the response is 503. The next request succeeds. */
START_TEST(response_without_free_descriptors_is_503)
{
    struct rlimit before;
    struct rlimit none;
    int lowest;

    set_up(SITE);
    loopback_request(&server, "GET /page HTTP/1.1");
    while (server.worker.connections > 0) /* its descriptor is counted below */
        loopback_turn(&server, 1);
    lowest = dup(0);
    ck_assert_int_ge(lowest, 0);
    close(lowest);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){(rlim_t)lowest + 2, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    loopback_request(&server, "GET /hello.txt HTTP/1.1");
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_int_eq(server.status, 503);
    ck_assert(loopback_logged(&server, "Too many open files"));
    loopback_request(&server, "GET /hello.txt HTTP/1.1");
    ck_assert_int_eq(server.status, 200);
    loopback_close(&server);
}
END_TEST

START_TEST(keepalive_time_limits_connections)
{
    static const char two[] = "GET /page HTTP/1.1\r\nHost: a\r\n\r\nGET /hello.txt HTTP/1.1\r\nHost: a\r\n"
                              "Connection: close\r\n\r\n";

    set_up(SITE);
    loopback_request_raw(&server, str_from(two));
    ck_assert_int_ge(str_search(buffer_str(&server.text), STR("Hello, world")), 0);
    loopback_close(&server);
    set_up("http: {keepalive_time: 0, server: {listen: 8080, root: @/www}}");
    loopback_request_raw(&server, str_from(two));
    ck_assert_int_eq(server.status, 200);
    ck_assert_text(loopback_field(&server, "Connection"), "close");
    ck_assert_text(server.body, "<p>");
    loopback_close(&server);
}
END_TEST

/*
 * Clients disconnect at each moment: before the file is found, while it is sent, after the end. loopback_close checks
 * that nothing is left.
 */
START_TEST(clients_may_disconnect)
{
    static char large[300000];

    set_up(SITE);
    memset(large, 'x', sizeof(large));
    loopback_write(&server, "www/large", str_of(large, sizeof(large)));
    for (unsigned i = 0; i < 60; i++) {
        char request[64];

        snprintf(request, sizeof(request), "GET /never-seen-%u HTTP/1.1", i);
        loopback_disconnect(&server, request, i % 6);
        snprintf(request, sizeof(request), "GET /never-seen-%u/ HTTP/1.1", i);
        loopback_disconnect(&server, request, i % 6);
        loopback_disconnect(&server, "GET /large HTTP/1.1", i % 6);
        loopback_disconnect(&server, "GET /large HTTP/1.1\nRange: bytes=0-99999,200000-", i % 6);
    }
    loopback_turn(&server, 20);
    loopback_request(&server, "GET /hello.txt HTTP/1.1");
    ck_assert_int_eq(server.status, 200);
    loopback_close(&server);
}
END_TEST

/*
 * `etag: hash`: the ETag is the first half of the SHA-256 of the content and depends on nothing else.
 */
START_TEST(etags_by_hash)
{
    static char large[100000];
    char first[64];

    loopback_make_directory(&server);
    memset(large, 'a', sizeof(large));
    loopback_write(&server, "small", STR("hello"));
    loopback_write(&server, "empty", STR(""));
    loopback_write(&server, "one", str_of(large, sizeof(large)));
    loopback_write(&server, "two", str_of(large, sizeof(large)));
    large[99999] = 'b';
    loopback_write(&server, "other", str_of(large, sizeof(large)));
    loopback_open(&server, "http: {server: {listen: 8080, root: '@/', etag: hash}}");
    loopback_request(&server, "GET /small HTTP/1.1");
    ck_assert_text(loopback_field(&server, "ETag"), "\"2cf24dba5fb0a30e26e83b2ac5b9e29e\"");
    loopback_request(&server, "GET /empty HTTP/1.1");
    ck_assert_text(loopback_field(&server, "ETag"), "\"e3b0c44298fc1c149afbf4c8996fb924\"");
    for (unsigned turns = 0; turns < 4; turns++)
        loopback_disconnect(&server, "GET /one HTTP/1.1", turns);
    loopback_request(&server, "GET /one HTTP/1.1");
    snprintf(first, sizeof(first), STR_FMT, STR_ARG(loopback_field(&server, "ETag")));
    ck_assert_uint_eq(strlen(first), 34);
    ck_assert_uint_eq(server.body.length, sizeof(large));
    loopback_request(&server, "GET /two HTTP/1.1");
    ck_assert_text(loopback_field(&server, "ETag"), first);
    loopback_request(&server, "GET /other HTTP/1.1");
    ck_assert_str_ne(first, "");
    ck_assert(!str_equal(loopback_field(&server, "ETag"), str_from(first)));
    loopback_close(&server);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        serves_a_file, responds_to_each_case, not_modified_carries_what_200_would, several_ranges_are_a_multipart,
        large_files_and_their_ends, settings_of_the_location_apply, a_changed_file_is_seen_again,
        special_files_are_not_opened, response_without_free_descriptors_is_503, keepalive_time_limits_connections,
        clients_may_disconnect, same_responses_without_a_cache, links_with_disable_symlinks_off, links_of_other_owners,
        etags_by_hash, NULL,
    };

    return loopback_run("static", tests);
}
