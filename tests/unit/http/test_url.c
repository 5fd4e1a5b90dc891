#include "http/url.h"

#include "suite.h"

#include <errno.h>

static struct arena arena;

START_TEST(valid_targets_give_path_and_query)
{
    static const struct {
        const char *target;
        const char *path;
        const char *query; /* NULL: no query */
    } cases[] = {
        {"/", "/", NULL},
        {"/a", "/a", NULL},
        {"/a/", "/a/", NULL},
        {"/a?", "/a", ""},
        {"/a?b=c", "/a", "b=c"},
        {"/?/../..", "/", "/../.."},
        {"/a?b?c", "/a", "b?c"},
        {"/a%20b", "/a b", NULL},
        {"/%41%5a%7e", "/AZ~", NULL},
        {"/a%2fb", "/a/b", NULL},
        {"/a%2Fb", "/a/b", NULL},
        {"/%c3%a9", "/\xc3\xa9", NULL},
        {"/\xc3\xa9", "/\xc3\xa9", NULL},
        {"/%ff", "/\xff", NULL},
        {"/a%3fb", "/a?b", NULL},
        {"/a%23b", "/a#b", NULL},
        {"/%25", "/%", NULL},
        {"/%2525", "/%25", NULL},
        {"/a\\b", "/a\\b", NULL},
        {"/a%5cb", "/a\\b", NULL},
        {"/a+b", "/a+b", NULL},
        {"/..\\", "/..\\", NULL},
        {"/a/..%5c..%5c", "/a/..\\..\\", NULL},
        /* dot segments */
        {"/.", "/", NULL},
        {"/./", "/", NULL},
        {"/a/.", "/a/", NULL},
        {"/a/./b", "/a/b", NULL},
        {"/a/..", "/", NULL},
        {"/a/../", "/", NULL},
        {"/a/../b", "/b", NULL},
        {"/a/b/..", "/a/", NULL},
        {"/a/b/../../c", "/c", NULL},
        {"/a/%2e%2e/b", "/b", NULL},
        {"/a/.%2e/b", "/b", NULL},
        {"/a%2f..%2fb", "/b", NULL},
        {"/...", "/...", NULL},
        {"/a/...", "/a/...", NULL},
        {"/..a", "/..a", NULL},
        {"/a..", "/a..", NULL},
        {"/.a", "/.a", NULL},
        {"/a./b", "/a./b", NULL},
        {"/.well-known/x", "/.well-known/x", NULL},
        {"/a/.b/..", "/a/", NULL},
        /* slashes */
        {"//", "/", NULL},
        {"//a", "/a", NULL},
        {"/a//b", "/a/b", NULL},
        {"/a///", "/a/", NULL},
        {"/a//..", "/", NULL},
        {"/a%2f%2fb", "/a/b", NULL},
        {"/a/b//../c", "/a/c", NULL},
        {"//a/../b", "/b", NULL},
        /* absolute-form */
        {"http://h", "/", NULL},
        {"http://h/", "/", NULL},
        {"HTTPS://h/a/../b?c", "/b", "c"},
        {"http://h?q", "/", "q"},
        {"http://h:80/x", "/x", NULL},
        {"*", "*", NULL},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct url_target parsed;

        arena_init(&arena, NULL, 0);
        ck_assert_msg(url_target_parse(&arena, str_from(cases[i].target), true, &parsed) == 0, "%s rejected",
                      cases[i].target);
        ck_assert_text(parsed.path, cases[i].path);
        ck_assert(!parsed.query.data == !cases[i].query);
        ck_assert_text(parsed.query, cases[i].query);
        ck_assert_int_eq(parsed.asterisk, strcmp(cases[i].target, "*") == 0);
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(invalid_targets_are_rejected)
{
    static const char *const cases[] = {
        "",           "a",         "a/b",
        "?",          "#",         "/#",
        "/a#b",       "/a?b#c",    "**",
        "*a",         "h:80",      "/..",
        "/../",       "/../a",     "/a/../..",
        "/a/../../b", "/%2e%2e",   "/%2e%2e%2fetc",
        "/.%2e/",     "/..%2f",    "/a/..%2f..%2f",
        "//..",       "//../",     "/./..",
        "/a/.././..", "/%",        "/%2",
        "/%zz",       "/%2g",      "/a%",
        "/a%4",       "/%00",      "/a%00b",
        "/%0a",       "/%0d%0a",   "/%1f",
        "/%7f",       "/\x7f",     "/\x01",
        "/a\tb",      "http:/a",   "http://",
        "http:///a",  "http://?q", "ftp://h/",
        "httpx://h/", "//h\n",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct url_target parsed = {.query = STR("untouched")};

        arena_init(&arena, NULL, 0);
        ck_assert_msg(url_target_parse(&arena, str_from(cases[i]), true, &parsed) == -EINVAL,
                      "\"%s\" accepted", cases[i]);
        ck_assert_text(parsed.query, "untouched");
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(slashes_are_preserved_with_merge_slashes_off)
{
    static const struct {
        const char *target;
        const char *path;
    } cases[] = {
        {"//a", "//a"},         {"/a//b", "/a//b"}, {"/a//..", "/a/"}, {"//..", "/"},
        {"/a///../b", "/a//b"}, {"/a/%2f", "/a//"}, {"/a//.", "/a//"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct url_target parsed;

        arena_init(&arena, NULL, 0);
        ck_assert_int_eq(url_target_parse(&arena, str_from(cases[i].target), false, &parsed), 0);
        ck_assert_text(parsed.path, cases[i].path);
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(absolute_form_gives_authority_and_target)
{
    struct url_target parsed;

    arena_init(&arena, NULL, 0);
    ck_assert_int_eq(url_target_parse(&arena, STR("http://Exa.mple:8080/a/./b?c"), true, &parsed), 0);
    ck_assert_text(parsed.authority, "Exa.mple:8080");
    ck_assert_text(parsed.target, "/a/./b?c");
    ck_assert_int_eq(url_target_parse(&arena, STR("http://h?q"), true, &parsed), 0);
    ck_assert_text(parsed.target, "/?q");
    ck_assert(!parsed.bare);
    ck_assert_int_eq(url_target_parse(&arena, STR("http://h"), true, &parsed), 0);
    ck_assert_text(parsed.target, "/");
    ck_assert_int_eq(url_target_parse(&arena, STR("/x"), true, &parsed), 0);
    ck_assert_text(parsed.authority, "");
    arena_reset(&arena);
}
END_TEST

START_TEST(internal_paths_are_normalised_without_decoding)
{
    struct str path;

    arena_init(&arena, NULL, 0);
    ck_assert_int_eq(url_path_normalise(&arena, STR("/a/../b%2e/./c"), true, &path), 0);
    ck_assert_text(path, "/b%2e/c");
    ck_assert_int_eq(url_path_normalise(&arena, STR("/a//b"), false, &path), 0);
    ck_assert_text(path, "/a//b");
    ck_assert_int_eq(url_path_normalise(&arena, STR("/.."), true, &path), -EINVAL);
    ck_assert_int_eq(url_path_normalise(&arena, STR("a"), true, &path), -EINVAL);
    ck_assert_int_eq(url_path_normalise(&arena, STR(""), true, &path), -EINVAL);
    ck_assert_int_eq(url_path_normalise(&arena, STR("/a\0b"), true, &path), -EINVAL);
    ck_assert_text(path, "/a//b");
    arena_reset(&arena);
}
END_TEST

START_TEST(valid_hosts_give_name_and_port)
{
    static const struct {
        const char *text;
        const char *host;
        unsigned port;
    } cases[] = {
        {"a", "a", 0},
        {"Example.COM", "example.com", 0},
        {"example.com.", "example.com", 0},
        {"a:80", "a", 80},
        {"a:", "a", 0},
        {"a:65535", "a", 65535},
        {"127.0.0.1:8443", "127.0.0.1", 8443},
        {"[::1]", "[::1]", 0},
        {"[::1]:443", "[::1]", 443},
        {"[FE80::A]", "[fe80::a]", 0},
        {"[::ffff:1.2.3.4]:1", "[::ffff:1.2.3.4]", 1},
        {"a_b-c.d~", "a_b-c.d~", 0},
        {"a:0080", "a", 80},
        {"xn--bcher-kva.example", "xn--bcher-kva.example", 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str host;
        uint16_t port = 9;

        arena_init(&arena, NULL, 0);
        ck_assert_msg(url_host_parse(&arena, str_from(cases[i].text), &host, &port) == 0, "%s rejected",
                      cases[i].text);
        ck_assert_text(host, cases[i].host);
        ck_assert_uint_eq(port, cases[i].port);
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(invalid_hosts_are_rejected)
{
    static const char *const cases[] = {
        "",
        ":",
        ":80",
        ".",
        "..",
        ".a",
        "a..b",
        "a..",
        "a:x",
        "a:-1",
        "a:+1",
        "a:65536",
        "a:99999999999999999999",
        "a:80:80",
        "a b",
        "a/b",
        "a?b",
        "a#b",
        "u@a",
        "u:p@a",
        "a\\b",
        "a%20",
        "%61",
        "a\x01",
        "a\x7f",
        "\xc3\xa9",
        "<a>",
        "\"a\"",
        "[",
        "]",
        "[]",
        "[::1",
        "::1",
        "[::1]x",
        "[::1]80",
        "[::g]",
        "[1.2.3.4]",
        "[fe80::1%eth0]",
        "[v1.x]",
        "a,b:c",
        "a:8 0",
        "a\t",
    };
    char longer[300];

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str host = STR("untouched");
        uint16_t port = 9;

        arena_init(&arena, NULL, 0);
        ck_assert_msg(url_host_parse(&arena, str_from(cases[i]), &host, &port) == -EINVAL, "\"%s\" accepted",
                      cases[i]);
        ck_assert_text(host, "untouched");
        ck_assert_uint_eq(port, 9);
        arena_reset(&arena);
    }
    memset(longer, 'a', sizeof(longer));
    arena_init(&arena, NULL, 0);
    ck_assert_int_eq(url_host_parse(&arena, str_of(longer, 255), &(struct str){0}, &(uint16_t){0}), 0);
    ck_assert_int_eq(url_host_parse(&arena, str_of(longer, 256), &(struct str){0}, &(uint16_t){0}), -EINVAL);
    arena_reset(&arena);
}
END_TEST

START_TEST(reserved_and_binary_bytes_are_encoded)
{
    static const struct {
        const char *path;
        const char *encoded;
    } cases[] = {
        {"/", "/"},
        {"/a b", "/a%20b"},
        {"/\xc3\xa9", "/%C3%A9"},
        {"/%", "/%25"},
        {"/a?b#c", "/a%3Fb%23c"},
        {"/a:b@c;d=e", "/a:b@c;d=e"},
        {"/<\"'>", "/%3C%22'%3E"},
        {"/\r\n", "/%0D%0A"},
        {"", ""},
        {"/a\\b", "/a%5Cb"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        arena_init(&arena, NULL, 0);
        ck_assert_text(url_path_encode(&arena, str_from(cases[i].path)), cases[i].encoded);
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(target_is_not_parsed_without_memory)
{
    struct url_target parsed;
    struct str path;
    uint16_t port;

    arena_init(&arena, NULL, 1);
    ck_assert_int_eq(url_target_parse(&arena, STR("/plain"), true, &parsed), 0);
    ck_assert_int_eq(url_target_parse(&arena, STR("/%20"), true, &parsed), -ENOMEM);
    ck_assert_int_eq(url_path_normalise(&arena, STR("/a"), true, &path), -ENOMEM);
    ck_assert_int_eq(url_host_parse(&arena, STR("a"), &path, &port), -ENOMEM);
    ck_assert_ptr_null(url_path_encode(&arena, STR("/")).data);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        valid_targets_give_path_and_query, invalid_targets_are_rejected, slashes_are_preserved_with_merge_slashes_off,
        absolute_form_gives_authority_and_target, internal_paths_are_normalised_without_decoding,
        valid_hosts_give_name_and_port, invalid_hosts_are_rejected, reserved_and_binary_bytes_are_encoded,
        target_is_not_parsed_without_memory,
    };

    return suite_run("url", tests, COUNT(tests));
}
