#include "loopback.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct loopback server;

/* Returns the value of a template for the request /dir/page?a=1&B=two&empty=. */
static struct str value_of(const char *template)
{
    char configuration[1024];

    snprintf(
        configuration, sizeof(configuration),
        "http: {server: {listen: '127.0.0.1:8080', server_name: [first.example, other.example], root: @/www, "
        "return: [200, '<%s>']}}",
        template);
    loopback_make_directory(&server);
    loopback_mkdir(&server, "www");
    loopback_open(&server, configuration);
    loopback_request(&server, "GET /dir/pa%67e?a=1&B=two&empty= HTTP/1.1\n"
                          "Host: Other.Example:8080\n"
                          "User-Agent: test/1\n"
                          "X-Twice: one\n"
                          "X-Twice: two\n"
                          "Cookie: first=1; second=two=2\n"
                          "Cookie: third=3\n"
                          "Content-Type: text/x-sent\n"
                          "Content-Length: 0\n"
                          "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    ck_assert_int_eq(server.status, 200);
    return str_slice(server.body, 1, server.body.length - 1);
}

static const struct {
    const char *template;
    const char *value;
} cases[] = {
    {"$args", "a=1&B=two&empty="},
    {"$query_string", "a=1&B=two&empty="},
    {"$is_args", "?"},
    {"$arg_a,$arg_b,$arg_empty,$arg_none", "1,two,,"},
    {"$uri", "/dir/page"},
    {"$document_uri", "/dir/page"},
    {"$request_uri", "/dir/pa%67e?a=1&B=two&empty="},
    {"$request", "GET /dir/pa%67e?a=1&B=two&empty= HTTP/1.1"},
    {"$request_method", "GET"},
    {"$server_protocol", "HTTP/1.1"},
    {"$host", "other.example"},
    {"$http_host", "Other.Example:8080"},
    {"$http_user_agent", "test/1"},
    {"$http_x_twice", "one, two"},
    {"$http_none", ""},
    {"$cookie_first,$cookie_second,$cookie_third,$cookie_none", "1,two=2,3,"},
    {"$content_type,$content_length", "text/x-sent,0"},
    {"$remote_user", "Aladdin"},
    {"$remote_addr:$remote_port", "127.0.0.1:4711"},
    {"$server_name,$server_port", "first.example,8080"},
    {"$scheme,$https", "http,"},
    {"$ssl_protocol$ssl_cipher$ssl_curve$ssl_session_id$ssl_session_reused$ssl_server_name$ssl_alpn_protocol",
     ""},
    {"$connection_requests", "1"},
    {"${host}x", "other.examplex"},
};

START_TEST(values_of_variables)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_text(value_of(cases[i].template), cases[i].value);
        loopback_close(&server);
    }
}
END_TEST

START_TEST(values_of_the_machine)
{
    char expected[1024];
    char hostname[256] = "";

    ck_assert_int_eq(gethostname(hostname, sizeof(hostname) - 1), 0);
    ck_assert_text(value_of("$hostname"), hostname);
    loopback_close(&server);
    value_of("$pid");
    snprintf(expected, sizeof(expected), "<%d>", getpid());
    ck_assert_text(server.body, expected);
    loopback_close(&server);
    value_of("$document_root|$realpath_root|$request_filename");
    snprintf(expected, sizeof(expected), "<%s/www|%s/www|%s/www/dir/page>", server.directory, server.directory,
             server.directory);
    ck_assert_text(server.body, expected);
    loopback_close(&server);
}
END_TEST

/* In a pattern, 9 matches a digit, x a hexadecimal digit, and any other byte itself. */
static bool has_shape(struct str value, const char *shape)
{
    if (value.length != strlen(shape))
        return false;
    for (size_t i = 0; i < value.length; i++) {
        unsigned char c = (unsigned char)value.data[i];

        if (shape[i] == '9' ? !isdigit(c) : shape[i] == 'x' ? !isxdigit(c) : c != (unsigned char)shape[i])
            return false;
    }
    return true;
}

START_TEST(formats_of_variables)
{
    struct str value = value_of("$request_id $request_id");

    ck_assert(has_shape(str_slice(value, 0, 32), "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
    ck_assert(str_equal(str_slice(value, 0, 32), str_skip(value, 33)));
    loopback_close(&server);
    ck_assert(has_shape(value_of("$msec"), "9999999999.999"));
    loopback_close(&server);
    ck_assert(has_shape(value_of("$request_time"), "9.999"));
    loopback_close(&server);
    ck_assert_uint_eq(value_of("$time_iso8601").length, 25);
    loopback_close(&server);
    ck_assert_uint_eq(value_of("$time_local").length, 26);
    loopback_close(&server);
    ck_assert(value_of("$nginx_version").length >= 5);
    loopback_close(&server);
}
END_TEST

START_TEST(unknown_variables_are_rejected)
{
    loopback_configuration_rejected("return: 200 $htsp", "htsp");
    loopback_configuration_rejected("return: 200 $htsp", "host");
    loopback_configuration_rejected("return: 200 $http_", "http_");
    loopback_configuration_rejected("return: 200 $limit_rates", "limit_rates");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        values_of_variables, values_of_the_machine, formats_of_variables, unknown_variables_are_rejected, NULL,
    };

    return loopback_run("variables", tests);
}
