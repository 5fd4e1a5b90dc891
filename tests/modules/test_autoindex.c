#include "loopback.h"

#include "../../modules/autoindex/autoindex.h"

#include <sys/stat.h>

static struct loopback server;

static const char configuration[] =
    "http:\n"
    "  server:\n"
    "    listen: 8080\n"
    "    root: '@/www'\n"
    "    location:\n"
    "      /: {autoindex: on}\n"
    "      /off/: {autoindex: off}\n"
    "      /json/: {autoindex: on, autoindex_format: json, alias: '@/www/'}\n"
    "      /html/: {autoindex: on, autoindex_format: html, autoindex_exact_size: on, "
    "autoindex_localtime: on, alias: '@/www/'}\n"
    "      /none/: {autoindex: on, disable_symlinks: on, alias: '@/www/links/'}\n"
    "      /any/: {autoindex: on, disable_symlinks: off, alias: '@/www/links/'}\n"
    "      /owner/: {autoindex: on, disable_symlinks: if_not_owner, alias: "
    "'@/www/links/'}\n";

static void make_files(void)
{
    static const char *const directories[] = {"www",       "www/off",        "www/empty", "www/sub 10",
                                          "www/sub 9", "www/sub 9/deep", "www/.git",  "www/links",
                                          "www/odd",   "www/index"};
    static const char *const files[] = {"www/a10.txt",
                                        "www/A2.txt",
                                        "www/b&<i>.txt",
                                        "www/\303\244.txt",
                                        "www/.env",
                                        "www/odd/\"q'.txt",
                                        "www/odd/x?y#z%.txt",
                                        "www/odd/javascript:alert(1)",
                                        "www/odd/\377\376.txt",
                                        "www/odd/n\nl",
                                        "www/sub 9/deep/f",
                                        "secret",
                                        "www/links/own",
                                        "www/index/index.html"};
    static char big[123456];

    loopback_make_directory(&server);
    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
        loopback_mkdir(&server, directories[i]);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        loopback_write(&server, files[i], STR("x"));
    loopback_write(&server, "www/big.bin", str_of(big, sizeof(big)));
    loopback_link(&server, "../../secret", "www/links/out");
    loopback_link(&server, "/etc/passwd", "www/links/absolute");
    loopback_link(&server, "own", "www/links/in");
    loopback_link(&server, "nowhere", "www/links/dangling");
    ck_assert_int_eq(mkfifo(loopback_path(&server, "www/links/fifo"), 0644), 0);
    loopback_open(&server, configuration);
}

static bool has(const char *text)
{
    return str_search(server.body, str_from(text)) >= 0;
}

/* The texts occur in the body in this order. */
static void check_order(const char *const *texts)
{
    struct str rest = server.body;

    for (; *texts; texts++) {
        ssize_t at = str_search(rest, str_from(*texts));

        ck_assert_msg(at >= 0, "%s is not behind what should stand before it:\n" STR_FMT, *texts,
                      STR_ARG(server.body));
        rest = str_skip(rest, (size_t)at + 1);
    }
}

START_TEST(html_listing_shows_permitted_names_only)
{
    make_files();
    loopback_request(&server, "GET / HTTP/1.1");
    ck_assert_int_eq(server.status, 200);
    ck_assert_text(loopback_field(&server, "Content-Type"), "text/html; charset=utf-8");
    ck_assert_text(loopback_field(&server, "Vary"), "Accept");
    check_order((const char *const[]){"<!doctype html>", "sub 9", "sub 10", "A2.txt", "a10.txt",
                                      "b&amp;&lt;i&gt;.txt", "big.bin", "\303\244.txt", "7 directories, 5 files",
                                      NULL});
    ck_assert(has("<a href=\"./sub%209/\"><bdi>sub 9/</bdi></a>"));
    ck_assert(has("123 kB") && has("<td>1 B<td>"));
    ck_assert(!has(".git") && !has(".env") && !has("secret") && !has("../\">../") && !has("<script"));
    loopback_request(&server, "GET /sub%209/deep/ HTTP/1.1");
    ck_assert(has("<title>/sub 9/deep/</title>") && has("<a href=\"../\">../</a>"));
    ck_assert(has(
        "<h1><a href=\"./../../\">/</a> <a href=\"./../\"><bdi>sub 9</bdi></a> / <a href=\"./\"><bdi>deep"));
    loopback_request(&server, "GET /empty/ HTTP/1.1");
    ck_assert(has("0 directories, 0 files"));
    loopback_request(&server, "HEAD / HTTP/1.1");
    ck_assert_int_eq(server.status, 200);
    ck_assert_uint_eq(server.body.length, 0);
    loopback_close(&server);
}
END_TEST

START_TEST(listing_is_sorted_by_the_query)
{
    make_files();
    loopback_request(&server, "GET /?sort=size&order=desc HTTP/1.1");
    check_order((const char *const[]){"aria-sort=\"descending\"><a href=\"?sort=size&amp;order=asc\">",
                                      "sub 10", "big.bin", "a10.txt", NULL});
    loopback_request(&server, "GET /?sort=name HTTP/1.1");
    check_order((const char *const[]){"aria-sort=\"ascending\"><a href=\"?sort=name&amp;order=desc\">",
                                      "sub 9", "A2.txt", "big.bin", NULL});
    loopback_request(&server, "GET /?order=desc&sort=name HTTP/1.1");
    check_order((const char *const[]){"sub 10", "sub 9", "big.bin", "a10.txt", "A2.txt", NULL});
    loopback_request(&server, "GET /?sort=%3Cscript%3E HTTP/1.1");
    ck_assert(!has("script") && has("sort=name"));
    loopback_close(&server);
}
END_TEST

START_TEST(odd_names_are_escaped)
{
    make_files();
    loopback_request(&server, "GET /odd/ HTTP/1.1");
    ck_assert(has("href=\"./javascript:alert(1)\"") || has("href=\"./javascript%3Aalert(1)\""));
    ck_assert(has("<bdi>&quot;q&#39;.txt</bdi>") && !has("<bdi>\""));
    ck_assert(has("href=\"./x%3Fy%23z%25.txt\""));
    ck_assert(has("href=\"./%FF%FE.txt\"><bdi>\357\277\275\357\277\275.txt"));
    ck_assert(has("href=\"./n%0Al\"><bdi>n\357\277\275l"));
    loopback_request(&server, "GET /odd/ HTTP/1.1\nAccept: application/json");
    ck_assert(has("{\"name\":\"\\\"q'.txt\",\"type\":\"file\"") && has("\"n\\nl\""));
    loopback_close(&server);
}
END_TEST

START_TEST(format_follows_accept_and_the_location)
{
    make_files();
    loopback_request(&server, "GET / HTTP/1.1\nAccept: application/json");
    ck_assert_text(loopback_field(&server, "Content-Type"), "application/json");
    ck_assert(has("{\"name\":\"sub 9\",\"type\":\"directory\",\"mtime\":\"") && has("\"size\":123456}"));
    loopback_request(&server, "GET / HTTP/1.1\nAccept: text/html, application/json;q=0.5");
    ck_assert(has("<!doctype html>"));
    loopback_request(&server, "GET /json/ HTTP/1.1\nAccept: text/html");
    ck_assert_text(loopback_field(&server, "Content-Type"), "application/json");
    ck_assert_text(loopback_field(&server, "Vary"), "");
    loopback_request(&server, "GET /html/ HTTP/1.1\nAccept: application/json");
    ck_assert(has("123456 B"));
    loopback_close(&server);
}
END_TEST

START_TEST(links_follow_disable_symlinks)
{
    make_files();
    loopback_request(&server, "GET /links/ HTTP/1.1");
    ck_assert(has(">own<") && has(">in<") && !has(">out<") && !has("absolute") && !has("dangling") &&
              !has("fifo"));
    loopback_request(&server, "GET /none/ HTTP/1.1");
    ck_assert(has(">own<") && !has(">in<") && !has(">out<"));
    loopback_request(&server, "GET /any/ HTTP/1.1");
    ck_assert(has(">own<") && has(">in<") && has(">out<") && has("absolute") && !has("dangling"));
    loopback_request(&server, "GET /owner/ HTTP/1.1");
    ck_assert_int_eq(server.status, 200);
    ck_assert(has(">own<") && has(">in<") && !has("dangling"));
    loopback_close(&server);
}
END_TEST

START_TEST(listing_that_is_off_or_hidden_is_rejected)
{
    make_files();
    loopback_request(&server, "GET /off/ HTTP/1.1");
    ck_assert_int_eq(server.status, 403);
    ck_assert(loopback_logged(&server, "directory index of"));
    loopback_request(&server, "GET /nowhere/ HTTP/1.1");
    ck_assert_int_eq(server.status, 404);
    loopback_request(&server, "GET /.git/ HTTP/1.1");
    ck_assert_int_eq(server.status, 404);
    loopback_request(&server, "GET /index/ HTTP/1.1");
    ck_assert_text(server.body, "x");
    loopback_request(&server, "POST / HTTP/1.1\nContent-Length: 0");
    ck_assert_int_eq(server.status, 403); /* 403 as in nginx: a directory without an index file */
    loopback_request(&server, "GET /any/out/ HTTP/1.1");
    ck_assert_int_eq(server.status, 404);
    for (unsigned turns = 0; turns < 6; turns++)
        loopback_disconnect(&server, "GET / HTTP/1.1", turns);
    loopback_request(&server, "GET /sub%209 HTTP/1.1");
    ck_assert_int_eq(server.status, 301);
    loopback_configuration_rejected("autoindex_format: xml", "'autoindex_format' cannot be 'xml'");
    loopback_close(&server);
}
END_TEST

static const struct {
    const char *before, *after;
} naturals[] = {
    {"a2", "a10"},   {"A2", "a10"},
    {"a", "b"},      {"a", "aa"},
    {"1.9", "1.10"}, {"a01", "a2"},
    {"A", "a"},      {"a0", "a00"},
    {"9", "10a"},    {"x99999999999999999999998", "x99999999999999999999999"},
    {"", "a"},       {"img 2.png", "img 10.png"},
};

START_TEST(numbers_in_names_sort_by_value)
{
    for (size_t i = 0; i < sizeof(naturals) / sizeof(naturals[0]); i++) {
        struct str before = str_from(naturals[i].before), after = str_from(naturals[i].after);

        ck_assert_msg(natural_compare(before, after) < 0, "%s %s", naturals[i].before, naturals[i].after);
        ck_assert_msg(natural_compare(after, before) > 0, "%s %s", naturals[i].after, naturals[i].before);
        ck_assert_int_eq(natural_compare(before, before), 0);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        html_listing_shows_permitted_names_only, listing_is_sorted_by_the_query, odd_names_are_escaped,
        format_follows_accept_and_the_location, links_follow_disable_symlinks,
        listing_that_is_off_or_hidden_is_rejected,
        numbers_in_names_sort_by_value, NULL,
    };

    return loopback_run("autoindex", tests);
}
