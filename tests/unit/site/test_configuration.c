#include "site/configuration.h"

#include "../runner.h"
#include "io/backends.h"
#include "log/access_log.h"
#include "sandbox/sandbox.h"
#include "tls/aead_choice.h"

#include <errno.h>
#include <stdio.h>

static struct buffer diagnostics;
static struct log quiet = {.level = LOG_EMERG};

static struct configuration *load(const char *text)
{
    struct configuration_source source = {.text = str_from(text), .prefix = STR("/srv")};

    buffer_finish(&diagnostics);
    return configuration_load(&source, &quiet, &diagnostics);
}

static bool has_diagnostic(const char *text)
{
    return str_search(buffer_str(&diagnostics), str_from(text)) >= 0;
}

static struct configuration *load_good(const char *text)
{
    struct configuration *configuration = load(text);

    ck_assert_msg(configuration != NULL, "rejected:\n%.*s", (int)diagnostics.length, diagnostics.data);
    return configuration;
}

#define ck_assert_text(actual, expected) ck_assert(str_equal(actual, str_from(expected)))

START_TEST(directives_of_the_main_scope_are_read)
{
    struct configuration *c = load_good("worker_processes: 3\n"
                                        "worker_shutdown_timeout: 5s\n"
                                        "worker_heartbeat_timeout: 90s\n"
                                        "daemon: on\n"
                                        "pid: run/here.pid\n"
                                        "user: www-data www\n"
                                        "sandbox: [no_dump]\n"
                                        "error_log: {path: stderr, level: warn}\n"
                                        "events: {worker_connections: 99}\n"
                                        "http: {server: {listen: 8080}}\n");

    ck_assert_uint_eq(c->main->worker_processes, 3);
    ck_assert_uint_eq(c->main->worker_shutdown_timeout_ms, 5000);
    ck_assert_uint_eq(c->main->worker_heartbeat_timeout_ms, 90000);
    ck_assert(c->main->daemon);
    ck_assert_text(c->main->pid, "/srv/run/here.pid");
    ck_assert_text(c->main->user, "www-data");
    ck_assert_text(c->main->group, "www");
    ck_assert_uint_eq(c->main->sandbox, 1u << SANDBOX_NO_DUMP);
    ck_assert_text(c->main->error_log.path, "stderr");
    ck_assert_int_eq(c->main->error_log.level, LOG_WARN);
    ck_assert_str_eq(configuration_backend(c), "auto");
    ck_assert_int_eq(c->main->aead, TLS_AEAD_AUTO);
    ck_assert_ptr_null(configuration_backend_mark(c).file);
    ck_assert_uint_eq(c->main->worker_connections, 99);
    configuration_destroy(c);
}
END_TEST

/* A backend of this build is accepted; another one is rejected at its line. */
START_TEST(backend_that_is_not_built_is_rejected)
{
    static const char *const known[] = {"io_uring", "epoll"};

    for (size_t i = 0; i < 2; i++) {
        char text[128], words[128];
        struct configuration *c;
        bool built = false;

        for (size_t k = 0; loop_backends[k]; k++)
            built |= strcmp(loop_backends[k]->name, known[i]) == 0;
        snprintf(text, sizeof(text), "events: {use: %s}\nhttp: {server: {listen: 8080}}\n", known[i]);
        snprintf(words, sizeof(words), ":1:15: error: this build has no %s\n", known[i]);
        c = load(text);
        ck_assert_msg(built == (c != NULL), "%s: %.*s", known[i], (int)diagnostics.length, diagnostics.data);
        ck_assert(built != has_diagnostic(words));
        ck_assert(built != has_diagnostic("hint: write auto, or "));
        if (built) {
            ck_assert_str_eq(configuration_backend(c), known[i]);
            ck_assert_uint_eq(configuration_backend_mark(c).column, 15);
        }
        configuration_destroy(c);
    }
}
END_TEST

/* As with `use`: an engine that is not built is rejected at its line. */
START_TEST(engine_that_is_not_built_is_rejected)
{
    bool built = aead_engine(AEAD_IPSEC_MB)->built;
    struct configuration *c = load("ssl_aead: ipsec-mb\nhttp: {server: {listen: 8080}}\n");

    ck_assert_msg(built == (c != NULL), "%.*s", (int)diagnostics.length, diagnostics.data);
    ck_assert(built != has_diagnostic(":1:11: error: this build has no ipsec-mb\n"));
    ck_assert(built != has_diagnostic("-Dipsec_mb=enabled"));
    ck_assert(!built || c->main->aead == TLS_AEAD_IPSEC_MB);
    configuration_destroy(c);
    c = load_good("ssl_aead: openssl\nhttp: {server: {listen: 8080}}\n");
    ck_assert_int_eq(c->main->aead, TLS_AEAD_OPENSSL);
    configuration_destroy(c);
}
END_TEST

START_TEST(absent_directives_have_their_defaults)
{
    struct configuration *c = load_good("http: {server: {listen: 8080}}");
    const struct core_site *site = c->servers[0]->root->site;

    ck_assert_uint_eq(c->main->worker_processes, 0);
    ck_assert(!c->main->daemon);
    ck_assert_str_eq(configuration_backend(c), "auto");
    ck_assert_uint_eq(c->main->worker_connections, 4096);
    ck_assert_int_eq(c->main->error_log.level, LOG_NOTICE);
    ck_assert_ptr_null(site->root);
    ck_assert_uint_eq(site->keepalive_timeout_ms, 75000);
    ck_assert_uint_eq(site->client_max_body_size, 1 << 20);
    ck_assert_uint_eq(site->access_logs.count, 0);
    ck_assert_text(mime_lookup(&site->mime, STR("/a.HTML")), "text/html; charset=utf-8");
    ck_assert_text(mime_lookup(&site->mime, STR("/a.json")), "application/json");
    ck_assert_text(mime_lookup(&site->mime, STR("/a.png")), "image/png");
    ck_assert_text(mime_lookup(&site->mime, STR("/a")), "application/octet-stream");
    ck_assert(c->file_cache.enabled);
    ck_assert_uint_eq(c->file_cache.valid_ms, 1000);
    ck_assert_uint_eq(c->endpoint_count, 1);
    ck_assert_uint_eq(listen_address_port(&c->endpoints[0].address), 8080);
    ck_assert_uint_eq(c->endpoints[0].servers[0]->root->session.head_max, 32768);
    ck_assert_text(c->endpoints[0].servers[0]->root->session.server_header, "sluice");
    configuration_destroy(c);
}
END_TEST

START_TEST(locations_inherit_and_replace_values)
{
    struct configuration *c = load_good("http:\n"
                                        "  root: /a\n"
                                        "  access_log: stdout\n"
                                        "  keepalive_timeout: 10s\n"
                                        "  server:\n"
                                        "    listen: 8080\n"
                                        "    types: {text/x-one: [one, .two]}\n"
                                        "    location:\n"
                                        "      /: {keepalive_timeout: 0, charset: off}\n"
                                        "      /b: {root: /b, access_log: off, types: {}}\n");
    const struct location *root = c->servers[0]->root;
    const struct location *b = root->inner[0];
    const struct location *slash = root->inner[1];

    ck_assert_uint_eq(root->inner_count, 2);
    ck_assert_text(template_text(slash->site->root), "/a");
    ck_assert_text(template_text(b->site->root), "/b");
    ck_assert_uint_eq(root->site->keepalive_timeout_ms, 10000);
    ck_assert_uint_eq(slash->site->keepalive_timeout_ms, 0);
    ck_assert_ptr_nonnull(((struct access_log_row *)slash->site->access_logs.items)->target);
    ck_assert_ptr_null(((struct access_log_row *)b->site->access_logs.items)->target);
    ck_assert_uint_eq(c->access_log_count, 1);
    ck_assert_text(mime_lookup(&root->site->mime, STR("x.two")), "text/x-one; charset=utf-8");
    ck_assert_text(mime_lookup(&slash->site->mime, STR("x.one")), "text/x-one");
    ck_assert_text(mime_lookup(&slash->site->mime, STR("x.html")), "text/html");
    ck_assert_text(mime_lookup(&b->site->mime, STR("x.html")), "application/octet-stream");
    configuration_destroy(c);
}
END_TEST

START_TEST(servers_share_endpoints)
{
    struct configuration *c =
        load_good("http:\n"
                  "  server:\n"
                  "    - {listen: [8080, '[::]:8080'], server_name: a}\n"
                  "    - {listen: '*:8080 default_server backlog=7', server_name: [b, a]}\n"
                  "    - {listen: 'unix:/tmp/s.sock', server_name: c}\n");

    ck_assert_uint_eq(c->endpoint_count, 3);
    ck_assert_uint_eq(c->endpoints[0].server_count, 2);
    ck_assert_ptr_eq(c->endpoints[0].servers[0], c->servers[1]);
    ck_assert_uint_eq(c->endpoints[0].backlog, 511);
    ck_assert_uint_eq(c->endpoints[1].server_count, 1);
    ck_assert_uint_eq(listen_address_port(&c->endpoints[2].address), 0);
    ck_assert(has_diagnostic("warning"));
    ck_assert(has_diagnostic("conflicting server name"));
    configuration_destroy(c);
}
END_TEST

START_TEST(standard_streams_are_named_exactly)
{
    static const struct {
        const char *text, *path;
    } rows[] = {
        {"stdout", "stdout"},           {"/dev/stdout", "stdout"},
        {"/dev/stderr", "stderr"},      {"/dev/stdout-x", "/dev/stdout-x"},
        {"/dev/stderr/y", "/dev/stderr/y"}, {"stdout-x", "/srv/stdout-x"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct configuration *c;
        char text[128];

        snprintf(text, sizeof(text), "http: {access_log: '%s', server: {listen: 8080}}", rows[i].text);
        c = load_good(text);
        ck_assert_uint_eq(c->access_log_count, 1);
        ck_assert_msg(str_equal(c->access_logs[0]->path, str_from(rows[i].path)), "%s: " STR_FMT, rows[i].text,
                      STR_ARG(c->access_logs[0]->path));
        configuration_destroy(c);
    }
}
END_TEST

START_TEST(directives_without_effect_are_reported)
{
    configuration_destroy(load_good("{events: {multi_accept: on}, http: {server: {listen: 1}}}"));
    ck_assert(!has_diagnostic("multi_accept"));
    configuration_destroy(load_good("{events: {multi_accept: off}, http: {server: {listen: 1}}}"));
    ck_assert(has_diagnostic("warning: \"multi_accept: off\" has no effect"));
}
END_TEST

START_TEST(equal_servers_share_tls_contexts)
{
    struct configuration *c = load_good(
        "http: {server: {listen: [8443 ssl, '[::]:8443 ssl', 8080], server_name: localhost, ssl_certificate: "
        "self-signed, ssl_protocols: TLSv1.3, ssl_ktls: on, ssl_ktls_threshold: 1m}}");
    struct ktls_support none = {0};
    struct ktls_support some = {0};

    ck_assert_ptr_nonnull(c->endpoints[0].tls);
    ck_assert_ptr_eq(c->endpoints[0].tls, c->endpoints[1].tls);
    ck_assert_ptr_null(c->endpoints[2].tls);
    ck_assert_uint_eq(c->servers[0]->tls.protocols, TLS_PROTOCOL_1_3);
    ck_assert_uint_eq(c->servers[0]->tls.ktls_threshold, 1 << 20);
    memset(none.reason, KTLS_NO_MODULE, sizeof(none.reason));
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned k = 0; k < sizeof(none.reason[0]) / sizeof(none.reason[0][0]); k++)
            none.reason[i][k] = some.reason[i][k] = KTLS_NO_MODULE;
    }
    some.reason[1][RECORD_AES_128_GCM] = KTLS_OK;
    ck_assert_int_eq(configuration_check_ktls(c, &none, &quiet), -ENOTSUP);
    ck_assert_int_eq(configuration_check_ktls(c, &some, &quiet), 0);
    configuration_destroy(c);
}
END_TEST

START_TEST(overlay_replaces_values_of_the_file)
{
    struct configuration_source source = {
        .text = STR("daemon: on\nworker_processes: 2\nhttp: {server: {listen: 8080}}"),
        .overlay = STR("daemon off; worker_processes 4;")};
    struct configuration *c = configuration_load(&source, &quiet, &diagnostics);

    ck_assert_ptr_nonnull(c);
    ck_assert(!c->main->daemon);
    ck_assert_uint_eq(c->main->worker_processes, 4);
    configuration_destroy(c);
    source.overlay = STR("worker_processes: 5");
    c = configuration_load(&source, &quiet, &diagnostics);
    ck_assert_ptr_nonnull(c);
    ck_assert_uint_eq(c->main->worker_processes, 5);
    configuration_destroy(c);
    source.overlay = STR("control unix:/run/c.sock; worker_processes: 6;"); /* a colon in a value of nginx's syntax */
    c = configuration_load(&source, &quiet, &diagnostics);
    ck_assert_ptr_nonnull(c);
    ck_assert_text(c->main->control.text, "unix:/run/c.sock");
    ck_assert_uint_eq(c->main->worker_processes, 6);
    configuration_destroy(c);
}
END_TEST

/* The loader does not report a part that it could not parse as missing. */
static const char *const unreadable[] = {
    "http:\n\tserver: {listen: 1}\n",
    "http:\n  server\n    listen: 80\n",
    "http:\n  server: [{listen: 80]\n",
};

START_TEST(unparsed_parts_are_not_reported_missing)
{
    for (size_t i = 0; i < sizeof(unreadable) / sizeof(unreadable[0]); i++) {
        ck_assert(!load(unreadable[i]));
        ck_assert_msg(!has_diagnostic("http has no server") && !has_diagnostic("has neither http"), "%.*s",
                      (int)diagnostics.length, diagnostics.data);
    }
}
END_TEST

static const struct {
    const char *text;
    const char *diagnostics;
} mistakes[] = {
    {"daemon: off", "the file has neither http nor stream"},
    {"http: {root: x}", "http has no server"},
    {"worker_processes: 0\nhttp: {server: {listen: 1}}", "worker_processes"},
    {"worker_processes: many\nhttp: {server: {listen: 1}}", "worker_processes"},
    {"error_log: stderr loud\nhttp: {server: {listen: 1}}", "not a level of error_log"},
    {"error_log: {paht: x}\nhttp: {server: {listen: 1}}", "no key \"paht\""},
    {"error_log: 'syslog:x'\nhttp: {server: {listen: 1}}", "is not a parameter of syslog"},
    {"error_log: 'memory:1m'\nhttp: {server: {listen: 1}}", "cannot be sent to"},
    {"user: a b c\nhttp: {server: {listen: 1}}", "user takes a name"},
    {"events: {use: kqueue}\nhttp: {server: {listen: 1}}", "kqueue"},
    {"http: {server: {listen: nowhere}}", "not an address to listen on"},
    {"http: {server: {listen: 8080 sll}}", "listen has no parameter \"sll\""},
    {"http: {server: {listen: {ssl: on}}}", "listen needs an address"},
    {"http: {server: {listen: [8080, '*:8080']}}", "duplicate listen \"0.0.0.0:8080\""},
    {"http: {server: [{listen: 8443 ssl, ssl_certificate: self-signed}, {listen: 8443}]}",
     "is not ssl here, and ssl at"},
    {"http: {server: [{listen: 8443 proxy_protocol}, {listen: 8443}]}",
     "is not proxy_protocol here, and proxy_protocol at"},
    {"http: {server: [{listen: 8443}, {listen: {address: 8443, proxy_protocol: on}}]}",
     "is proxy_protocol here, and not proxy_protocol at"},
    {"http: {set_real_ip_from: [127.0.0.1, localhost], server: {listen: 1}}",
     "is not an address or a range of addresses"},
    {"http: {set_real_ip_from: 10.0.0.1/8, server: {listen: 1}}", "is not an address or a range of addresses"},
    {"http: {server: [{listen: 1 default_server}, {listen: 1 default_server}]}",
     "duplicate default server for"},
    {"http: {server: {listen: 8443 ssl}}", "has no certificate"},
    {"http: {server: {listen: 8443 ssl}}", "ssl_certificate: acme, self-signed"},
    {"http: {server: {listen: 8443 ssl, ssl_certificate: /nowhere.pem}}", "/nowhere.pem"},
    {"http: {server: {listen: 8443 ssl, ssl_certificate: [a.pem, b.pem], ssl_certificate_key: a.key}}",
     "2 certificates and 1 keys"},
    {"http: {server: {listen: 8443 ssl, ssl_certificate: [self-signed, b.pem], ssl_certificate_key: a.key}}",
     "self-signed and acme cannot be combined"},
    {"http:\n  ssl_ciphers: NOPE\n  server: {listen: 8443 ssl, ssl_certificate: self-signed}\n",
     ":2:16: error: ssl_ciphers"},
    {"http:\n  server:\n    listen: 8443 ssl\n    ssl_certificate: self-signed\n    ssl_ecdh_curve: nope\n",
     ":5:21: error: ssl_ecdh_curve"},
    {"http:\n  server:\n    listen: 1\n    server_name: '~^www(\\.'\n",
     "4:27: error: the regular expression \"^www(\\.\" is invalid: missing closing parenthesis"},
    {"http:\n  server:\n    listen: 1\n    server_name: [a, '~^(?<host>a)$']\n",
     ":4:24: error: a group cannot be named \"host\": $host is a built-in variable"},
    {"stream: {server: {listen: 1, proxy_pass: 127.0.0.1:2, server_name: '~^www'}}",
     "stream does not support regular expressions in server_name"},
    {"http: {server: {listen: 1, server_name: 'a.*.b'}}", "not a server name"},
    {"http:\n  server:\n    listen: 1\n    location:\n      ~ ^/a[b-: {}\n",
     ":5:15: error: the regular expression \"^/a[b-\" is invalid: missing terminating ] for character class"},
    {"http: {server: {listen: 1, location: {'~*': {}}}}", "location \"~*\" has no regular expression"},
    {"http: {server: {listen: 1, location: {'~ a': {location: {/a: {}}}}}}",
     "location \"/a\" is not allowed inside \"~ a\""},
    {"http: {server: {listen: 1, location: {= /a: {location: {'~ a': {}}}}}}",
     "location \"~ a\" is not allowed inside \"/a\""},
    {"http: {server: {listen: 1, location: {/: {return: 200 $1}}}}",
     "$1 is a capture, but there is no regular expression here"},
    {"http: {server: {listen: 1, location: {'~ (?<one>a)': {return: 200 $onee}}}}",
     "unknown variable $onee; did you mean $one?"},
    {"http: {server: {listen: 1, location: {a: {}}}}", "does not begin with a slash"},
    {"http: {server: {listen: 1, location: {'@': {}}}}", "location \"@\" has no name"},
    {"http: {server: {listen: 1, location: {/a: {}, '^~ /a': {}}}}", "duplicate location \"/a\""},
    {"http: {server: {listen: 1, location: {/a: {location: {/b: {}}}}}}", "is outside of \"/a\""},
    {"http: {server: {listen: 1, location: {= /a: {location: {/a/b: {}}}}}}", "is not allowed inside"},
    {"http: {server: {listen: 1, location: {/a: {location: {'@b': {}}}}}}", "a named location is not allowed inside"},
    {"http: {server: {listen: 1, location: [/a]}}", "location takes a mapping"},
    {"http: {server: {listen: 1, types: {text: [a]}}}", "types maps a media type"},
    {"http: {server: {listen: 1, large_client_header_buffers: 4}}", "two words are required"},
    {"http: {server: {listen: 1, keepalive_timeout: 65}}", "keepalive_timeout"},
    {"http: {open_file_cache: max=many, server: {listen: 1}}", "open_file_cache"},
    {"http: {open_file_cache: size=3, server: {listen: 1}}", "no option \"size\""},
    {"http: {disable_symlinks: off from=/, server: {listen: 1}}", "only on and if_not_owner take from="},
    {"http: {disable_symlinks: on /srv, server: {listen: 1}}", "only on and if_not_owner take from="},
    {"http: {disable_symlinks: maybe, server: {listen: 1}}", "disable_symlinks"},
    {"http: {log_format: {a: {escape: xml, format: b}}, server: {listen: 1}}", "not an escape mode"},
    {"http: {log_format: {a: {escape: json}}, server: {listen: 1}}", "needs its text"},
    {"http: {log_format: [a], server: {listen: 1}}", "log_format takes a mapping"},
    {"http: {server: {listen: 1, rot: x}}", "rot"},
};

START_TEST(invalid_configurations_are_rejected)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        ck_assert_msg(!load(mistakes[i].text), "accepted: %s", mistakes[i].text);
        ck_assert_msg(has_diagnostic(mistakes[i].diagnostics), "%s:\n%.*s", mistakes[i].text,
                      (int)diagnostics.length, diagnostics.data);
    }
}
END_TEST

static size_t count_errors(void)
{
    struct str rest = buffer_str(&diagnostics);
    size_t count = 0;

    for (ssize_t at = str_search(rest, STR(": error: ")); at >= 0; at = str_search(rest, STR(": error: "))) {
        rest = str_skip(rest, (size_t)at + 1);
        count++;
    }
    return count;
}

/*
 * The loader reports the errors of all servers and addresses, each once and at its line, together with other errors,
 * and no consequential errors.
 */
static const struct {
    const char *text;
    const char *diagnostics[8]; /* exactly these errors */
} rejected[] = {
    {"http:\n  ssl_ciphers: NOPE\n  ssl_certificate: self-signed\n  server:\n"
     "    - {listen: ['8443 ssl', '[::]:8443 ssl', 9443 ssl]}\n"
     "    - {listen: 8444 ssl, ssl_ciphersuites: TLS_NO}\n"
     "    - {listen: 8444 ssl, server_name: b, ssl_ciphers: MORE}\n"
     "    - {listen: 8445 ssl, ssl_certificate: /nowhere.pem, ssl_certificate_key: /nowhere.key, "
     "ssl_ecdh_curve: no}\n"
     "    - {listen: 8446 ssl, ssl_certificate: [/nowhere.pem, /etc/passwd]}\n",
     {":2:16: error: ssl_ciphers: \"NOPE\"", ":6:44: error: ssl_ciphersuites: \"TLS_NO\"",
      ":7:55: error: ssl_ciphers: \"MORE\"", ":8:43: error: \"/nowhere.pem\" cannot be opened",
      ":8:78: error: \"/nowhere.key\" cannot be opened", ":8:108: error: ssl_ecdh_curve: \"no\"",
      ":9:44: error: \"/nowhere.pem\" cannot be opened", ":9:58: error: \"/etc/passwd\" is not PEM text"}},
    {"http:\n  server:\n"
     "    - {listen: 8443 ssl, ssl_certificate: self-signed, ssl_ciphers: NOPE, location: {/: {rot: x}}}\n"
     "    - {listen: 8444 ssl, ssl_certificate: /nowhere.pem}\n"
     "    - {listen: 8445 ssl}\n    - {listen: 8446, ssl_certificate: /nowhere.pem}\n",
     {":3:69: error: ssl_ciphers", ":3:90: error: unknown directive 'rot'", ":4:43: error: \"/nowhere.pem\"",
      ":5:7: error: this server listens with ssl"}},
    {"http:\n  server:\n"
     "    - {listen: 8443 ssl, ssl_certificate: /etc/passwd, ssl_certificat_key: a.key, ssl_ciphers: NOPE}\n"
     "    - {listen: 8444 ssl, ssl_certificat: /nowhere.pem}\n",
     {":3:56: error: unknown directive 'ssl_certificat_key'", ":3:96: error: ssl_ciphers",
      ":4:26: error: unknown directive 'ssl_certificat'"}},
};

START_TEST(all_openssl_errors_are_reported)
{
    for (size_t i = 0; i < sizeof(rejected) / sizeof(rejected[0]); i++) {
        size_t count = 0;

        ck_assert(!load(rejected[i].text));
        for (; count < 8 && rejected[i].diagnostics[count]; count++)
            ck_assert_msg(has_diagnostic(rejected[i].diagnostics[count]), "missing: %s\n%.*s",
                          rejected[i].diagnostics[count], (int)diagnostics.length, diagnostics.data);
        ck_assert_msg(count_errors() == count, "%zu errors:\n%.*s", count_errors(), (int)diagnostics.length,
                      diagnostics.data);
    }
}
END_TEST

START_TEST(schema_has_every_directive)
{
    const struct conf_schema *schema = configuration_schema();

    ck_assert_uint_gt(schema->count, CORE_GROUPS);
    ck_assert_ptr_eq(schema, configuration_schema());
    for (size_t i = 0; i < schema->count; i++) {
        for (const struct directive *d = schema->groups[i]->directives; d && d->name; d++) {
            ck_assert_msg(d->help != NULL, "%s has no help", d->name);
            ck_assert_msg(d->scopes != 0, "%s has no scope", d->name);
            ck_assert_msg(d->type != DIRECTIVE_CUSTOM || (d->row && d->row_size), "%s has no reader",
                          d->name);
        }
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        directives_of_the_main_scope_are_read, backend_that_is_not_built_is_rejected,
        engine_that_is_not_built_is_rejected, absent_directives_have_their_defaults,
        locations_inherit_and_replace_values, servers_share_endpoints, standard_streams_are_named_exactly,
        directives_without_effect_are_reported, equal_servers_share_tls_contexts, overlay_replaces_values_of_the_file,
        invalid_configurations_are_rejected, all_openssl_errors_are_reported, unparsed_parts_are_not_reported_missing,
        schema_has_every_directive, NULL,
    };

    return run_tests("configuration", tests);
}
