#include "loopback.h"

#include "server/error_body.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <unistd.h>

static struct loopback server;

START_TEST(built_in_page_has_status_and_reason)
{
    loopback_open(&server, "http: {server: {listen: 8080, root: @/}}");
    loopback_request(&server, "GET /absent HTTP/1.1");
    ck_assert_int_eq(server.status, 404);
    ck_assert_text(loopback_field(&server, "Content-Type"), "text/html; charset=utf-8");
    ck_assert_int_ge(str_search(server.body, STR("404 Not Found")), 0);
    ck_assert_int_ge(str_search(server.body, STR("prefers-color-scheme:dark")), 0);
    ck_assert_int_lt(str_search(server.body, STR("sluice")), 0);
    ck_assert_uint_lt(server.body.length, 1400);
    loopback_request(&server, "HEAD /absent HTTP/1.1");
    ck_assert_int_eq(server.status, 404);
    ck_assert_text(server.body, "");
    loopback_request_raw(&server, STR("GET / HTTP/1.1\r\n\r\n"));
    ck_assert_int_eq(server.status, 400);
    ck_assert_int_ge(str_search(server.body, STR("400 Bad Request")), 0);
    loopback_close(&server);
}
END_TEST

static const struct {
    const char *request;
    int status;
    const char *body; /* NULL: not checked */
    const char *field;
    const char *value;
} cases[] = {
    {"GET /absent HTTP/1.1", 404, "not here", "Content-Type", "text/html; charset=utf-8"},
    {"HEAD /absent HTTP/1.1", 404, "", "Content-Length", "8"},
    {"GET /absent HTTP/1.1\nRange: bytes=0-1", 404, "not here", NULL, NULL},
    {"GET /absent HTTP/1.1\nIf-None-Match: *", 404, "not here", NULL, NULL},
    {"POST /page.html HTTP/1.1\nContent-Length: 0", 405, "not here", "Allow", "GET, HEAD, OPTIONS"},
    {"POST /calm.html HTTP/1.1\nContent-Length: 0", 200, "not here", "Allow", ""},
    {"POST /own.html HTTP/1.1\nContent-Length: 0", 200, "fallback /own.html", "Allow", ""},
    {"GET /errors/404.html HTTP/1.1", 404, "not here", NULL, NULL}, /* an internal location */
    {"GET /calm HTTP/1.1", 200, "not here", NULL, NULL},
    {"GET /own HTTP/1.1", 200, "fallback /own", NULL, NULL},
    {"GET /own?a=b HTTP/1.1", 200, "fallback /own?a=b", NULL, NULL},
    {"GET /named HTTP/1.1", 502, "fallback /named", NULL, NULL},
    {"GET /away HTTP/1.1", 302, NULL, "Location", "https://example.com/away"},
    {"GET /away-for-good HTTP/1.1", 301, NULL, "Location", "https://example.com/"},
    {"GET /away-unmodified HTTP/1.1", 302, NULL, "Location", "https://example.com/"}, /* 304 is no redirect */
    {"GET /said?a=b HTTP/1.1", 500, "said  at /page", NULL, NULL},
    {"GET /asked?a=b HTTP/1.1", 500, "said c=d at /page", NULL, NULL},
    {"GET /missing HTTP/1.1", 404, NULL, NULL, NULL}, /* the error of the missing page, as in nginx */
    {"GET /nobody HTTP/1.1", 500, NULL, NULL, NULL},
    {"GET /round HTTP/1.1", 403, NULL, NULL, NULL},
    /* as in nginx: an error or redirect of the page itself decides the status; otherwise the first error decides it */
    {"GET /to-error HTTP/1.1", 503, NULL, NULL, NULL},
    {"GET /to-error-now HTTP/1.1", 503, NULL, NULL, NULL},
    {"GET /to-error-but HTTP/1.1", 503, NULL, NULL, NULL},
    {"GET /to-named HTTP/1.1", 410, NULL, NULL, NULL},
    {"GET /to-nothing HTTP/1.1", 404, "", NULL, NULL},
    {"GET /to-nothing-now HTTP/1.1", 204, "", NULL, NULL},
    {"GET /to-nothing-but HTTP/1.1", 200, "", NULL, NULL},
    {"GET /to-empty HTTP/1.1", 404, "", NULL, NULL},
    {"GET /to-place HTTP/1.1", 301, NULL, "Location", "/there"},
    {"GET /to-words HTTP/1.1", 404, "words", NULL, NULL},
};

static const struct {
    const char *path, *accept; /* NULL: none */
    const char *type, *front;
} forms[] = {
    {"/absent", NULL, "text/html; charset=utf-8", "<!doctype html>"},
    {"/absent", "*/*", "text/html; charset=utf-8", "<!doctype html>"},
    {"/absent", "image/png", "text/html; charset=utf-8", "<!doctype html>"},
    {"/absent", "text/html,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=utf-8", "<!doctype html>"},
    {"/absent", "application/json", "application/json",
     "{\"status\":404,\"title\":\"Not Found\",\"detail\":\"T"},
    {"/absent", "application/json, */*", "text/html; charset=utf-8", "<!doctype html>"},
    {"/absent", "application/json, */*;q=0.5", "application/json", "{\"status\":404"},
    {"/absent", "application/problem+json", "application/problem+json", "{\"status\":404"},
    {"/absent", "text/plain", "text/plain; charset=utf-8",
     "404 Not Found\nThis server has no page at this address.\nReq"},
    {"/absent", "text/plain;q=0.5, application/json;q=0.6", "application/json", "{"},
    {"/html", "application/json", "text/html; charset=utf-8", "<!doctype html>"},
    {"/json", "text/html", "application/json", "{\"status\":503,\"title\":\"Service Unavailable\""},
    {"/text", "text/html", "text/plain; charset=utf-8", "503 Service Unavailable\nThe server is busy"},
};

static bool is_in_access_log(struct str id)
{
    char log[65536];
    int fd = open(loopback_path(&server, "log"), O_RDONLY);
    ssize_t length = read(fd, log, sizeof(log));

    close(fd);
    ck_assert_int_ge(length, 0);
    return str_search(str_of(log, (size_t)length), id) >= 0;
}

/* The request id on the page is in both logs. */
static void find_id(const char *mark)
{
    struct str behind = str_skip(server.body, (size_t)str_search(server.body, str_from(mark)) + strlen(mark));
    struct str id = str_slice(behind, 0, 32);
    char text[64];

    ck_assert_int_ge(str_search(server.body, str_from(mark)), 0);
    ck_assert_uint_eq(id.length, 32);
    for (int i = 0; i < 500 && !is_in_access_log(id); i++)
        loopback_skip_and_turn(&server, 20);
    ck_assert(is_in_access_log(id));
    snprintf(text, sizeof(text), ", id: " STR_FMT, STR_ARG(id));
    ck_assert(loopback_logged(&server, text));
}

START_TEST(built_in_page_follows_accept)
{
    loopback_make_directory(&server);
    loopback_open(&server, "http:\n  access_log: @/log\n  server:\n    listen: 8080\n    root: @/\n    location:\n"
                           "      /html: {return: 503, error_page_format: html}\n"
                           "      /json: {return: 503, error_page_format: json}\n"
                           "      /text: {return: 503, error_page_format: text}\n"
                           "      /moved: {return: 301 /there}\n"
                           "      /closed: {deny: all}\n");
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        char head[256];
        bool negotiated = strcmp(forms[i].path, "/absent") == 0;

        snprintf(head, sizeof(head), "GET %s HTTP/1.1%s%s", forms[i].path, forms[i].accept ? "\nAccept: " : "",
                 forms[i].accept ? forms[i].accept : "");
        loopback_request(&server, head);
        ck_assert_text(loopback_field(&server, "Content-Type"), forms[i].type);
        ck_assert_msg(str_starts(server.body, str_from(forms[i].front)), "%s:\n" STR_FMT, head, STR_ARG(server.body));
        ck_assert_text(loopback_field(&server, "Vary"), negotiated ? "Accept" : "");
    }
    loopback_request(&server, "GET /moved HTTP/1.1\nAccept: application/json");
    ck_assert_text(loopback_field(&server, "Vary"), "");
    ck_assert_text(loopback_field(&server, "Content-Security-Policy"), "");
    ck_assert_int_lt(str_search(server.body, STR("Request")), 0);
    loopback_request(&server, "GET /closed HTTP/1.1");
    find_id("<code>");
    loopback_request(&server, "GET /closed HTTP/1.1\nAccept: application/json");
    find_id("\"request_id\":\"");
    loopback_close(&server);
}
END_TEST

/* The page's Content-Security-Policy permits its own style. */
START_TEST(style_is_permitted_by_the_policy)
{
    unsigned char digest[EVP_MAX_MD_SIZE], encoded[2 * EVP_MAX_MD_SIZE];
    unsigned size = 0;
    char policy[256];
    struct str style;
    int start, end;

    loopback_open(&server, "http: {server: {listen: 8080, root: @/, security_headers: strict}}");
    loopback_request(&server, "GET /absent HTTP/1.1");
    start = str_search(server.body, STR("<style>")) + 7;
    end = str_search(server.body, STR("</style>"));
    ck_assert_int_gt(start, 7);
    ck_assert_int_gt(end, start);
    style = str_slice(server.body, (size_t)start, (size_t)end);
    ck_assert_int_eq(EVP_Digest(style.data, style.length, digest, &size, EVP_sha256(), NULL), 1);
    EVP_EncodeBlock(encoded, digest, (int)size);
    snprintf(policy, sizeof(policy), "style-src 'sha256-%s'", (const char *)encoded);
    ck_assert_int_ge(str_search(loopback_field(&server, "Content-Security-Policy"), str_from(policy)), 0);
    ck_assert_int_lt(str_search(server.body, STR(" style=")), 0);
    loopback_close(&server);
}
END_TEST

START_TEST(error_page_in_each_form)
{
    loopback_make_directory(&server);
    loopback_mkdir(&server, "www");
    loopback_mkdir(&server, "www/errors");
    loopback_write(&server, "www/page.html", STR("page"));
    loopback_write(&server, "www/calm.html", STR("page"));
    loopback_write(&server, "www/own.html", STR("page"));
    loopback_write(&server, "www/errors/404.html", STR("not here"));
    loopback_open(&server,
                  "http:\n"
                  "  error_page: [404 405 /errors/404.html]\n"
                  "  server:\n"
                  "    listen: 8080\n"
                  "    root: @/www\n"
                  "    location:\n"
                  "      /errors/: {internal: on}\n"
                  "      /calm: {return: 404, error_page: '404 =200 /errors/404.html'}\n"
                  "      /own: {return: 404, error_page: '404 = @fallback'}\n"
                  "      = /calm.html: {error_page: '405 =200 /errors/404.html'}\n"
                  "      = /own.html: {error_page: '405 = @fallback'}\n"
                  "      /named: {return: 502, error_page: '502 @fallback'}\n"
                  "      /away: {return: 404, error_page: '404 https://example.com$uri'}\n"
                  "      /away-for-good: {return: 404, error_page: '404 =301 https://example.com/'}\n"
                  "      /away-unmodified: {return: 404, error_page: '404 =304 https://example.com/'}\n"
                  "      /said: {return: 500, error_page: 500 /page}\n"
                  "      /asked: {return: 500, error_page: '500 /page?c=d'}\n"
                  "      = /page: {return: '200 \"said $args at $uri\"'}\n"
                  "      /missing: {return: 503, error_page: '503 /errors/absent.html'}\n"
                  "      /nobody: {return: 500, error_page: '500 @nobody'}\n"
                  "      /round: {return: 403, error_page: '403 /round'}\n"
                  "      /to-error: {return: 404, error_page: '404 /busy'}\n"
                  "      /to-error-now: {return: 404, error_page: '404 = /busy'}\n"
                  "      /to-error-but: {return: 404, error_page: '404 =201 /busy'}\n"
                  "      = /busy: {return: 503}\n"
                  "      /to-named: {return: 404, error_page: '404 @gone'}\n"
                  "      '@gone': {return: 410}\n"
                  "      /to-nothing: {return: 404, error_page: '404 /nothing'}\n"
                  "      /to-nothing-now: {return: 404, error_page: '404 = /nothing'}\n"
                  "      /to-nothing-but: {return: 404, error_page: '404 =200 /nothing'}\n"
                  "      = /nothing: {return: 204}\n"
                  "      /to-empty: {return: 404, error_page: '404 /empty'}\n"
                  "      = /empty: {return: 200}\n"
                  "      /to-place: {return: 404, error_page: '404 /place'}\n"
                  "      = /place: {return: 301 /there}\n"
                  "      /to-words: {return: 404, error_page: '404 /words'}\n"
                  "      = /words: {return: 503 words}\n"
                  "      '@fallback': {return: '200 \"fallback $uri$is_args$args\"'}\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        loopback_request(&server, cases[i].request);
        ck_assert_msg(server.status == cases[i].status, "%s: %d", cases[i].request, server.status);
        if (cases[i].body)
            ck_assert_text(server.body, cases[i].body);
        if (cases[i].field)
            ck_assert_text(loopback_field(&server, cases[i].field), cases[i].value);
    }
    ck_assert(loopback_logged(&server, "there is no location \"@nobody\""));
    loopback_close(&server);
}
END_TEST

START_TEST(log_names_client_max_body_size)
{
    loopback_open(&server, "http: {server: {listen: 8080, root: @/, client_max_body_size: 10}}");
    loopback_request(&server, "POST / HTTP/1.1\nContent-Length: 11");
    ck_assert_int_eq(server.status, 413);
    ck_assert(loopback_logged(&server, "client_max_body_size is 10"));
    loopback_close(&server);
}
END_TEST

START_TEST(internal_redirects_are_limited)
{
    loopback_make_directory(&server);
    loopback_mkdir(&server, "www");
    loopback_open(&server, "http: {server: {listen: 8080, root: @/www, index: /again/}}");
    loopback_request(&server, "GET / HTTP/1.1");
    ck_assert_int_eq(server.status, 500);
    ck_assert(loopback_logged(&server, "internally redirected more than 10 times"));
    loopback_close(&server);
}
END_TEST

START_TEST(invalid_configurations_are_rejected)
{
    static const struct {
        const char *text;
        const char *expected;
    } mistakes[] = {
        {"error_page: 404", "takes statuses and a page"},
        {"error_page: 200 /x", "not a status from 300 to 599"},
        {"error_page: 404 =99 /x", "not a status"},
        {"error_page: '=200 /x'", "has no status"},
        {"error_page: 304 /x", "not a status from 300 to 599"},
        {"error_page: 404 $nothing_like_it", "nothing_like_it"},
    };

    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
        loopback_configuration_rejected(mistakes[i].text, mistakes[i].expected);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        built_in_page_has_status_and_reason, built_in_page_follows_accept, style_is_permitted_by_the_policy,
        error_page_in_each_form, log_names_client_max_body_size, internal_redirects_are_limited,
        invalid_configurations_are_rejected, NULL,
    };

    return loopback_run("error_page", tests);
}
