/* Scopes: defaults, inheritance, and what the reader reports. */
#include "schema_fixture.h"

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

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, absent_directives_have_their_defaults);
    tcase_add_test(tcase, inner_scopes_inherit_and_replace_values);
    tcase_add_test(tcase, inner_scopes_append_to_inherited_lists);
    tcase_add_test(tcase, siblings_share_no_values);
    tcase_add_test(tcase, deprecated_directives_are_read_with_a_warning);
    tcase_add_test(tcase, x_keys_are_ignored);
    tcase_add_test(tcase, reading_fails_with_too_little_memory);
}

int main(void)
{
    return run_suite("schema", add_tests);
}
