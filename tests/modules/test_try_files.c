#include "loopback.h"

#include <stdio.h>

static struct loopback server;

static const char configuration[] =
    "http:\n"
    "  server:\n"
    "    listen: 8080\n"
    "    root: '@/www'\n"
    "    location:\n"
    "      /: {try_files: [$uri, $uri/, '/spa.html?from=$uri']}\n"
    "      /html/: {try_files: '$uri $uri.html =404'}\n"
    "      /named/: {try_files: [$uri, '@app']}\n"
    "      /nobody/: {try_files: [$uri, '@nobody']}\n"
    "      /status/: {try_files: [$uri, =503], error_page: [503 /busy.html]}\n"
    "      /round/: {try_files: [$uri, /round/again]}\n"
    "      /climb/: {try_files: [/../secret, '/%2e%2e/secret', =404]}\n"
    "      /hidden/: {try_files: [/.env, =404]}\n"
    "      /other/: {try_files: [other.txt, =404]}\n"
    "      '@app': {return: '200 \"app $uri\"'}\n"
    "      /i/: {alias: '@/pictures/'}\n"
    "      /j: {alias: '@/pictures'}\n"
    "      /t/: {alias: '@/pictures/', try_files: [$uri, /t/a.txt]}\n"
    "      = /one: {alias: '@/pictures/a.txt'}\n"
    "      ~ ^/user/(\\w+)/(.*)$: {alias: '@/pictures/$1/$2'}\n"
    "      ~ ^/bad(.*)$: {alias: '@/pictures/$1'}\n"
    "      ~ ^/whole/(.*)$: {alias: '@/pictures', try_files: [/$1, /$1/, /ann/b.txt, =404]}\n"
    "      ~ ^/kind/(.*)$: {alias: '@/pictures/$1', try_files: [$uri, $uri.txt, =404]}\n"
    "      ~ ^/kept-(.*)$: {alias: '@/pictures/.kept/$1'}\n"
    "      ~ ^/of-(\\w+)-(.*)$: {alias: '@/$1/.kept/$2'}\n"
    "      = /dot: {alias: '@/www/.env'}\n"
    "      /up/: {root: '@/pictures/$arg_d'}\n"
    "      /inner/: {alias: '@/pictures/', location: {/inner/www/: {root: '@/'}}}\n"
    "      /name: {alias: '@/pictures/', location: {'~ ^/name': {return: '200 "
    "$request_filename'}}}\n"
    "      /filename/: {alias: '@/pictures/', location: {/filename/: {}}}\n";

static const struct {
    const char *path;
    int status;
    const char *body; /* NULL: not checked */
} cases[] = {
    {"/there.txt", 200, "there"},
    {"/folder/", 200, "index of folder"},
    {"/folder", 301, NULL}, /* $uri/ exists, and static redirects to it */
    {"/missing", 200, "spa"},
    {"/missing/deep?x=1", 200, "spa"},
    {"/html/page", 200, "page"},
    {"/html/page.html", 200, "page"},
    {"/html/none", 404, NULL},
    {"/named/none", 200, "app /named/none"},
    {"/nobody/none", 500, NULL},
    {"/status/none", 503, "busy"},
    {"/round/none", 500, NULL},
    {"/climb/x", 404, NULL},
    {"/hidden/x", 404, NULL},
    {"/other/x", 200, "other"},
    {"/whole/a.txt", 200, "a"},
    {"/whole/ann/b.txt", 200, "b"},
    {"/whole/ann/up/x", 200, "x of ann"},
    {"/whole/none", 200, "b"},
    {"/whole/ann", 301, NULL},
    {"/kind/a.txt", 200, "a"},
    {"/kind/a", 200, "a"}, /* $uri.txt */
    {"/kind/ann/b", 200, "b"},
    {"/kind/none", 404, NULL},
    {"/i/a.txt", 200, "a"},
    {"/i/none", 404, NULL},
    {"/i/ann/b.txt", 200, "b"},
    {"/i/ann", 301, NULL},
    {"/j/a.txt", 200, "a"},
    {"/j../www/there.txt", 404, NULL},
    {"/jann/b.txt", 404, NULL}, /* nginx would use "picturesann", which is outside the directory */
    {"/t/none", 200, "a"},
    {"/t/ann/b.txt", 200, "b"},
    {"/one", 200, "a"},
    {"/one/", 200, "spa"},
    {"/user/ann/b.txt", 200, "b"},
    {"/user/ann/../b.txt", 200, "spa"},
    {"/bad/../secret", 200, "spa"},
    {"/bad../secret", 404, NULL},
    {"/j.git/config", 404, NULL},
    {"/bad.git/config", 404, NULL},
    {"/badann/.git/config", 404, NULL},
    {"/kept-c.txt", 200, "c"},
    {"/kept-.git", 404, NULL},
    {"/of-pictures-c.txt", 200, "c"},
    {"/dot", 200, "secret"},
    {"/up/x", 404, NULL},
    {"/up/x?d=ann", 200, "x of ann"},
    {"/up/x?d=..", 404, NULL},
    {"/up/x?d=ann/../..", 404, NULL},
    {"/inner/a.txt", 200, "a"},
    {"/inner/www/x", 404, NULL},
    {"/filename/a.txt", 200, "a"},
};

static void make_files(void)
{
    static const struct {
        const char *path;
        const char *content; /* NULL: a directory */
    } files[] = {
        {"www", NULL},
        {"www/folder", NULL},
        {"www/html", NULL},
        {"pictures", NULL},
        {"pictures/ann", NULL},
        {"pictures/ann/up", NULL},
        {"pictures/.git", NULL},
        {"pictures/.kept", NULL},
        {"up", NULL},
        {"www/there.txt", "there"},
        {"www/spa.html", "spa"},
        {"www/html/page.html", "page"},
        {"www/folder/index.html", "index of folder"},
        {"www/other.txt", "other"},
        {"www/busy.html", "busy"},
        {"www/.env", "secret"},
        {"secret", "secret"},
        {"pictures/a.txt", "a"},
        {"pictures/ann/b.txt", "b"},
        {"pictures/ann/up/x", "x of ann"},
        {"pictures/.git/config", "secret"},
        {"pictures/.kept/.git", "secret"},
        {"pictures/.kept/c.txt", "c"},
        {"up/x", "secret"},
    };

    loopback_make_directory(&server);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (files[i].content)
            loopback_write(&server, files[i].path, str_from(files[i].content));
        else
            loopback_mkdir(&server, files[i].path);
    }
}

START_TEST(responds_to_each_case)
{
    make_files();
    loopback_open(&server, configuration);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char request[128];

        snprintf(request, sizeof(request), "GET %s HTTP/1.1", cases[i].path);
        loopback_request(&server, request);
        ck_assert_msg(server.status == cases[i].status, "%s: %d", cases[i].path, server.status);
        if (cases[i].body)
            ck_assert_text(server.body, cases[i].body);
    }
    loopback_request(&server, "GET /i/ann?q HTTP/1.1");
    ck_assert_text(loopback_field(&server, "Location"), "/i/ann/?q");
    ck_assert(loopback_logged(&server, "there is no location \"@nobody\""));
    ck_assert(loopback_logged(&server, "internally redirected more than 10 times"));
    loopback_close(&server);
}
END_TEST

START_TEST(request_filename_is_the_found_file)
{
    char expected[128];

    make_files();
    loopback_open(&server, configuration);
    loopback_request(&server, "GET /name/ann/b.txt HTTP/1.1");
    snprintf(expected, sizeof(expected), "%s/pictures/ann/b.txt", server.directory);
    ck_assert_text(server.body, expected);
    loopback_close(&server);
}
END_TEST

START_TEST(clients_may_disconnect)
{
    make_files();
    loopback_open(&server, configuration);
    for (unsigned turns = 0; turns < 6; turns++)
        loopback_disconnect(&server, "GET /missing HTTP/1.1", turns);
    loopback_request(&server, "GET /missing HTTP/1.1");
    ck_assert_text(server.body, "spa");
    loopback_close(&server);
}
END_TEST

START_TEST(invalid_configurations_are_rejected)
{
    loopback_configuration_rejected("try_files: $uri",
                                    "try_files takes files, and a URI, @name or =status that is used if none of them "
                                    "exists");
    loopback_configuration_rejected("try_files: [$uri, =99]", "\"=99\" is not a status");
    loopback_configuration_rejected("try_files: [$uri, =x]", "\"=x\" is not a status");
    loopback_configuration_rejected("try_files: [$nobody, =404]", "unknown variable $nobody");
    loopback_configuration_rejected("alias: /srv", "'alias' is not allowed in server");
    loopback_configuration_rejected("location: {/: {alias: /a, root: /b}}", "root and alias are set in one location");
    loopback_configuration_rejected("location: {'@a': {alias: /tmp}}", "a named location has no alias");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        responds_to_each_case, request_filename_is_the_found_file, clients_may_disconnect,
        invalid_configurations_are_rejected, NULL,
    };

    return loopback_run("try_files", tests);
}
