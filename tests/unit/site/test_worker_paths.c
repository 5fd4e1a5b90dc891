#include "site/worker_paths.h"

#include "../runner.h"
#include "build_options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/test_worker_paths.XXXXXX";
static struct configuration *configuration;
static struct sandbox_paths paths;
static struct sandbox_ports ports;

static void make_directory(const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    ck_assert_int_eq(mkdir(path, 0755), 0);
}

/* Loads a configuration whose relative paths are below the test's directory, and collects its paths and ports. */
static void collect(const char *text)
{
    struct configuration_source source = {.text = str_from(text), .prefix = str_from(folder)};
    struct buffer diagnostics = {0};
    struct log quiet = {.level = LOG_EMERG};

    configuration = configuration_load(&source, &quiet, &diagnostics);
    ck_assert_msg(configuration != NULL, "rejected:\n%.*s", (int)diagnostics.length, diagnostics.data);
    buffer_finish(&diagnostics);
    paths = (struct sandbox_paths){0};
    ports = (struct sandbox_ports){0};
    ck_assert_int_eq(worker_paths_collect(configuration, &paths), 0);
    ck_assert_int_eq(worker_ports_collect(configuration, &ports), 0);
}

static void discard(void)
{
    sandbox_paths_close(&paths);
    sandbox_ports_finish(&ports);
    configuration_destroy(configuration);
}

/* True if a path, relative to the test's directory unless it begins with "/", was added with this access. */
static bool has(const char *name, enum sandbox_access access)
{
    char expected[PATH_MAX], link[64], target[PATH_MAX];

    snprintf(expected, sizeof(expected), "%s%s%s", *name == '/' ? "" : folder, *name == '/' || !*name ? "" : "/", name);
    for (size_t i = 0; i < paths.count; i++) {
        ssize_t length;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", paths.items[i].fd);
        length = readlink(link, target, sizeof(target) - 1);
        ck_assert_int_gt(length, 0);
        target[length] = '\0';
        if (strcmp(target, expected) == 0 && paths.items[i].access == access)
            return true;
    }
    return false;
}

static bool has_port(uint16_t port)
{
    for (size_t i = 0; i < ports.count; i++) {
        if (ports.items[i] == port)
            return true;
    }
    return false;
}

static void make_tree(void)
{
    static const char *const names[] = {"www",   "www/inner", "alias", "pattern",  "when",
                                        "sites", "keys",      "cache", "temporary"};

    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        make_directory(names[i]);
}

static void remove_tree(void)
{
    char command[PATH_MAX + 16];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(roots_of_all_scopes)
{
    make_tree();
    collect("http:\n"
            "  server:\n"
            "    listen: 8080\n"
            "    root: www\n"
            "    location:\n"
            "      /a: {alias: alias, location: {/a/b: {root: www/inner}}}\n"
            "      ~ x: {root: pattern}\n"
            "      /w: {when: {$arg_a: {root: when}}}\n");
    ck_assert(has("www", SANDBOX_READ));
    ck_assert(has("www/inner", SANDBOX_READ));
    ck_assert(has("alias", SANDBOX_READ));
    ck_assert(has("pattern", SANDBOX_READ));
    ck_assert(has("when", SANDBOX_READ));
    ck_assert(has("/dev/null", SANDBOX_WRITE));
    ck_assert(BUILD_SANITIZED || !has("/", SANDBOX_READ));
    ck_assert(!has("/etc", SANDBOX_READ));
    ck_assert(!has("sites", SANDBOX_READ));
    ck_assert(!ports.any);
    ck_assert_uint_eq(ports.count, 0);
    discard();
    remove_tree();
}
END_TEST

START_TEST(variables_permit_what_precedes_them)
{
    make_tree();
    collect("http: {server: [{listen: 8080, root: sites/$host/www}]}");
    ck_assert(has("sites", SANDBOX_READ));
    ck_assert(!has("", SANDBOX_READ));
    discard();
    collect("http: {server: [{listen: 8080, root: sites/x$host}]}");
    ck_assert(has("sites", SANDBOX_READ));
    discard();
    collect("http: {server: [{listen: 8080, root: $document_root_of$host, set: {$document_root_of: /srv}}]}");
    ck_assert(has("/", SANDBOX_READ));
    discard();
    remove_tree();
}
END_TEST

START_TEST(links_that_may_lead_anywhere_permit_everything)
{
    make_tree();
    collect("http: {server: [{listen: 8080, root: www, disable_symlinks: off}]}");
    ck_assert(has("/", SANDBOX_READ));
    discard();
    collect("http: {server: [{listen: 8080, root: www, disable_symlinks: on}]}");
    ck_assert(BUILD_SANITIZED || !has("/", SANDBOX_READ));
    discard();
    remove_tree();
}
END_TEST

/* A location that inherits the root of its server and follows all links has a wider sandbox than the server. */
START_TEST(inner_scopes_may_widen_an_inherited_root)
{
    make_tree();
    collect("http: {server: [{listen: 8080, root: www, location: {/a: {autoindex: on}}}]}");
    ck_assert(has("www", SANDBOX_READ) && (BUILD_SANITIZED || !has("/", SANDBOX_READ)));
    discard();
    collect("http: {server: [{listen: 8080, root: www, location: {/a: {disable_symlinks: off}}}]}");
    ck_assert(has("www", SANDBOX_READ) && has("/", SANDBOX_READ));
    discard();
    remove_tree();
}
END_TEST

START_TEST(files_of_modules_and_written_directories)
{
    make_tree();
    collect("http:\n"
            "  proxy_cache_path: {path: cache, keys_zone: 'a:1m'}\n"
            "  proxy_temp_path: temporary\n"
            "  server: {listen: 8080, root: www, auth_basic: a, auth_basic_user_file: keys/users}\n");
    ck_assert(has("keys", SANDBOX_READ));
    ck_assert(has("cache", SANDBOX_WRITE));
    ck_assert(has("temporary", SANDBOX_WRITE));
    ck_assert(!has("keys", SANDBOX_WRITE));
    ck_assert(!has("www", SANDBOX_WRITE));
    discard();
    remove_tree();
}
END_TEST

START_TEST(files_of_conditions)
{
    char text[PATH_MAX * 4];

    make_tree();
    snprintf(text, sizeof(text),
             "http:\n"
             "  server:\n"
             "    listen: 8080\n"
             "    root: www\n"
             "    when: {$arg_a and -f %s/keys/closed: {return: 503}}\n"
             "    location:\n"
             "      /a: {when: {-d '%s/sites/$host/shop': {return: 503}}}\n"
             "      /b: {location: {/b/c: {when: {'!-e %s/alias/open': {return: 503}}}}}\n",
             folder, folder, folder);
    collect(text);
    ck_assert(has("keys", SANDBOX_READ) && has("sites", SANDBOX_READ) && has("alias", SANDBOX_READ));
    ck_assert(!has("", SANDBOX_READ) && !has("keys", SANDBOX_WRITE));
    discard();
    collect("http:\n"
            "  server:\n"
            "    listen: 8080\n"
            "    root: www\n"
            "    when:\n"
            "      -f $document_root/closed: {return: 503}\n"
            "      -f closed: {return: 503}\n"
            "      $arg_a = /etc/x: {return: 404}\n");
    ck_assert(BUILD_SANITIZED || !has("/", SANDBOX_READ));
    ck_assert(!has("/etc", SANDBOX_READ));
    discard();
    remove_tree();
}
END_TEST

/* The default of the *_temp_path directives is not in the list of directories that the file sets. */
START_TEST(temporary_files_exist_with_upstream_servers)
{
    make_tree();
    collect("http: {server: [{listen: 8080, root: www}]}");
    ck_assert(!has("/var/tmp", SANDBOX_WRITE));
    discard();
    collect("http: {server: [{listen: 8080, location: {/a: {proxy_pass: 'http://127.0.0.1:3001'}}}]}");
    ck_assert(has("/var/tmp", SANDBOX_WRITE));
    discard();
    collect("http:\n"
            "  proxy_temp_path: temporary\n"
            "  fastcgi_temp_path: temporary\n"
            "  client_body_temp_path: temporary\n"
            "  server: {listen: 8080, location: {/a: {proxy_pass: 'http://127.0.0.1:3001'}}}\n");
    ck_assert(has("temporary", SANDBOX_WRITE) && !has("/var/tmp", SANDBOX_WRITE));
    discard();
    remove_tree();
}
END_TEST

START_TEST(ports_of_upstream_servers)
{
    make_tree();
    collect("http:\n"
            "  upstream: {app: {server: ['127.0.0.1:3001', '[::1]:3002', 'unix:/run/app.sock']}}\n"
            "  server:\n"
            "    listen: 8080\n"
            "    location:\n"
            "      /a: {proxy_pass: http://app}\n"
            "      /b: {proxy_pass: 'https://127.0.0.1/'}\n"
            "      /c: {fastcgi_pass: '127.0.0.1:9000'}\n");
    ck_assert(has_port(3001) && has_port(3002) && has_port(443) && has_port(9000));
    ck_assert(!has_port(53) && !has_port(80) && !ports.any);
    ck_assert(has("/etc/ssl/certs", SANDBOX_READ));
    ck_assert(!has("/etc", SANDBOX_READ));
    discard();
    remove_tree();
}
END_TEST

START_TEST(names_need_name_servers)
{
    make_tree();
    collect("http:\n"
            "  resolver: '127.0.0.1:5353'\n"
            "  server: {listen: 8080, location: {/: {proxy_pass: 'http://app.internal:3001'}}}\n");
    ck_assert(has_port(3001) && has_port(53) && has_port(5353) && !ports.any);
    ck_assert(has("/etc", SANDBOX_READ));
    discard();
    remove_tree();
}
END_TEST

START_TEST(variables_need_all_ports)
{
    make_tree();
    collect("http: {server: [{listen: 8080, location: {/: {proxy_pass: 'http://127.0.0.1:$arg_port'}}}]}");
    ck_assert(ports.any);
    ck_assert(has("/etc", SANDBOX_READ));
    discard();
    collect("http: {server: [{listen: 8080, location: {/: {fastcgi_pass: '127.0.0.1:$arg_port'}}}]}");
    ck_assert(ports.any);
    discard();
    collect("stream: {server: [{listen: 8080, proxy_pass: $ssl_preread_server_name}]}");
    ck_assert(ports.any);
    discard();
    remove_tree();
}
END_TEST

START_TEST(service_records_need_all_ports)
{
    make_tree();
    collect("http:\n"
            "  upstream: {app: {server: 'app.internal service=http'}}\n"
            "  server: {listen: 8080, location: {/: {proxy_pass: http://app}}}\n");
    ck_assert(ports.any);
    discard();
    remove_tree();
}
END_TEST

START_TEST(ports_of_a_zone_count)
{
    make_tree();
    collect("http:\n"
            "  upstream: {app: {server: 127.0.0.1:1, zone: 'app 64k ports=9000-9002,7,65535'}}\n"
            "  server: {listen: 8080, location: {/: {proxy_pass: http://app}}}\n");
    ck_assert(has_port(1) && has_port(9000) && has_port(9001) && has_port(9002) && has_port(7) && has_port(65535));
    ck_assert(!has_port(9003) && !has_port(8999) && ports.count == 7 && !ports.any);
    ck_assert(has_port(53) && has("/etc", SANDBOX_READ)); /* servers can be added by name */
    discard();
    collect("http: {upstream: {app: {server: 127.0.0.1:1, zone: app 64k}}, server: {listen: 8080}}");
    ck_assert(ports.count == 2 && !ports.any);
    discard();
    collect("http: {upstream: {app: {server: 127.0.0.1:1}}, server: {listen: 8080}}");
    ck_assert(ports.count == 1 && !has("/etc", SANDBOX_READ));
    discard();
    collect("http: {upstream: {app: {server: 127.0.0.1:1, zone: [app, ports=any]}}, server: {listen: 8080}}");
    ck_assert(ports.any);
    discard();
    remove_tree();
}
END_TEST

START_TEST(stream_servers_count)
{
    make_tree();
    collect("stream: {server: [{listen: 8080, proxy_pass: '127.0.0.1:5432'}]}");
    ck_assert(has_port(5432) && !ports.any);
    discard();
    remove_tree();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        roots_of_all_scopes, variables_permit_what_precedes_them, links_that_may_lead_anywhere_permit_everything,
        inner_scopes_may_widen_an_inherited_root, temporary_files_exist_with_upstream_servers,
        files_of_modules_and_written_directories, files_of_conditions, ports_of_upstream_servers,
        names_need_name_servers, variables_need_all_ports, service_records_need_all_ports, ports_of_a_zone_count,
        stream_servers_count, NULL,
    };

    return run_tests("worker_paths", tests);
}
