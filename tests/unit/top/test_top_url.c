#include "top/top_url.h"

#include "../runner.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *text, *host, *port, *authority, *target;
} good[] = {
    {TOP_URL_DEFAULT, "127.0.0.1", "80", "127.0.0.1", "/status"},
    {"http://a", "a", "80", "a", "/status"},
    {"http://a:8080", "a", "8080", "a:8080", "/status"},
    {"http://a.example:1/x/y?format=json&z", "a.example", "1", "a.example:1", "/x/y?format=json&z"},
    {"http://[::1]/", "::1", "80", "[::1]", "/"},
    {"http://[::1]:65535/s", "::1", "65535", "[::1]:65535", "/s"},
};

static const struct {
    const char *text, *fault;
} bad[] = {
    {"", "must begin with http://"},
    {"a:80/status", "must begin with http://"},
    {"https://a/", "must begin with http://"},
    {"http://", "must have a host"},
    {"http:///x", "must have a host"},
    {"http://:80/", "must have a host"},
    {"http://[]/", "must have a host"},
    {"http://user@a/", "must have a host"},
    {"http://a:/", "a number from 1"},
    {"http://a:0/", "a number from 1"},
    {"http://a:65536/", "a number from 1"},
    {"http://a:000080/", "a number from 1"},
    {"http://::1/", "must have a host"},
    {"http://[::1/", "no closing bracket"},
    {"http://[::1]8080/", "may follow the closing bracket"},
    {"http://a/ b", "not printable"},
    {"http://a/\r\nX: y", "not printable"},
    {"http://a/\x7f", "not printable"},
    {"http://\xc3\xa4/", "not printable"},
    {"http://a/#x", "must not have a fragment"},
    {"http://a#x", "must not have a fragment"},
    {"http://a?x", "a path before the query"},
};

START_TEST(parts)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct top_url url;

        ck_assert_msg(!top_url_parse(good[i].text, &url), "%s", good[i].text);
        ck_assert_str_eq(url.text, good[i].text);
        ck_assert_str_eq(url.host, good[i].host);
        ck_assert_str_eq(url.port, good[i].port);
        ck_assert_str_eq(url.authority, good[i].authority);
        ck_assert_str_eq(url.target, good[i].target);
    }
}
END_TEST

START_TEST(faults)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct top_url url = {.port = "77"};
        const char *fault = top_url_parse(bad[i].text, &url);

        ck_assert_msg(fault && strstr(fault, bad[i].fault), "%s: %s", bad[i].text, fault);
        ck_assert_str_eq(url.port, "77");
    }
}
END_TEST

START_TEST(length)
{
    char text[LIMIT_TOP_URL + 2] = "http://a/";
    struct top_url url;

    memset(text + strlen(text), 'x', sizeof(text) - strlen(text));
    text[LIMIT_TOP_URL + 1] = '\0';
    ck_assert_str_eq(top_url_parse(text, &url), "the URL is too long");
    text[LIMIT_TOP_URL] = '\0';
    ck_assert(!top_url_parse(text, &url));
    ck_assert_uint_eq(strlen(url.target), LIMIT_TOP_URL - strlen("http://a"));
    memset(text + strlen("http://"), 'x', LIMIT_TOP_URL - strlen("http://"));
    ck_assert(!top_url_parse(text, &url));
    ck_assert_uint_eq(strlen(url.host), LIMIT_TOP_URL - strlen("http://"));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {parts, faults, length, NULL};

    return run_tests("top_url", tests);
}
