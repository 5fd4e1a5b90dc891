#include "otlp/otlp.h"

#include "../runner.h"

#include "base/limits.h"

#include <errno.h>

static const struct {
    const char *text, *host, *port, *authority, *path;
    bool tls;
} valid[] = {
    {"http://127.0.0.1:4318/v1/traces", "127.0.0.1", "4318", "127.0.0.1:4318", "/v1/traces"},
    {"http://collector", "collector", "4318", "collector", "/v1/traces"},
    {"http://collector:80/", "collector", "80", "collector:80", "/v1/traces"},
    {"collector.example.org:4318", "collector.example.org", "4318", "collector.example.org:4318", "/v1/traces"},
    {"http://[::1]", "::1", "4318", "[::1]", "/v1/traces"},
    {"http://[::1]:9/a?b=c", "::1", "9", "[::1]:9", "/a?b=c"},
    {"https://collector.example.org", "collector.example.org", "443", "collector.example.org", "/v1/traces", true},
    {"https://[::1]:4318/a", "::1", "4318", "[::1]:4318", "/a", true},
};

static const char *const invalid[] = {
    "",           "http://",      "http://:4318", "http://a:",     "http://a:0",         "http://a:65536",
    "http://a:x", "http://a b",   "http://a/b c", "http://a\r\n",  "http://a/\r\nX: y",  "http://[::1",
    "http://[]",  "ftp://a",      "http://u@a",   "http://a/#f",   "http://[::1]x",
    "https://",   "https://:443", "https://u@a",
};

START_TEST(valid_endpoints_are_split)
{
    for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++) {
        struct otlp_endpoint endpoint;

        ck_assert_int_eq(otlp_endpoint_parse(str_from(valid[i].text), &endpoint), 0);
        ck_assert(str_equal(endpoint.url, str_from(valid[i].text)));
        ck_assert(str_equal(endpoint.host, str_from(valid[i].host)));
        ck_assert(str_equal(endpoint.port, str_from(valid[i].port)));
        ck_assert(str_equal(endpoint.path, str_from(valid[i].path)));
        ck_assert(str_equal(endpoint.authority, str_from(valid[i].authority)));
        ck_assert_int_eq(endpoint.tls, valid[i].tls);
    }
}
END_TEST

START_TEST(invalid_endpoints_are_rejected)
{
    struct otlp_endpoint endpoint;

    for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
        ck_assert_msg(otlp_endpoint_parse(str_from(invalid[i]), &endpoint) == -EINVAL, "%s", invalid[i]);
}
END_TEST

START_TEST(name_of_a_tls_endpoint_fits_into_sni)
{
    struct otlp_endpoint endpoint;
    char url[300] = "https://";

    memset(url + 8, 'a', LIMIT_SERVER_NAME + 1);
    ck_assert_int_eq(otlp_endpoint_parse(str_of(url, 8 + LIMIT_SERVER_NAME), &endpoint), 0);
    ck_assert_int_eq(otlp_endpoint_parse(str_of(url, 8 + LIMIT_SERVER_NAME + 1), &endpoint), -EINVAL);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {valid_endpoints_are_split, invalid_endpoints_are_rejected,
                                  name_of_a_tls_endpoint_fits_into_sni, NULL};

    return run_tests("otlp_endpoint", tests);
}
