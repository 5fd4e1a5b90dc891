/* Values of directives by type. */
#include "schema_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

START_TEST(value_of_every_type_is_read)
{
    const struct sample_main *main_conf;
    const struct sample_site *site;
    const struct sample_server *server;
    const struct str *listen;

    read_good("worker_processes: 4\ndaemon: yes\nerror_log: {level: notice}\n"
              "events: {use: epoll, worker_connections: 10}\n"
              "http:\n  server:\n  - root: /srv/www\n    index: a 'b c' \"d\\\"e\"\n    charset: x-$host\n"
              "    try_words: [$uri, $uri/]\n    keepalive_timeout: 1m 30s\n    client_max_body_size: 2MiB\n"
              "    sendfile: false\n    disable_symlinks: yes\n    default_type: a b\n"
              "    listen: [80, 443 ssl]\n    server_name: [a, b c]\n    ssl_protocols: TLSv1.3\n"
              "    ssl_certificate: /c.pem\n    return: 200 'x y'\n");
    main_conf = conf_scope_group(values.main, SAMPLE_MAIN);
    site = site_of(values.server);
    server = conf_scope_group(values.server, SAMPLE_SERVER);
    listen = server->listen.items;
    ck_assert_uint_eq(main_conf->workers, 4);
    ck_assert(main_conf->daemon);
    ck_assert_int_eq(main_conf->error_log.level, 2);
    ck_assert(str_equal(main_conf->error_log.path, STR("stderr")));
    ck_assert_int_eq(main_conf->use, 2);
    ck_assert_uint_eq(main_conf->connections, 10);
    ck_assert(str_equal(site->root, STR("/srv/www")));
    ck_assert_uint_eq(site->index.count, 3);
    ck_assert(str_equal(site->index.items[1], STR("b c")));
    ck_assert(str_equal(site->index.items[2], STR("d\"e")));
    ck_assert(!template_constant(site->charset));
    ck_assert_uint_eq(site->try.count, 2);
    ck_assert_uint_eq(site->keepalive_ms, 90000);
    ck_assert_uint_eq(site->body_size, 2 << 20);
    ck_assert(!site->sendfile);
    ck_assert_int_eq(site->symlinks, 1);
    ck_assert(str_equal(site->default_type, STR("a b")));
    ck_assert_uint_eq(server->listen.count, 2);
    ck_assert(str_equal(listen[1], STR("443 ssl")));
    ck_assert_uint_eq(server->names.count, 2);
    ck_assert(str_equal(server->names.items[1], STR("b c")));
    ck_assert_uint_eq(server->protocols, 2);
    ck_assert(str_equal(server->certificate, STR("/c.pem")));
}
END_TEST

static const struct {
    const char *text;
    uint64_t value;
} sizes[] = {
    {"0", 0},           {"10", 10},    {"4k", 4096},      {"4K", 4096},     {"1m", 1 << 20},
    {"2g", 2ull << 30}, {"1kb", 1024}, {"3MiB", 3 << 20}, {"1GB", 1 << 30},
};

START_TEST(sizes_are_parsed)
{
    char text[64];

    snprintf(text, sizeof(text), "http: {client_max_body_size: %s}", sizes[_i].text);
    read_good(text);
    ck_assert_uint_eq(site_of(values.http)->body_size, sizes[_i].value);
}
END_TEST

static const struct {
    const char *text;
    uint64_t value;
} durations[] = {
    {"0", 0},        {"0s", 0},           {"500ms", 500},
    {"30s", 30000},  {"5m", 300000},      {"59m59s999ms", 3599999},
    {"1h", 3600000}, {"1m 500ms", 60500},
};

START_TEST(durations_are_parsed)
{
    char text[64];

    snprintf(text, sizeof(text), "http: {keepalive_timeout: %s}", durations[_i].text);
    read_good(text);
    ck_assert_uint_eq(site_of(values.http)->keepalive_ms, durations[_i].value);
}
END_TEST

static const struct {
    const char *text;
    bool value;
} switches[] = {
    {"on", true},  {"off", false}, {"true", true}, {"false", false}, {"yes", true},
    {"no", false}, {"True", true}, {"OFF", false}, {"'on'", true},
};

START_TEST(switches_are_parsed)
{
    char text[64];

    snprintf(text, sizeof(text), "http: {sendfile: %s}", switches[_i].text);
    read_good(text);
    ck_assert_int_eq(site_of(values.http)->sendfile, switches[_i].value);
}
END_TEST

static const struct {
    const char *text;
    const char *words; /* joined by "|" */
} words[] = {
    {"a b", "a|b"},
    {"a", "a"},
    {"\"  a   b \"", "a|b"},
    {"'200 \"a b\"'", "200|a b"},
    {"200 'a b'", "200|a b"},
    {"200 ''", "200|"},
    {"'\\.html$ \\d{3}'", "\\.html$|\\d{3}"},
    {"'a\\\\b \\\"c\\\" d\\te'", "a\\b|\"c\"|d\te"},
    {"[a b, 'c', \"'d'\"]", "a b|c|'d'"},
    {"it's", "it's"},
    {"no", "no"},
    {"22:22 0755 1e3 ~ null", "22:22|0755|1e3|~|null"},
    {"a # a comment", "a"},
};

START_TEST(words_are_parsed)
{
    const struct conf_words *got;
    struct buffer joined = {0};
    char text[96];

    snprintf(text, sizeof(text), "http:\n  index: %s\n", words[_i].text);
    read_good(text);
    got = &site_of(values.http)->index;
    for (size_t i = 0; i < got->count; i++) {
        ck_assert_int_eq(buffer_append(&joined, i ? STR("|") : STR("")), 0);
        ck_assert_int_eq(buffer_append(&joined, got->items[i]), 0);
    }
    ck_assert_msg(str_equal(buffer_str(&joined), str_from(words[_i].words)), "%s gave " STR_FMT,
                  words[_i].text, STR_ARG(buffer_str(&joined)));
    buffer_finish(&joined);
}
END_TEST

START_TEST(relative_paths_begin_at_the_prefix)
{
    char here[4096];
    struct str want;

    ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
    read_good("http: {root: www/x}");
    want = arena_printf(&arena, "%s/www/x", here);
    ck_assert(str_equal(site_of(values.http)->root, want));
    reader.prefix = STR("/srv/");
    read_good("http: {root: www/x}");
    ck_assert(str_equal(site_of(values.http)->root, STR("/srv/www/x")));
    reader.prefix = STR("rel");
    read_good("http: {root: www}");
    want = arena_printf(&arena, "%s/rel/www", here);
    ck_assert(str_equal(site_of(values.http)->root, want));
    reader.prefix = STR("/");
    read_good("http: {root: www}");
    ck_assert(str_equal(site_of(values.http)->root, STR("/www")));
}
END_TEST

START_TEST(environment_variables_are_expanded_in_values)
{
    setenv("SLUICE_SIZE", "3m", 1);
    setenv("SLUICE_STRUCTURE", "on}, root: {", 1);
    read_good("http: {client_max_body_size: '${SLUICE_SIZE}', default_type: '${SLUICE_STRUCTURE}', "
              "charset: '${SLUICE_NOT_THERE:-x}$host'}");
    ck_assert_uint_eq(site_of(values.http)->body_size, 3 << 20);
    ck_assert(str_equal(site_of(values.http)->default_type, STR("on}, root: {")));
}
END_TEST

#define COUNT(table) (int)(sizeof(table) / sizeof(table[0]))

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, value_of_every_type_is_read);
    tcase_add_loop_test(tcase, sizes_are_parsed, 0, COUNT(sizes));
    tcase_add_loop_test(tcase, durations_are_parsed, 0, COUNT(durations));
    tcase_add_loop_test(tcase, switches_are_parsed, 0, COUNT(switches));
    tcase_add_loop_test(tcase, words_are_parsed, 0, COUNT(words));
    tcase_add_test(tcase, relative_paths_begin_at_the_prefix);
    tcase_add_test(tcase, environment_variables_are_expanded_in_values);
}

int main(void)
{
    return run_suite("schema_values", add_tests);
}
