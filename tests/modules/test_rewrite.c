#include "loopback.h"

#include <stdio.h>

/* `set`, `when`, `rewrite`, `map` and `geo` in combination. */
static struct loopback server;

static const char configuration[] =
    "http:\n"
    "  map:\n"
    "    $arg_m $mapped: {default: none, One: 1, '~^(?<letter>[a-z])(\\d)$': '$letter-$2', '~*^XY': xy, "
    "'\\default': d}\n"
    "    $http_host $site:\n"
    "      hostnames: on\n"
    "      default: other\n"
    "      .example.com: dotted\n"
    "      '*.deep.example.com': deep\n"
    "      'www.*': www\n"
    "      exact.test: '${mapped}!'\n"
    "    $uri $round2: {default: $round2-x}\n"
    "    $arg_v $fleeting: {volatile: on, default: $count}\n"
    "    $arg_v $kept: {default: $count}\n"
    "  geo:\n"
    "    $place: {default: outside, 127.0.0.0/8: loop, 127.0.0.1: me}\n"
    "    $arg_ip $there: {10.0.0.0/8: ten, 10.1.0.0/16: ten-one, '2001:db8::/32': six, 0.0.0.0/0: four}\n"
    "  server:\n"
    "    listen: 8080\n"
    "    root: '@/www'\n"
    "    set: $top server\n"
    "    rewrite: ['^/server/(.*)$ /from-server/$1', '^/moved/(.*)$ /new/$1 permanent']\n"
    "    when: {$arg_stop = yes: {return: 403}, $arg_head: {add_header: X-When server}, $arg_step: {rewrite: "
    "'^(.*)$ /step$1 last'}}\n"
    "    error_page: [404 /404.html]\n"
    "    location:\n"
    "      /map: {return: '200 \"$mapped $letter\"'}\n"
    "      /site: {return: 200 $site}\n"
    "      /round: {return: '200 \"[$round2]\"'}\n"
    "      /kept: {set: [$count 1, $kept2 $kept, $fleeting2 $fleeting, $count 2], return: '200 \"$kept "
    "$fleeting "
    "$fleeting2\"'}\n"
    "      /geo: {return: '200 \"$place [$there]\"'}\n"
    "      /set: {set: [$a 1, {$b: '$a-2'}, $top $top+], return: '200 \"$a $b $top [$letter]\"'}\n"
    "      /args: {set: $args x=1, return: '200 $args'}\n"
    "      /top/rewritten: {set: $top rewritten, rewrite: ^ /top last}\n"
    "      /top/named: {set: $top named, try_files: [/nothing, '@top']}\n"
    "      /top/around: {set: $top $top+, rewrite: '^(/top/around)$ $1/on last', return: 200 $top}\n"
    "      /top: {set: [$b $top], return: '200 \"$top $b\"'}\n"
    "      '@top': {return: 200 $top}\n"
    "      /from-server/: {return: '200 \"$uri\"'}\n"
    "      /chain/: {rewrite: ['^/chain/(.*)$ /step/$1', '^/step/(.*)$ /done/$1?a=1']}\n"
    "      /last/: {rewrite: ['^/last/(.*)$ /done/$1? last', '^ /wrong']}\n"
    "      /break/: {rewrite: ['^/break/(.*)$ /kept/x/$1 break', '^ /wrong'], return: 200 never,\n"
    "        try_files: [/nothing, '/done$uri?$args']}\n"
    "      /goes-on/: {rewrite: '^/goes-on/(.*)$ /kept/$1', return: '200 \"$uri $args\"'}\n"
    "      /done/: {return: '200 \"$uri?$args\"'}\n"
    "      /around/: {rewrite: '^/around/ /around/x last'}\n"
    "      /temp/: {rewrite: '^/temp/(.*)$ /to/$1?q=$1 redirect'}\n"
    "      /url/: {rewrite: '^/url/(.*)$ https://example.com/$1'}\n"
    "      /cut/: {rewrite: '^/cut(.*)$ $1 redirect'}\n"
    "      /asked/: {return: '301 $arg_to'}\n"
    "      /climb/: {rewrite: '^ /../.. last'}\n"
    "      /post: {when: {($request_method = POST): {return: '200 posted'}}, return: 200 plain}\n"
    "      /first: {when: {$arg_a and $arg_b != 2: {return: '200 a-b'}, $arg_a: {return: 200 a}, $arg_b ~ "
    "(x+)y: {return: 200 "
    "$1}, '$arg_b !~* \"^Z z$\" and $arg_c = \"two words\"': {return: 200 c}}, return: 200 none}\n"
    "      /beside: {when: {'-f ${document_root}2/file': {return: 200 beside}}, return: 200 none}\n"
    "      /file: {when: {-f $document_root/flag: {return: 200 flag}, -d $document_root/dir and !-e "
    "/nowhere: {return: "
    "200 dir}}, return: 200 none}\n"
    "      /laid: {add_header: X-Base yes, when: {$arg_x: {set: $w laid, add_header: X-Laid $w, "
    "default_type: text/css}}, "
    "return: '200 \"$w\"'}\n"
    "      /conf: {when: {$arg_x: {rewrite: ^ /done/when last}}, rewrite: ^ /done/location last}\n"
    "      /step/: {return: '200 \"$uri\"'}\n"
    "      /again/: {try_files: [/nothing, /map?stop=yes]}\n"
    "      /step/done/: {rewrite: '^/step/(.*)$ /$1'}\n"
    "      /step/stop/: {rewrite: '^ /map?stop=yes last'}\n"
    "      /outer: {when: {$arg_x: {return: 200 outer}}, location: {/outer/in: {when: {$arg_x: {return: 200 "
    "in}, $arg_y: "
    "{return: 200 in-y}}}}}\n"
    "      /: {return: '200 \"slash $uri\"'}\n";

static const struct {
    const char *request;
    int status;
    const char *body; /* NULL: not checked */
    const char *field;
    const char *value;
} cases[] = {
    {"/map", 200, "none ", NULL, NULL},
    {"/map?m=one", 200, "1 ", NULL, NULL},
    {"/map?m=b7", 200, "b-7 b", NULL, NULL},
    {"/map?m=B7", 200, "none ", NULL, NULL},
    {"/map?m=xyz", 200, "xy ", NULL, NULL},
    {"/map?m=default", 200, "d ", NULL, NULL},
    {"/site HTTP/1.1\nHost: a.b.example.com", 200, "dotted", NULL, NULL},
    {"/site HTTP/1.1\nHost: Example.com", 200, "dotted", NULL, NULL},
    {"/site HTTP/1.1\nHost: a.deep.example.com", 200, "deep", NULL, NULL},
    {"/site HTTP/1.1\nHost: www.any.org", 200, "www", NULL, NULL},
    {"/site?m=one HTTP/1.1\nHost: exact.test", 200, "1!", NULL, NULL},
    {"/site HTTP/1.1\nHost: xexample.com", 200, "other", NULL, NULL},
    {"/round", 200, "[-x]", NULL, NULL},
    {"/kept", 200, "1 2 1", NULL, NULL},
    {"/geo", 200, "me []", NULL, NULL},
    {"/geo?ip=9.9.9.9", 200, "me [four]", NULL, NULL},
    {"/geo?ip=10.2.3.4", 200, "me [ten]", NULL, NULL},
    {"/geo?ip=10.1.3.4", 200, "me [ten-one]", NULL, NULL},
    {"/geo?ip=2001:db8::1", 200, "me [six]", NULL, NULL},
    {"/geo?ip=::ffff:10.2.3.4", 200, "me [ten]", NULL, NULL},
    {"/geo?ip=2001:db9::1", 200, "me []", NULL, NULL},
    {"/geo?ip=nonsense", 200, "me []", NULL, NULL},
    {"/set", 200, "1 1-2 server+ []", NULL, NULL},
    {"/args?y=2", 200, "x=1", NULL, NULL},
    {"/top", 200, "server server", NULL, NULL},
    {"/top/rewritten", 200, "rewritten rewritten", NULL, NULL},
    {"/top/named", 200, "named", NULL, NULL},
    {"/top/around", 200, "server++", NULL, NULL},
    {"/server/a/b?q", 200, "/from-server/a/b", NULL, NULL},
    {"/moved/a%20b?q=1", 301, NULL, "Location", "/new/a%20b?q=1"},
    {"/chain/x?b=2", 200, "/done/x?a=1&b=2", NULL, NULL},
    {"/last/x?b=2", 200, "/done/x?", NULL, NULL},
    {"/break/x?b=2", 200, "/done/kept/x/x?b=2", NULL, NULL},
    {"/goes-on/x?b=2", 200, "/kept/x b=2", NULL, NULL},
    {"/around/", 500, NULL, NULL, NULL},
    {"/temp/a%3fb%26c?z", 302, NULL, "Location", "/to/a%3Fb%26c?q=a%3Fb%26c&z"},
    {"/url/p?q", 302, NULL, "Location", "https://example.com/p?q"},
    {"/cut/a/", 302, NULL, "Location", "/a/"},
    {"/asked/?to=//other.test/", 301, NULL, "Location", "/other.test/"},
    {"/asked/?to=/\\/other.test/", 301, NULL, "Location", "/other.test/"},
    {"/asked/?to=\\\\other.test/", 301, NULL, "Location", "/other.test/"},
    {"/asked/?to=/", 301, NULL, "Location", "/"},
    {"/asked/?to=///", 301, NULL, "Location", "/"},
    {"/asked/?to=https://other.test//", 301, NULL, "Location", "https://other.test//"},
    {"/climb/x", 500, NULL, NULL, NULL},
    {"/map?stop=yes", 403, NULL, NULL, NULL},
    {"/post", 200, "plain", NULL, NULL},
    {"/first", 200, "none", NULL, NULL},
    {"/first?a=1", 200, "a-b", NULL, NULL},
    {"/first?a=1&b=2", 200, "a", NULL, NULL},
    {"/first?a=0&b=xxy", 200, "xx", NULL, NULL},
    {"/first?b=z", 200, "none", NULL, NULL},
    {"/file", 200, "dir", NULL, NULL},
    {"/beside", 200, "beside", NULL, NULL},
    {"/laid?x=1", 200, "laid", "X-Laid", "laid"},
    {"/laid?x=1", 200, "laid", "X-Base", "yes"},
    {"/laid?x=1", 200, "laid", "Content-Type", "text/css; charset=utf-8"},
    {"/laid", 200, "", "X-Laid", ""},
    {"/laid?head=1&x=1", 200, "", "X-When", "server"},
    {"/conf?x=1", 200, "/done/when?x=1", NULL, NULL},
    {"/conf", 200, "/done/location?", NULL, NULL},
    {"/a?step=1", 200, "/step/a", NULL, NULL},
    {"/done/a?step=1", 200, "/done/a?step=1", NULL, NULL},
    {"/stop/?step=1", 200, "none ", NULL, NULL}, /* the server's conditions are checked before a location rewrites */
    {"/again/?stop=no", 403, NULL, NULL, NULL},  /* and again after an internal redirect */
    {"/outer?x=1", 200, "outer", NULL, NULL},
    {"/outer/in?x=1", 200, "outer", NULL, NULL},
    {"/outer/in?y=1", 200, "in-y", NULL, NULL},
    {"/outer/in", 404, NULL, NULL, NULL},
    {"/other", 200, "slash /other", NULL, NULL},
};

static void open_server(void)
{
    loopback_make_directory(&server);
    loopback_mkdir(&server, "www");
    loopback_mkdir(&server, "www/dir");
    loopback_mkdir(&server, "www2");
    loopback_write(&server, "www2/file", STR(""));
    loopback_open(&server, configuration);
}

START_TEST(responds_to_each_case)
{
    open_server();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char request[256];

        snprintf(request, sizeof(request),
                 strstr(cases[i].request, "HTTP/1.1") ? "GET %s" : "GET %s HTTP/1.1", cases[i].request);
        loopback_request(&server, request);
        ck_assert_msg(server.status == cases[i].status, "%s: %d", cases[i].request, server.status);
        ck_assert_msg(!cases[i].body || str_equal(server.body, str_from(cases[i].body)),
                      "%s: \"" STR_FMT "\"", cases[i].request, STR_ARG(server.body));
        if (cases[i].field)
            ck_assert_text(loopback_field(&server, cases[i].field), cases[i].value);
    }
    loopback_request(&server, "POST /post HTTP/1.1\nContent-Length: 0");
    ck_assert_text(server.body, "posted");
    ck_assert(loopback_logged(&server, "internally redirected more than 10 times"));
    loopback_close(&server);
}
END_TEST

START_TEST(clients_may_disconnect_during_file_checks)
{
    open_server();
    loopback_write(&server, "www/flag", STR(""));
    loopback_request(&server, "GET /file HTTP/1.1");
    ck_assert_text(server.body, "flag");
    for (unsigned turns = 0; turns < 6; turns++)
        loopback_disconnect(&server, "GET /file HTTP/1.1", turns);
    loopback_close(&server);
}
END_TEST

/* A site with conditions and without `set`, as most sites are. */
START_TEST(conditions_without_set)
{
    loopback_make_directory(&server);
    loopback_open(&server, "http:\n"
                           "  server:\n"
                           "    listen: 8080\n"
                           "    when: {$arg_stop: {return: 403}}\n"
                           "    location:\n"
                           "      /in: {when: {$arg_x: {return: 200 held}}, return: 200 not}\n");
    loopback_request(&server, "GET /in?x=1 HTTP/1.1");
    ck_assert_text(server.body, "held");
    loopback_request(&server, "GET /in HTTP/1.1");
    ck_assert_text(server.body, "not");
    loopback_request(&server, "GET /other?stop=1 HTTP/1.1");
    ck_assert_int_eq(server.status, 403);
    loopback_close(&server);
}
END_TEST

static const struct {
    const char *text;
    const char *expected;
} mistakes[] = {
    {"set: a b", "\"a\" is not a variable name"},
    {"set: $a", "set takes a variable and its value"},
    {"set: $host b", "$host is built in and cannot be set"},
    {"set: $1a b", "\"$1a\" is not a variable name"},
    {"set: [$a, b]", "set takes a variable and its value"},
    {"rewrite: ^/a", "rewrite takes a regular expression, a replacement, and optionally last"},
    {"rewrite: ^/a( /b", "the regular expression \"^/a(\" is invalid: missing closing parenthesis"},
    {"rewrite: ^/a /b nowhere", "'rewrite' cannot be 'nowhere'"},
    {"rewrite: ^/a /$b", "unknown variable $b"},
    {"when: [a]", "when takes a mapping of conditions to directives"},
    {"when: {a = b: {return: 403}}", "the condition contains no variable"},
    {"when: {$host =: {return: 403}}", "a value is missing after the operator"},
    {"when: {$host is a: {return: 403}}", "expected a comparison operator or \"and\""},
    {"when: {$host = a $uri = b: {return: 403}}", "two parts are not joined by \"and\""},
    {"when: {$host = a and: {return: 403}}", "a part is missing"},
    {"when: {-f: {return: 403}}", "a path is missing"},
    {"when: {$host ~ a): {return: 403}}", "the regular expression \"a)\" is invalid"},
    {"when: {$host: {location: {/: {}}}}", "location is not allowed in when"},
    {"when: {$host: {when: {$uri: {}}}}", "when is not allowed in when"},
    {"when: {$host: {listen: 80}}", "'listen' is not allowed in location"},
    {"when: {$host: 403}", "location takes a mapping of directives"},
};

START_TEST(invalid_configurations_are_rejected)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
        loopback_configuration_rejected(mistakes[i].text, mistakes[i].expected);
}
END_TEST

static const struct {
    const char *text;
    const char *expected;
} map_mistakes[] = {
    {"map: a", "map takes two variables, and a map of values"},
    {"map: {$host: {a: b}}", "map takes two variables, and a map of values"},
    {"map: {$uri $host: {a: b}}", "$host is built in and cannot be set"},
    {"map: {$uri x: {a: b}}", "\"x\" is not a variable name"},
    {"map: {$uri $x: {'~(': b}}", "the regular expression \"(\" is invalid: missing closing parenthesis"},
    {"map: {$uri $x: {a: $y}}", "unknown variable $y"},
    {"map: {$uri $x: {a: 1, A: 2}}", "\"a\" is duplicate"},
    {"map: {$uri $x: {a: 1, volatile: maybe}}", "maybe"},
    {"map: [{$uri $x: {a: 1}}, {$host $x: {a: 2}}]", "$x is already defined by another map or geo"},
    {"geo: a", "geo takes a variable, and a map from ranges to values"},
    {"geo: {$a $b $c: {}}", "geo takes a variable, and a map from ranges to values"},
    {"geo: {$x: {10.0.0.1/8: a}}", "\"10.0.0.1/8\" is not an address or a range of addresses"},
    {"geo: {$x: {proxy: 10.0.0.1}}", "list trusted proxies in set_real_ip_from"},
    {"geo: {$x: {10.0.0.0/8: a, 010.0.0.0/8: b}}", "is not an address or a range"},
    {"geo: {$x: {127.0.0.1: a, 127.0.0.1/32: b}}", "duplicate range, which is in line 2 already"},
};

START_TEST(invalid_maps_are_rejected)
{
    for (size_t i = 0; i < sizeof(map_mistakes) / sizeof(map_mistakes[0]); i++) {
        struct configuration_source source = {0};
        struct buffer expected = {0};
        struct log log = {.level = LOG_EMERG};
        char text[512];

        snprintf(text, sizeof(text), "http:\n  %s\n  server: {listen: 1}\n", map_mistakes[i].text);
        source.text = str_from(text);
        ck_assert_msg(!configuration_load(&source, &log, &expected), "taken: %s", map_mistakes[i].text);
        ck_assert_msg(str_search(buffer_str(&expected), str_from(map_mistakes[i].expected)) >= 0 &&
                          str_search(buffer_str(&expected), STR(":2:")) >= 0,
                      "\"%s\" is not in:\n" STR_FMT, map_mistakes[i].expected, STR_ARG(buffer_str(&expected)));
        buffer_finish(&expected);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        responds_to_each_case, clients_may_disconnect_during_file_checks, conditions_without_set,
        invalid_configurations_are_rejected, invalid_maps_are_rejected, NULL,
    };

    return loopback_run("rewrite", tests);
}
