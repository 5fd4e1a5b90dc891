#include "loopback.h"

#include <stdio.h>

/*
 * Tests without a network: invalid configurations, and upstream servers that cannot be reached. The others are in
 * tests/http.
 */

static struct loopback server;

static const struct {
    const char *text;
    const char *expected;
} mistakes[] = {
    {"location: {/: {proxy_pass: ftp://127.0.0.1}}", "not an address of a server"},
    {"location: {/: {proxy_pass: 127.0.0.1:80}}", "not an address of a server"},
    {"location: {/: {proxy_pass: 'http://'}}", "not an address of a server"},
    {"location: {/: {proxy_pass: 'http://:80'}}", "not an address of a server"},
    {"location: {/: {proxy_pass: 'http://a:99999'}}", "not an address of a server"},
    {"location: {/: {proxy_pass: 'http://a:0'}}", "not an address of a server"},
    {"location: {/: {proxy_pass: 'http://a b/'}}", "not an address of a server"},
    {"location: {/: {proxy_pass: 'http://a?b'}}", "not an address of a server"},
    {"location: {/: {proxy_pass: 'http://[::1'}}", "not an address of a server"},
    {"location: {/: {proxy_pass: 'http://user@a/'}}", "not an address of a server"},
    {"location: {/: {proxy_pass: 'unix:relative'}}", "not an address of a server"},
    {"location: {/: {proxy_pass: 'unix:/a:b'}}", "not an address of a server"},
    {"location: {/: {proxy_pass: 'https://unix:/run/app.sock'}}", "not an address of a server"},
    {"proxy_ssl_trusted_certificate: /nowhere.pem", "cannot be read as trusted certificates"},
    {"location: {/: {proxy_pass: http://$nothing_like_it}}", "nothing_like_it"},
    {"proxy_pass: http://127.0.0.1", "location"},
    {"proxy_set_header: X-A", "takes a name and a value"},
    {"proxy_set_header: 'X-A a b'", "takes a name and a value"},
    {"proxy_set_header: {Content-Length: 3}", "cannot set Content-Length"},
    {"proxy_set_header: {Transfer-Encoding: chunked}", "cannot set Transfer-Encoding"},
    {"proxy_set_header: {'X A': b}", "not a header field name"},
    {"proxy_next_upstream: sometimes", "sometimes"},
    {"proxy_read_timeout: 5", "unit"},
    {"proxy_http_version: 1.0", "1.0"},
    {"proxy_protocol: v3", "v3"},
    {"proxy_buffering: sometimes", "sometimes"},
    {"proxy_buffers: 8", "a number and a size"},
    {"proxy_buffers: many 8k", "a number and a size"},
    {"proxy_buffers: 8 much", "much"},
    {"proxy_buffers: 0 8k", "one buffer must have"},
    {"proxy_buffers: 8 2m", "one buffer must have"},
    {"proxy_buffers: 1000000 8k", "all together"},
    {"proxy_max_temp_file_size: 2000g", "2000g"},
    {"proxy_cache: nowhere", "there is no cache \"nowhere\""},
    {"proxy_cache_valid: 10", "unit"},
    {"proxy_cache_valid: 2000 10m", "\"2000\" is not a status"},
    {"proxy_cache_valid: ok 10m", "\"ok\" is not a status"},
    {"proxy_cache_methods: DELETE", "DELETE"},
    {"proxy_cache_min_uses: 0", "0"},
    {"proxy_cache_use_stale: always", "always"},
    {"proxy_ignore_headers: Date", "Date"},
    {"proxy_cache_purge: PURGE", "a method and the addresses that may use it"},
    {"proxy_cache_purge: 'P@ 127.0.0.1'", "a method and the addresses that may use it"},
    {"proxy_cache_purge: PURGE localhost", "is not an address"},
    {"proxy_cache_path: {path: /tmp/x, keys_zone: 'a:1m'}", "proxy_cache_path"},
};

START_TEST(invalid_configurations_are_rejected)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
        loopback_configuration_rejected(mistakes[i].text, mistakes[i].expected);
}
END_TEST

static const struct {
    const char *upstream;
    const char *expected;
} bad_upstreams[] = {
    {"backend: {}", "has no server"},
    {"backend: {server: [{address: 127.0.0.1, backup: on}]}", "only backup"},
    {"backend: {server: 127.0.0.1, least_conn: on, ip_hash: on}", "more than one load balancing method"},
    {"backend: {server: 'no address'}", "address is set twice"},
    {"backend: {server: '127.0.0.1:70000'}", "not an address of a server"},
    {"backend: {server: '127.0.0.1 weight=0'}", "1"},
    {"backend: {server: '127.0.0.1 colour=red'}", "colour"},
    {"backend: {server: 127.0.0.1, hash: a b c}", "hash takes a key"},
    {"backend: {server: 127.0.0.1, hash: $nothing_like_it}", "nothing_like_it"},
    {"backend: {server: 127.0.0.1, sever: 127.0.0.1}", "sever"},
    {"backend: 127.0.0.1", "upstream takes a mapping"},
};

START_TEST(invalid_groups_are_rejected)
{
    for (size_t i = 0; i < sizeof(bad_upstreams) / sizeof(bad_upstreams[0]); i++) {
        struct configuration_source source = {0};
        struct buffer diagnostics = {0};
        struct log log = {.level = LOG_EMERG};
        char text[512];

        snprintf(text, sizeof(text), "http:\n  server: {listen: 8080}\n  upstream: {%s}\n",
                 bad_upstreams[i].upstream);
        source.text = str_from(text);
        ck_assert_msg(!configuration_load(&source, &log, &diagnostics), "taken: %s", text);
        ck_assert_msg(str_search(buffer_str(&diagnostics), str_from(bad_upstreams[i].expected)) >= 0 &&
                          str_search(buffer_str(&diagnostics), STR(":3:")) >= 0,
                      "\"%s\" or the place is not in:\n" STR_FMT, bad_upstreams[i].expected,
                      (int)diagnostics.length, diagnostics.data);
        buffer_finish(&diagnostics);
    }
}
END_TEST

START_TEST(unreachable_server_is_502)
{
    loopback_open(&server,
                  "http:\n"
                  "  upstream:\n"
                  "    down: {server: '127.0.0.1:1 down'}\n"
                  "    none: {server: ['unix:/nowhere/at/all', 'unix:/nowhere/else backup']}\n"
                  "  server:\n"
                  "    listen: 8080\n"
                  "    location:\n"
                  "      /down/: {proxy_pass: http://down}\n"
                  "      /none/: {proxy_pass: http://none}\n"
                  "      /outer/: {proxy_pass: http://none, location: {/outer/inner/: {return: 200 inner}}}\n"
                  "      /page/: {proxy_pass: http://none, error_page: 502 /said}\n"
                  "      /said: {return: 200 sorry}\n"
                  "      /variable/: {proxy_pass: 'http://$arg_to'}\n");
    loopback_request(&server, "GET /down/ HTTP/1.1");
    ck_assert_int_eq(server.status, 502);
    ck_assert(loopback_logged(&server, "no live upstreams"));
    loopback_request(&server, "GET /none/ HTTP/1.1");
    ck_assert_int_eq(server.status, 502);
    ck_assert(loopback_logged(
        &server, "connect() failed (2: No such file or directory) while connecting to upstream"));
    ck_assert(loopback_logged(&server, "upstream: \"http://unix:/nowhere/else/none/\""));
    loopback_request(&server, "POST /none/ HTTP/1.1\nContent-Length: 0");
    ck_assert_int_eq(server.status, 502);
    loopback_request(&server, "GET /outer/inner/ HTTP/1.1");
    ck_assert_text(server.body, "inner");
    loopback_request(&server, "GET /page/ HTTP/1.1");
    ck_assert_int_eq(server.status, 502);
    ck_assert_text(server.body, "sorry");
    loopback_request(&server, "GET /variable/?to=%0d%0aX HTTP/1.1");
    ck_assert_int_eq(server.status, 502);
    loopback_request(&server, "GET /variable/ HTTP/1.1");
    ck_assert_int_eq(server.status, 502);
    ck_assert(loopback_logged(&server, "is not an address of a server"));
    loopback_disconnect(&server, "GET /none/ HTTP/1.1", 0);
    loopback_disconnect(&server, "GET /none/ HTTP/1.1", 1);
    loopback_disconnect(&server, "GET /none/ HTTP/1.1", 2);
    loopback_close(&server);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        invalid_configurations_are_rejected, invalid_groups_are_rejected, unreachable_server_is_502, NULL,
    };

    return loopback_run("proxy", tests);
}
