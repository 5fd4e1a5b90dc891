#include "loopback.h"

#include <stdio.h>

static struct loopback server;

static const struct {
    const char *path;
    int status;
    const char *field; /* NULL: not checked */
    const char *value;
    const char *body;
} cases[] = {
    {"/text", 200, "Content-Type", "text/plain; charset=utf-8", "ok"},
    {"/words?n=7", 200, NULL, NULL, "two words, 7"},
    {"/empty", 204, "Content-Type", "", ""},
    {"/json", 200, "Content-Type", "application/json", "{\"a\": 1}"},
    {"/gone", 410, "Content-Type", "text/html; charset=utf-8", NULL},
    {"/gone-said", 410, NULL, NULL, "It is gone."},
    {"/moved?a=b", 308, "Location", "https://example.com/moved?a=b", NULL},
    {"/local", 301, "Location", "/there", NULL},
    {"/url", 302, "Location", "https://example.com/", NULL},
    {"/list", 201, NULL, NULL, "made it"},
    {"/outer/", 403, NULL, NULL, NULL},
    {"/outer/inner/", 404, NULL, NULL, NULL},
    {"/style.css", 200, "Content-Type", "text/css; charset=utf-8", "css"},
    {"/anything", 404, NULL, NULL, NULL},
};

START_TEST(responds_to_each_case)
{
    loopback_open(&server, "http:\n"
                           "  server:\n"
                           "    listen: 8080\n"
                           "    location:\n"
                           "      /text: {return: 200 ok}\n"
                           "      /words: {return: '200 \"two words, $arg_n\"'}\n"
                           "      /empty: {return: 204}\n"
                           "      /json: {default_type: application/json, return: [200, '{\"a\": 1}']}\n"
                           "      /gone: {return: 410}\n"
                           "      /gone-said: {return: [410, It is gone.]}\n"
                           "      /moved: {return: '308 https://example.com$request_uri'}\n"
                           "      /local: {return: 301 /there}\n"
                           "      /url: {return: 'https://example.com/'}\n"
                           "      /list: {return: [201, made it]}\n"
                           "      /style.css: {return: 200 css}\n"
                           "      /outer/: {return: 403, location: {/outer/inner/: {}}}\n"
                           "      /cut: {return: 444}\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char request[128];

        snprintf(request, sizeof(request), "GET %s HTTP/1.1", cases[i].path);
        loopback_request(&server, request);
        ck_assert_msg(server.status == cases[i].status, "%s: %d", cases[i].path, server.status);
        if (cases[i].field)
            ck_assert_text(loopback_field(&server, cases[i].field), cases[i].value);
        if (cases[i].body)
            ck_assert_text(server.body, cases[i].body);
    }
    loopback_request(&server, "GET /cut HTTP/1.1");
    ck_assert_int_eq(server.status, 0);
    ck_assert_uint_eq(server.text.length, 0);
    loopback_request(&server, "POST /text HTTP/1.1\nContent-Length: 0");
    ck_assert_text(server.body, "ok");
    loopback_close(&server);
}
END_TEST

START_TEST(server_return_precedes_locations)
{
    loopback_open(
        &server,
        "http: {server: {listen: 8080, return: '301 https://$host$request_uri', absolute_redirect: on, "
        "add_header: X-Of server, location: {/a: {add_header: X-Of a}, /b: {return: 200 b}}}}");
    loopback_request(&server, "GET /a HTTP/1.1\nHost: example.com");
    ck_assert_text(loopback_field(&server, "Location"), "https://example.com/a");
    ck_assert_text(loopback_field(&server, "X-Of"), "server");
    loopback_request(&server, "GET /b HTTP/1.1\nHost: example.com");
    ck_assert_text(loopback_field(&server, "Location"), "https://example.com/b");
    loopback_close(&server);
}
END_TEST

static const struct {
    const char *text;
    const char *expected;
} mistakes[] = {
    {"return: ok", "not a status"},
    {"return: 301", "requires a URL"},
    {"return: 200 a b c", "takes a status and one text"},
    {"return: 99", "not a status"},
    {"return: 200 $nothing_like_it", "nothing_like_it"},
    {"return:", "return"},
};

START_TEST(invalid_configurations_are_rejected)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
        loopback_configuration_rejected(mistakes[i].text, mistakes[i].expected);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        responds_to_each_case, server_return_precedes_locations, invalid_configurations_are_rejected, NULL,
    };

    return loopback_run("return", tests);
}
