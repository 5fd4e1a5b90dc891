#include "server/route.h"

#include "../runner.h"

#include <stdio.h>

static const char servers[] =
    "http:\n"
    "  server:\n"
    "    - {listen: 8080, server_name: default}\n"
    "    - {listen: 8080, server_name: example.com}\n"
    "    - {listen: 8080, server_name: '*.example.com'}\n"
    "    - {listen: 8080, server_name: '*.deep.example.com'}\n"
    "    - {listen: 8080, server_name: 'www.*'}\n"
    "    - {listen: 8080, server_name: 'www.trail.*'}\n"
    "    - {listen: 8080, server_name: .dotted.org}\n"
    "    - {listen: 8080, server_name: [Upper.Example.ORG, '']}\n"
    "    - {listen: 8080, server_name: [first, '~^(?<user>\\w+)\\.re\\.example\\.net$']}\n"
    "    - {listen: 8080, server_name: [second, '~\\.NET$']}\n";

static const struct {
    const char *host;
    const char *name; /* the server's first name */
} names[] = {
    {"example.com", "example.com"},
    {"example.com.", "example.com"},
    {"a.example.com", "*.example.com"},
    {"a.b.example.com", "*.example.com"},
    {"a.deep.example.com", "*.deep.example.com"},
    {"deep.example.com", "*.example.com"},
    {"www.example.com", "*.example.com"}, /* a leading wildcard takes precedence over a trailing one */
    {"www.other.net", "www.*"},
    {"www.trail.net", "www.trail.*"},
    {"www.trail.co.net", "www.trail.*"},
    {"www", "default"},
    {"www.", "default"},
    {"dotted.org", "dotted.org"},
    {"x.dotted.org", "dotted.org"},
    {"xdotted.org", "default"},
    {"upper.example.org", "upper.example.org"},
    {"", "upper.example.org"},
    {"unknown", "default"},
    {"ann.re.example.net", "first"},
    {"re.example.net", "second"},
    {"www.other.net", "www.*"}, /* a wildcard takes precedence over a regular expression */
    {"any.net.", "second"},
    {".example.com", "default"},
    {"[::1]", "default"},
};

static const char locations[] = "http:\n"
                                "  server:\n"
                                "    listen: 8080\n"
                                "    location:\n"
                                "      = /: {}\n"
                                "      /: {}\n"
                                "      /images: {}\n"
                                "      /images/: {location: {/images/icons/: {}, = /images/one: {}}}\n"
                                "      = /images/exact: {}\n"
                                "      ^~ /final/: {location: {'~ in$': {}}}\n"
                                "      ~ \\.Gif$: {}\n"
                                "      ~* \\.gif$: {}\n"
                                "      ~ ^/re/(?<rest>.*)$: {location: {'~ x$': {}}}\n"
                                "      /re/: {location: {/re/inner/: {location: {'~ \\.txt$': {}}}}}\n"
                                "      /re/deep/: {location: {= /re/deep/one: {}}}\n"
                                "      '@named': {}\n";

static const struct {
    const char *path;
    const char *pattern;
    enum location_kind kind;
} paths[] = {
    {"/", "/", LOCATION_EXACT},
    {"/x", "/", LOCATION_PREFIX},
    {"/image", "/", LOCATION_PREFIX},
    {"/images", "/images", LOCATION_PREFIX},
    {"/imagesque", "/images", LOCATION_PREFIX},
    {"/images/", "/images/", LOCATION_PREFIX},
    {"/images/a", "/images/", LOCATION_PREFIX},
    {"/images/icons/a", "/images/icons/", LOCATION_PREFIX},
    {"/images/icons", "/images/", LOCATION_PREFIX},
    {"/images/one", "/images/one", LOCATION_EXACT},
    {"/images/one/", "/images/", LOCATION_PREFIX},
    {"/images/exact", "/images/exact", LOCATION_EXACT},
    {"/images/exact/", "/images/", LOCATION_PREFIX},
    {"/final/x", "/final/", LOCATION_PREFIX_FINAL},
    {"/final", "/", LOCATION_PREFIX},
    {"/final/x.gif", "/final/", LOCATION_PREFIX_FINAL},
    {"/final/in", "~ in$", LOCATION_REGEX},
    {"/a.Gif", "~ \\.Gif$", LOCATION_REGEX},
    {"/a.giF", "~* \\.gif$", LOCATION_REGEX},
    {"/a.gif/", "/", LOCATION_PREFIX},
    {"/images/a.gif", "~* \\.gif$", LOCATION_REGEX},
    {"/re/a", "~ ^/re/(?<rest>.*)$", LOCATION_REGEX},
    {"/re/ax", "~ x$", LOCATION_REGEX},
    {"/re/inner/a", "~ ^/re/(?<rest>.*)$", LOCATION_REGEX},
    {"/re/inner/a.txt", "~ \\.txt$", LOCATION_REGEX},
    {"/re/deep/one", "/re/deep/one", LOCATION_EXACT},
    {"/@named", "/", LOCATION_PREFIX},
    {"@named", "/", LOCATION_PREFIX}, /* the scope of the server, not the named location */
};

static struct configuration *load(const char *text)
{
    struct configuration_source source = {.text = str_from(text)};
    struct buffer diagnostics = {0};
    struct log quiet = {.level = LOG_EMERG};
    struct configuration *configuration = configuration_load(&source, &quiet, &diagnostics);

    ck_assert_msg(configuration != NULL, "rejected:\n%.*s", (int)diagnostics.length, diagnostics.data);
    buffer_finish(&diagnostics);
    return configuration;
}

START_TEST(server_is_selected_by_its_most_specific_name)
{
    struct configuration *c = load(servers);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct exchange x = {.request.host = str_from(names[i].host)};
        struct worker worker = {.configuration = c};
        struct request_state request = {.x = &x, .worker = &worker, .user_values.arena = &x.arena};

        x.owner = &request;
        route_server(&request, &c->endpoints[0]);
        ck_assert_msg(str_equal(request.server->name, str_from(names[i].name)), "%s: %.*s", names[i].host,
                      (int)request.server->name.length, request.server->name.data);
        if (str_equal(request.server->name, STR("first")))
            ck_assert(str_equal(
                request.user_values.values[user_variable_find(&c->user_variables, STR("user"))->index],
                STR("ann")));
        arena_reset(&x.arena);
    }
    configuration_destroy(c);
}
END_TEST

START_TEST(one_server_answers_all_names)
{
    struct configuration *c = load(locations);
    struct exchange x = {.request.host = STR("whatever")};
    struct request_state request = {.x = &x};

    route_server(&request, &c->endpoints[0]);
    ck_assert_ptr_eq(request.server, c->servers[0]);
    configuration_destroy(c);
}
END_TEST

START_TEST(location_is_selected_by_path_and_modifier)
{
    struct configuration *c = load(locations);

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct exchange x = {.request.path = str_from(paths[i].path)};
        struct worker worker = {.configuration = c};
        struct request_state request = {
            .x = &x, .server = c->servers[0], .worker = &worker, .user_values.arena = &x.arena};

        x.owner = &request;
        route_location(&request);
        ck_assert_msg(str_equal(request.location->pattern, str_from(paths[i].pattern)), "%s: %.*s",
                      paths[i].path, (int)request.location->pattern.length, request.location->pattern.data);
        ck_assert_int_eq(request.location->kind, paths[i].kind);
        arena_reset(&x.arena);
    }
    configuration_destroy(c);
}
END_TEST

START_TEST(named_location_is_selected_by_its_name)
{
    struct configuration *c = load(locations);
    struct exchange x = {.request.path = STR("/images/a")};
    struct request_state request = {.x = &x, .server = c->servers[0]};

    ck_assert_ptr_null(route_named(&request, STR("@absent")));
    ck_assert_ptr_null(route_named(&request, STR("/images")));
    request.named = route_named(&request, STR("@named"));
    ck_assert_ptr_nonnull(request.named);
    route_location(&request);
    ck_assert(str_equal(request.location->pattern, STR("@named")));
    ck_assert_ptr_null(request.named);
    route_location(&request);
    ck_assert(str_equal(request.location->pattern, STR("/images/")));
    configuration_destroy(c);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {server_is_selected_by_its_most_specific_name, one_server_answers_all_names,
                                  location_is_selected_by_path_and_modifier, named_location_is_selected_by_its_name,
                                  NULL};

    return run_tests("route", tests);
}
