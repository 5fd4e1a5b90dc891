#include "loopback.h"

/* Invalid configurations. The tests with a FastCGI server are in tests/http. */

static struct loopback server;

static const struct {
    const char *text;
    const char *expected;
} mistakes[] = {
    {"location: {/: {fastcgi_pass: 'http://127.0.0.1'}}", "not an address of a server"},
    {"location: {/: {fastcgi_pass: 'unix:relative'}}", "not an address of a server"},
    {"location: {/: {fastcgi_pass: '127.0.0.1:0'}}", "not an address of a server"},
    {"location: {/: {fastcgi_pass: $nothing_like_it}}", "nothing_like_it"},
    {"fastcgi_pass: 127.0.0.1:9000", "location"},
    {"fastcgi_param: NAME", "takes a name, a value"},
    {"fastcgi_param: NAME value sometimes", "takes a name, a value"},
    {"fastcgi_param: {NAME: $nothing_like_it}", "nothing_like_it"},
    {"fastcgi_split_path_info: ^(.+)$", "two groups are required"},
    {"fastcgi_split_path_info: '^(.+'", "fastcgi_split_path_info"},
    {"fastcgi_buffers: 8", "a number and a size"},
    {"fastcgi_next_upstream: sometimes", "sometimes"},
    {"fastcgi_read_timeout: 5", "unit"},
};

START_TEST(invalid_configurations_are_rejected)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
        loopback_configuration_rejected(mistakes[i].text, mistakes[i].expected);
}
END_TEST

START_TEST(unreachable_server_is_502)
{
    loopback_open(&server, "http:\n"
                           "  server:\n"
                           "    listen: 8080\n"
                           "    location:\n"
                           "      /: {fastcgi_pass: 'unix:/nowhere/at/all'}\n"
                           "      /variable/: {fastcgi_pass: 'unix:$arg_to'}\n");
    loopback_request(&server, "GET / HTTP/1.1");
    ck_assert_int_eq(server.status, 502);
    ck_assert(loopback_logged(&server, "upstream: \"fastcgi://unix:/nowhere/at/all/\""));
    loopback_request(&server, "GET /variable/ HTTP/1.1");
    ck_assert_int_eq(server.status, 502);
    ck_assert(loopback_logged(&server, "fastcgi_pass: \"unix:\" is not an address"));
    loopback_disconnect(&server, "GET / HTTP/1.1", 1);
    loopback_close(&server);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {invalid_configurations_are_rejected, unreachable_server_is_502, NULL};

    return loopback_run("fastcgi", tests);
}
