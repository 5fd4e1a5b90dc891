#include "loopback.h"

#include <stdio.h>
#include <sys/stat.h>

#define SITE "http: {server: {listen: 8080, root: @/www, precompressed: [br, zst, gzip]}}"

static struct loopback server;

static void set_up(const char *configuration)
{
    loopback_make_directory(&server);
    loopback_mkdir(&server, "www");
    loopback_mkdir(&server, "www/folder");
    loopback_mkdir(&server, "www/odd.css.gz");
    loopback_write(&server, "www/a.css", STR("0123456789"));
    loopback_write(&server, "www/a.css.br", STR("<br>"));
    loopback_write(&server, "www/a.css.zst", STR("<zst>"));
    loopback_write(&server, "www/a.css.gz", STR("<gzip>"));
    loopback_write(&server, "www/gzip.css", STR("plain"));
    loopback_write(&server, "www/gzip.css.gz", STR("<gzip>"));
    loopback_write(&server, "www/none.css", STR("none"));
    loopback_write(&server, "www/odd.css", STR("odd"));
    loopback_write(&server, "www/odd.css.br", STR(""));
    loopback_write(&server, "www/alone.css.gz", STR("<gzip>"));
    loopback_write(&server, "www/folder/index.html", STR("index"));
    loopback_write(&server, "www/folder/index.html.br", STR("<index>"));
    loopback_write(&server, "www/away.css", STR("away"));
    loopback_write(&server, "secret", STR("secret"));
    loopback_link(&server, "../secret", "www/away.css.br");
    loopback_open(&server, configuration);
}

static void send_request(const char *path, const char *takes)
{
    char request[512];

    snprintf(request, sizeof(request), "GET %s HTTP/1.1%s%s", path, takes[0] ? "\nAccept-Encoding: " : "",
             takes);
    loopback_request(&server, request);
}

static const struct {
    const char *path;
    const char *takes; /* Accept-Encoding, and possibly more lines */
    int status;
    const char *coding;
    const char *body;
} cases[] = {
    {"/a.css", "gzip, deflate, br, zstd", 200, "br", "<br>"},
    {"/a.css", "gzip, zstd", 200, "zstd", "<zst>"},
    {"/a.css", "gzip", 200, "gzip", "<gzip>"},
    {"/a.css", "br;q=0.5, gzip", 200, "gzip", "<gzip>"},
    {"/a.css", "*", 200, "br", "<br>"},
    {"/a.css", "", 200, "", "0123456789"},
    {"/a.css", "identity", 200, "", "0123456789"},
    {"/a.css", "identity, gzip;q=0.5", 200, "", "0123456789"},
    {"/a.css", "gzip;q=0", 200, "", "0123456789"},
    {"/a.css", "deflate", 200, "", "0123456789"},
    {"/a.css", "identity;q=0", 200, "", "0123456789"},
    {"/a.css", "identity;q=0, *;q=0", 200, "", "0123456789"},
    {"/gzip.css", "br, zstd, gzip", 200, "gzip", "<gzip>"},
    {"/gzip.css", "br, zstd", 200, "", "plain"},
    {"/none.css", "br, zstd, gzip", 200, "", "none"},
    {"/odd.css", "br, gzip", 200, "", "odd"},     /* an empty file and a directory are not used */
    {"/away.css", "br", 200, "", "away"},         /* a link that leaves the root */
    {"/alone.css", "gzip", 200, "gzip", "<gzip>"},
    {"/alone.css", "br, gzip;q=0.5", 200, "gzip", "<gzip>"},
    {"/alone.css", "br", 404, "", NULL},
    {"/alone.css", "", 404, "", NULL},
    {"/alone.css", "gzip\nIf-None-Match: *", 304, "", ""},
    {"/alone.css/x", "gzip", 404, "", NULL},
    {"/neither.css", "gzip, br", 404, "", NULL},
    {"/index.html", "br", 404, "", NULL},
    {"/alone.css.gz", "", 200, "", "<gzip>"},     /* requested by its own name */
    {"/a.css.gz", "gzip, br", 200, "", "<gzip>"}, /* and not encoded further */
    {"/folder/", "br", 200, "br", "<index>"},
    {"/folder", "br", 301, "", NULL},
    /* Ranges and preconditions apply to the encoded bytes. */
    {"/a.css", "gzip\nRange: bytes=1-4", 206, "gzip", "gzip"},
    {"/a.css", "gzip\nRange: bytes=-1", 206, "gzip", ">"},
    {"/a.css", "gzip\nRange: bytes=6-", 416, "", NULL},
    {"/a.css", "gzip\nRange: bytes=0-0,2-2", 200, "gzip", "<gzip>"},
    {"/a.css", "gzip\nIf-None-Match: *", 304, "", ""},
    {"/a.css", "gzip\nIf-Match: \"x\"", 412, "", NULL},
};

static void answers_each_case(const char *configuration)
{
    set_up(configuration);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        send_request(cases[i].path, cases[i].takes);
        ck_assert_msg(server.status == cases[i].status, "%s %s: %d", cases[i].path, cases[i].takes,
                      server.status);
        ck_assert_text(loopback_field(&server, "Content-Encoding"), cases[i].coding);
        if (cases[i].body)
            ck_assert_text(server.body, cases[i].body);
        if (server.status < 400 && server.status != 301)
            ck_assert_text(loopback_field(&server, "Vary"), "Accept-Encoding");
        if (server.status == 404 && !strstr(cases[i].path, "/x"))
            ck_assert_int_ge(str_search(server.head, STR("Vary: Accept-Encoding")), 0);
        if (server.status == 200)
            ck_assert(str_starts(loopback_field(&server, "Content-Type"),
                                 cases[i].path[strlen(cases[i].path) - 1] == 'z'   ? STR("application/gzip")
                                 : cases[i].path[strlen(cases[i].path) - 1] == '/' ? STR("text/html")
                                                                                   : STR("text/css")));
    }
    loopback_close(&server);
}

START_TEST(encoded_file_is_selected_with_a_file_cache)
{
    answers_each_case(SITE);
}
END_TEST

START_TEST(encoded_file_is_selected_without_a_file_cache)
{
    answers_each_case(
        "http: {open_file_cache: off, server: {listen: 8080, root: @/www, precompressed: br zst gzip}}");
}
END_TEST

/* HEAD has the same fields as GET. A 304 is sent only for the ETag of the selected encoding. */
static void validators(const char *etag)
{
    static const char *const takes[] = {"br", "zstd", "gzip", "identity"};
    char configuration[256], etags[4][100], request[600];

    snprintf(configuration, sizeof(configuration),
             "http: {server: {listen: 8080, root: @/www, precompressed: [br, zst, gzip], etag: %s}}", etag);
    set_up(configuration);
    loopback_write(&server, "www/a.css.zst", STR("<br>")); /* the same size, and possibly the same modification time */
    for (size_t i = 0; i < 4; i++) {
        snprintf(request, sizeof(request), "HEAD /a.css HTTP/1.1\nAccept-Encoding: %s", takes[i]);
        loopback_request(&server, request);
        ck_assert_int_eq(server.status, 200);
        ck_assert_text(loopback_field(&server, "Content-Encoding"), i < 3 ? takes[i] : "");
        ck_assert_text(loopback_field(&server, "Content-Length"), i == 3 ? "10" : i == 2 ? "6" : "4");
        snprintf(etags[i], sizeof(etags[i]), STR_FMT, STR_ARG(loopback_field(&server, "ETag")));
        ck_assert_int_eq(etags[i][0], '"');
    }
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 4; k++) {
            snprintf(request, sizeof(request), "GET /a.css HTTP/1.1\nAccept-Encoding: %s\nIf-None-Match: %s",
                     takes[i], etags[k]);
            loopback_request(&server, request);
            ck_assert_msg(server.status == (i == k ? 304 : 200), "%s, %s: %d", request, etag, server.status);
            ck_assert_text(loopback_field(&server, "ETag"), etags[i]);
        }
    }
    loopback_close(&server);
}

START_TEST(etags_of_each_coding)
{
    validators("mtime");
}
END_TEST

START_TEST(gzip_static_serves_the_gz_file)
{
    set_up("http: {server: {listen: 8080, root: @/www, gzip_static: on, location: {/: {}, "
           "/folder/: {gzip_static: off, precompressed: [br]}}}}");
    send_request("/a.css", "br, gzip");
    ck_assert_text(server.body, "<gzip>");
    send_request("/a.css", "br");
    ck_assert_text(server.body, "0123456789");
    ck_assert_text(loopback_field(&server, "Vary"), "Accept-Encoding");
    send_request("/folder/", "br");
    ck_assert_text(server.body, "<index>");
    send_request("/alone.css", "gzip");
    ck_assert_text(server.body, "<gzip>");
    send_request("/alone.css", "identity");
    ck_assert_int_eq(server.status, 404);
    loopback_request(&server, "POST /alone.css HTTP/1.1\nAccept-Encoding: gzip\nContent-Length: 0");
    ck_assert_int_eq(server.status, 404);
    loopback_close(&server);
    set_up("http: {server: {listen: 8080, root: @/www, gzip_static: always, precompressed: br}}");
    send_request("/a.css", "");
    ck_assert_text(server.body, "<gzip>");
    ck_assert_text(loopback_field(&server, "Content-Encoding"), "gzip");
    send_request("/a.css", "br");
    ck_assert_text(server.body, "<br>");
    send_request("/a.css", "zstd");
    ck_assert_text(server.body, "<gzip>");
    send_request("/a.css", "gzip");
    ck_assert_text(server.body, "<gzip>");
    send_request("/alone.css", "");
    ck_assert_text(server.body, "<gzip>");
    ck_assert_text(loopback_field(&server, "Content-Encoding"), "gzip");
    send_request("/neither.css", "");
    ck_assert_int_eq(server.status, 404);
    loopback_close(&server);
}
END_TEST

/* Where `precompressed` is off, no other file is opened, and there is no Vary. */
START_TEST(disabled_by_off)
{
    set_up("http: {precompressed: [br], server: {listen: 8080, root: @/www, precompressed: off}}");
    send_request("/a.css", "br, gzip");
    ck_assert_text(server.body, "0123456789");
    ck_assert_text(loopback_field(&server, "Content-Encoding"), "");
    ck_assert_text(loopback_field(&server, "Vary"), "");
    send_request("/alone.css", "gzip");
    ck_assert_int_eq(server.status, 404);
    loopback_close(&server);
}
END_TEST

/* The encoded file is beside the file of an alias, of a location, of an error page. */
START_TEST(aliases_and_error_pages)
{
    set_up("http: {server: {listen: 8080, root: @/www, precompressed: [br], error_page: 404 /a.css, "
           "location: {"
           "= /one: {alias: @/www/a.css}, /many/: {alias: @/www/}, '~ ^/x/(.*)$': {alias: @/www/$1}, "
           "/try: {try_files: /none.css /a.css}}}}");
    send_request("/one", "br");
    ck_assert_text(server.body, "<br>");
    send_request("/many/a.css", "br");
    ck_assert_text(server.body, "<br>");
    send_request("/x/a.css", "br");
    ck_assert_text(server.body, "<br>");
    send_request("/try", "br");
    ck_assert_text(server.body, "none");
    send_request("/nowhere", "br");
    ck_assert_int_eq(server.status, 404);
    ck_assert_text(server.body, "<br>");
    ck_assert_text(loopback_field(&server, "Content-Encoding"), "br");
    loopback_close(&server);
}
END_TEST

/*
 * A client that disconnects while the file is being opened leaves no entry behind (LeakSanitizer and the check at the
 * end of the cache).
 */
START_TEST(clients_may_disconnect)
{
    set_up("http: {open_file_cache: off, server: {listen: 8080, root: @/www, precompressed: [br, zst, gzip], "
           "etag: hash}}");
    for (unsigned turns = 0; turns < 6; turns++)
        loopback_disconnect(&server, "GET /a.css HTTP/1.1\nAccept-Encoding: gzip, br, zstd", turns);
    for (unsigned turns = 0; turns < 6; turns++)
        loopback_disconnect(&server, "GET /neither.css HTTP/1.1\nAccept-Encoding: gzip, br, zstd", turns);
    send_request("/a.css", "gzip");
    ck_assert_text(server.body, "<gzip>");
    loopback_close(&server);
}
END_TEST

START_TEST(invalid_configurations_are_rejected)
{
    loopback_configuration_rejected("precompressed: [br, lzma]", "\"lzma\" is not a content coding");
    loopback_configuration_rejected("precompressed: [gz, br, gzip]", "\"gzip\" is duplicate");
    loopback_configuration_rejected("precompressed: {br: on}", "precompressed");
    loopback_configuration_rejected("gzip_static: maybe", "gzip_static");
}
END_TEST

START_TEST(etags_by_hash)
{
    set_up("http: {server: {listen: 8080, root: @/www, precompressed: [gz], etag: hash}}");
    char etag[100], request[300];

    send_request("/a.css", "gzip");
    snprintf(etag, sizeof(etag), STR_FMT, STR_ARG(loopback_field(&server, "ETag")));
    send_request("/a.css", "");
    ck_assert(!str_equal(loopback_field(&server, "ETag"), str_from(etag)));
    snprintf(request, sizeof(request), "gzip\nIf-None-Match: %s", etag);
    send_request("/a.css", request);
    ck_assert_int_eq(server.status, 304);
    loopback_close(&server);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        encoded_file_is_selected_with_a_file_cache, encoded_file_is_selected_without_a_file_cache, etags_of_each_coding,
        etags_by_hash, gzip_static_serves_the_gz_file, disabled_by_off, aliases_and_error_pages, clients_may_disconnect,
        invalid_configurations_are_rejected, NULL,
    };

    return loopback_run("precompressed", tests);
}
