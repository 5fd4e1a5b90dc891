#include "loopback.h"

/* Mistakes in the file. What is said over a connection: tests/http. */

static struct loopback server;

static const struct {
    const char *text;
    const char *said;
} mistakes[] = {
    {"location: {/: {fastcgi_pass: 'http://127.0.0.1'}}", "no address to pass requests to"},
    {"location: {/: {fastcgi_pass: 'unix:relative'}}", "no address to pass requests to"},
    {"location: {/: {fastcgi_pass: '127.0.0.1:0'}}", "no address to pass requests to"},
    {"location: {/: {fastcgi_pass: $nothing_like_it}}", "nothing_like_it"},
    {"fastcgi_pass: 127.0.0.1:9000", "location"},
    {"fastcgi_param: NAME", "takes a name and a value"},
    {"fastcgi_param: NAME value sometimes", "takes a name and a value"},
    {"fastcgi_param: {NAME: $nothing_like_it}", "nothing_like_it"},
    {"fastcgi_split_path_info: ^(.+)$", "two groups are wanted"},
    {"fastcgi_split_path_info: '^(.+'", "fastcgi_split_path_info"},
    {"fastcgi_buffers: 8", "a number and a size"},
    {"fastcgi_next_upstream: sometimes", "sometimes"},
    {"fastcgi_read_timeout: 5", "unit"},
};

START_TEST(mistakes_are_told)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
        loopback_configuration_rejected(mistakes[i].text, mistakes[i].said);
}
END_TEST

START_TEST(nobody_there_is_502)
{
    loopback_open(&server, "http:\n"
                           "  server:\n"
                           "    listen: 8080\n"
                           "    location:\n"
                           "      /: {fastcgi_pass: 'unix:/nowhere/at/all'}\n"
                           "      /variable/: {fastcgi_pass: 'unix:$arg_to'}\n");
    loopback_ask(&server, "GET / HTTP/1.1");
    ck_assert_int_eq(server.status, 502);
    ck_assert(loopback_logged(&server, "upstream: \"fastcgi://unix:/nowhere/at/all/\""));
    loopback_ask(&server, "GET /variable/ HTTP/1.1");
    ck_assert_int_eq(server.status, 502);
    ck_assert(loopback_logged(&server, "fastcgi_pass: \"unix:\" is no address"));
    loopback_leave(&server, "GET / HTTP/1.1", 1);
    loopback_close(&server);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {mistakes_are_told, nobody_there_is_502, NULL};

    return loopback_run("fastcgi", tests);
}
