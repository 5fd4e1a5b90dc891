#include "loopback.h"

static struct loopback server;

static unsigned count_field(const char *name)
{
    struct str rest = server.head;
    unsigned count = 0;

    while (rest.data) {
        struct str line = str_cut(&rest, '\n');

        count += str_equal_nocase(str_cut(&line, ':'), str_from(name));
    }
    return count;
}

START_TEST(fields_of_outer_scopes_are_merged)
{
    loopback_open(&server,
                  "http:\n"
                  "  add_header: [X-Frame-Options DENY, 'X-Outer http']\n"
                  "  server:\n"
                  "    listen: 8080\n"
                  "    add_header: X-Server $server_name\n"
                  "    server_name: example.com\n"
                  "    location:\n"
                  "      /a: {return: 200 a, add_header: {X-Frame-Options: SAMEORIGIN, Set-Cookie: a=1}}\n"
                  "      /b: {return: 200 b}\n"
                  "      /c: {return: 200 c, add_header: [Link '<a>', Link '<b>']}\n"
                  "      /d: {return: 404, add_header: ['X-Always \"a b\" always', X-Sometimes yes]}\n");
    loopback_request(&server, "GET /a HTTP/1.1");
    ck_assert_text(loopback_field(&server, "X-Frame-Options"), "SAMEORIGIN");
    ck_assert_uint_eq(count_field("X-Frame-Options"), 1);
    ck_assert_text(loopback_field(&server, "X-Outer"), "http");
    ck_assert_text(loopback_field(&server, "X-Server"), "example.com");
    ck_assert_text(loopback_field(&server, "Set-Cookie"), "a=1");
    loopback_request(&server, "GET /b HTTP/1.1");
    ck_assert_text(loopback_field(&server, "X-Frame-Options"), "DENY");
    ck_assert_uint_eq(count_field("Set-Cookie"), 0);
    loopback_request(&server, "GET /c HTTP/1.1");
    ck_assert_uint_eq(count_field("Link"), 2);
    ck_assert_text(loopback_field(&server, "X-Outer"), "http");
    loopback_request(&server, "GET /d HTTP/1.1");
    ck_assert_int_eq(server.status, 404);
    ck_assert_text(loopback_field(&server, "X-Always"), "a b");
    ck_assert_uint_eq(count_field("X-Sometimes"), 0);
    ck_assert_uint_eq(count_field("X-Outer"), 0);
    loopback_close(&server);
}
END_TEST

START_TEST(empty_values_are_not_sent)
{
    loopback_open(
        &server,
        "http: {server: {listen: 8080, return: 200 ok, add_header: [{X-Id: '$arg_id', X-Uri: 'u:$uri', "
        "X-Detailed: {value: 'v', always: on}}, 'Content-Type text/x-own']}}");
    loopback_request(&server, "GET /p HTTP/1.1");
    ck_assert_uint_eq(count_field("X-Id"), 0);
    ck_assert_text(loopback_field(&server, "X-Uri"), "u:/p");
    ck_assert_text(loopback_field(&server, "X-Detailed"), "v");
    ck_assert_text(loopback_field(&server, "Content-Type"), "text/x-own");
    ck_assert_uint_eq(count_field("Content-Type"), 1);
    loopback_request(&server, "GET /p?id=7 HTTP/1.1");
    ck_assert_text(loopback_field(&server, "X-Id"), "7");
    loopback_close(&server);
}
END_TEST

static const struct {
    const char *text;
    const char *expected;
} mistakes[] = {
    {"add_header: X-Only", "takes a name, a value"},
    {"add_header: X-A b sometimes", "takes a name, a value"},
    {"add_header: 'X@A b'", "not a header field name"},
    {"add_header: Content-Length 7", "cannot set Content-Length"},
    {"add_header: {Connection: close}", "cannot set Connection"},
    {"add_header: {X-A: {values: b}}", "a header takes a value"},
    {"add_header: {Cache-Control: no-cache, max-age=0}", "max-age"},
};

START_TEST(invalid_configurations_are_rejected)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
        loopback_configuration_rejected(mistakes[i].text, mistakes[i].expected);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {fields_of_outer_scopes_are_merged, empty_values_are_not_sent,
                                  invalid_configurations_are_rejected, NULL};

    return loopback_run("add_header", tests);
}
