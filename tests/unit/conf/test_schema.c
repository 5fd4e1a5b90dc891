#include "sample.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct arena arena;
static struct conf_errors errors;
static struct conf_reader reader;
static struct sample_values values;

static void set_up(void)
{
    arena_init(&arena, NULL, 0);
    errors = (struct conf_errors){.arena = &arena};
    reader = (struct conf_reader){.arena = &arena, .errors = &errors, .variables = &sample_variables};
}

static void tear_down(void)
{
    arena_reset(&arena);
}

static void read_good(const char *text)
{
    struct conf_node *root = conf_tree_parse(&arena, STR("t.yaml"), str_from(text), &errors);
    struct buffer out = {0};

    if (root)
        sample_walk(&reader, root, &values);
    ck_assert_int_eq(conf_errors_print(&errors, &out), 0);
    ck_assert_msg(errors.count == 0 && root, "%s\n" STR_FMT, text, STR_ARG(buffer_str(&out)));
    buffer_finish(&out);
}

static const struct sample_site *site_of(const struct conf_scope_values *scope)
{
    return conf_scope_group(scope, SAMPLE_SITE);
}

START_TEST(absent_directives_have_their_defaults)
{
    const struct sample_main *main_conf;
    const struct sample_site *site;
    const struct sample_server *server;

    read_good("events: {}\nhttp:\n  server: {}\n");
    main_conf = conf_scope_group(values.main, SAMPLE_MAIN);
    site = site_of(values.http);
    server = conf_scope_group(values.server, SAMPLE_SERVER);
    ck_assert_uint_eq(main_conf->workers, 1);
    ck_assert(!main_conf->daemon);
    ck_assert_uint_eq(main_conf->connections, 512);
    ck_assert(str_equal(main_conf->error_log.path, STR("stderr")));
    ck_assert_ptr_null(site->root.data);
    ck_assert_uint_eq(site->index.count, 1);
    ck_assert_uint_eq(site->keepalive_ms, 75000);
    ck_assert_uint_eq(site->body_size, 1 << 20);
    ck_assert(site->sendfile && !site->internal);
    ck_assert(template_constant(site->charset));
    ck_assert_uint_eq(server->protocols, 3);
    ck_assert_uint_eq(server->listen.count, 0);
    ck_assert(!conf_scope_is_set(values.http, SAMPLE_SITE, 0));
}
END_TEST

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

START_TEST(inner_scopes_inherit_and_replace_values)
{
    const struct sample_site *http;
    const struct sample_site *server;
    const struct sample_site *location;
    const struct sample_header *headers;

    read_good(
        "http:\n  root: /a\n  sendfile: off\n  add_header: {A: 1}\n  ssl_certificate: /c\n"
        "  server:\n    root: /b\n    index: [x, y]\n    return: 204\n    add_header: {B: 2, C: $host}\n"
        "    location:\n      /:\n        internal: on\n        add_header: {D: 4}\n"
        "        location:\n          /deep: {sendfile: on}\n");
    http = site_of(values.http);
    server = site_of(values.server);
    location = site_of(values.location);
    ck_assert(str_equal(http->root, STR("/a")) && str_equal(server->root, STR("/b")));
    ck_assert(str_equal(location->root, STR("/b")));
    ck_assert(!location->sendfile && location->internal && !server->internal);
    ck_assert_uint_eq(location->index.count, 2);
    ck_assert_uint_eq(http->headers.count, 1);
    ck_assert_uint_eq(server->headers.count, 3);
    ck_assert_uint_eq(location->headers.count, 4);
    headers = location->headers.items;
    ck_assert(str_equal(headers[0].name, STR("A")) && str_equal(headers[3].name, STR("D")));
    ck_assert_uint_eq(
        ((const struct sample_return *)conf_scope_group(values.server, SAMPLE_RETURN))->words.count, 1);
    ck_assert_uint_eq(
        ((const struct sample_return *)conf_scope_group(values.location, SAMPLE_RETURN))->words.count, 0);
    ck_assert(conf_scope_is_set(values.location, SAMPLE_SITE, 0));
    ck_assert(!conf_scope_is_set(values.location, SAMPLE_SITE, 2));
    ck_assert_ptr_eq(conf_scope_group(values.location, SAMPLE_SERVER),
                     conf_scope_group(values.server, SAMPLE_SERVER));
    ck_assert_ptr_eq(conf_scope_group(values.location, SAMPLE_MAIN),
                     conf_scope_group(values.main, SAMPLE_MAIN));
    ck_assert_uint_eq(location->checks, 1);
}
END_TEST

START_TEST(inner_scopes_append_to_inherited_lists)
{
    const struct sample_site *http;
    const struct sample_site *location;
    const struct str *allowed;

    read_good(
        "http:\n  allow: [a, b]\n  try_words: $host\n  own_limits: {rate: 1, strict: on}\n  server:\n    "
        "allow: c\n"
        "    location:\n      /:\n        allow: [d]\n        more_words: w\n        try_words: [$uri, x]\n");
    http = site_of(values.http);
    location = site_of(values.location);
    allowed = location->allowed.items;
    ck_assert_uint_eq(http->allowed.count, 2);
    ck_assert_uint_eq(site_of(values.server)->allowed.count, 3);
    ck_assert_uint_eq(location->allowed.count, 4);
    ck_assert(str_equal(allowed[0], STR("a")) && str_equal(allowed[2], STR("c")) &&
              str_equal(allowed[3], STR("d")));
    ck_assert_uint_eq(http->more.count, 2);
    ck_assert(str_equal(http->more.items[0], STR("x y")));
    ck_assert_uint_eq(location->more.count, 3);
    ck_assert(str_equal(location->more.items[2], STR("w")));
    ck_assert_uint_eq(location->try.count, 3);
    ck_assert(!template_constant(location->try.items[0]) && template_constant(location->try.items[2]));
    ck_assert_uint_eq(http->own.rate, 1);
    ck_assert(http->own.strict);
    ck_assert_uint_eq(location->own.rate, 7);
    ck_assert(!location->own.strict);
}
END_TEST

START_TEST(siblings_share_no_values)
{
    const struct sample_site *site;

    read_good("http:\n  add_header: {A: 1}\n  server:\n    location:\n"
              "      /a: {add_header: {B: 1}}\n      /b: {add_header: {C: 1}}\n");
    site = site_of(values.location);
    ck_assert_uint_eq(site->headers.count, 2);
    ck_assert(str_equal(((const struct sample_header *)site->headers.items)[1].name, STR("B")));
    ck_assert_uint_eq(site_of(values.http)->headers.count, 1);
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

START_TEST(deprecated_directives_are_read_with_a_warning)
{
    static const char text[] = "http: {idle_time: 3s, own_limits: {burst: 4}}\n";
    struct conf_node *root = conf_tree_parse(&arena, STR("t.yaml"), str_from(text), &errors);

    ck_assert_ptr_nonnull(root);
    sample_walk(&reader, root, &values);
    ck_assert(!errors.failed);
    ck_assert_uint_eq(errors.count, 2);
    ck_assert_uint_eq(site_of(values.http)->idle_ms, 3000);
    ck_assert_uint_eq(site_of(values.http)->own.burst, 4);
}
END_TEST

START_TEST(x_keys_are_ignored)
{
    read_good("x-anything: {no: [such, thing]}\nhttp:\n  x-more: 1\n  server: {x-y: z}\n");
}
END_TEST

/* Every value is right, or the scope is NULL, or an error reports the lack of memory: no value is read in part. */
static bool reads_whole_or_fails(const struct conf_node *root, size_t room)
{
    struct conf_errors found = {.arena = &arena};
    struct buffer text = {0};
    struct arena tight;
    bool whole;

    arena_init(&tight, NULL, room);
    reader.arena = &tight;
    reader.errors = &found;
    sample_walk(&reader, root, &values);
    ck_assert_int_eq(conf_errors_print(&found, &text), 0);
    whole = values.main && values.http && !found.failed;
    ck_assert_msg(!found.failed || str_search(buffer_str(&text), STR("out of memory")) >= 0, "%zu bytes: " STR_FMT,
                  room, STR_ARG(buffer_str(&text)));
    if (whole) {
        ck_assert(str_equal(site_of(values.http)->root, STR("/a")));
        ck_assert_uint_eq(site_of(values.http)->index.count, 1);
        ck_assert_uint_eq(site_of(values.http)->keepalive_ms, 75000);
    }
    buffer_finish(&text);
    arena_reset(&tight);
    return whole;
}

START_TEST(reading_fails_with_too_little_memory)
{
    struct conf_node *root = conf_tree_parse(&arena, STR("t.yaml"), STR("http: {root: /a}"), &errors);
    unsigned read = 0, failed = 0;

    for (size_t room = 1; room < 64; room++) {
        if (reads_whole_or_fails(root, room * 256))
            read++;
        else
            failed++;
    }
    ck_assert_uint_gt(failed, 0);
    ck_assert_uint_gt(read, 0);
    ck_assert(!reads_whole_or_fails(root, 1));
    ck_assert(reads_whole_or_fails(root, 1 << 20));
}
END_TEST

#define COUNT(table) (int)(sizeof(table) / sizeof(table[0]))

int main(void)
{
    Suite *suite = suite_create("schema");
    TCase *tests = tcase_create("schema");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, absent_directives_have_their_defaults);
    tcase_add_test(tests, value_of_every_type_is_read);
    tcase_add_test(tests, inner_scopes_inherit_and_replace_values);
    tcase_add_test(tests, inner_scopes_append_to_inherited_lists);
    tcase_add_test(tests, siblings_share_no_values);
    tcase_add_loop_test(tests, sizes_are_parsed, 0, COUNT(sizes));
    tcase_add_loop_test(tests, durations_are_parsed, 0, COUNT(durations));
    tcase_add_loop_test(tests, switches_are_parsed, 0, COUNT(switches));
    tcase_add_loop_test(tests, words_are_parsed, 0, COUNT(words));
    tcase_add_test(tests, relative_paths_begin_at_the_prefix);
    tcase_add_test(tests, environment_variables_are_expanded_in_values);
    tcase_add_test(tests, deprecated_directives_are_read_with_a_warning);
    tcase_add_test(tests, x_keys_are_ignored);
    tcase_add_test(tests, reading_fails_with_too_little_memory);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
