/* The settings of TLS servers: their errors, and the selection of a server by name. */
#include "pem_files.h"
#include "tls/tls_server.h"
#include "tls_pair.h"

#include "../runner.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

static void count_line(void *owner, enum log_level level, struct str line)
{
    (*(int *)owner)++;
}

static const struct {
    const char *field, *value, *words;
} settings_cases[] = {
    {"ciphers", "NONSENSE", "ssl_ciphers: \"NONSENSE\""},
    {"ciphersuites", "TLS_NONSENSE", "ssl_ciphersuites"},
    {"curves", "P-999", "ssl_ecdh_curve"},
    {"alpn", "", "not an ALPN protocol name"},
    {"name", "a.*.b", "is not a server name"},
    {"none", "", "no ssl_certificate"},
};

START_TEST(invalid_settings_are_rejected)
{
    struct tls_settings settings = pair_settings();
    struct str value = str_from(settings_cases[_i].value);
    const char *field = settings_cases[_i].field;
    int lines = 0;
    struct log log = {.level = LOG_DEBUG, .sink = count_line, .owner = &lines};
    char error[512] = "";

    if (strcmp(field, "ciphers") == 0)
        settings.ciphers = value;
    else if (strcmp(field, "ciphersuites") == 0)
        settings.ciphersuites = value;
    else if (strcmp(field, "curves") == 0)
        settings.curves = value;
    else if (strcmp(field, "alpn") == 0)
        settings.alpn = &value, settings.alpn_count = 1;
    else if (strcmp(field, "name") == 0)
        settings.names = &value;
    else
        settings.certificate_count = 0;
    ck_assert_ptr_null(tls_context_create(&settings, 1, &log, error, sizeof(error)));
    ck_assert_msg(strstr(error, settings_cases[_i].words), "%s", error);
    ck_assert_uint_eq(ERR_peek_error(), 0);
    ck_assert_ptr_null(tls_context_create(NULL, 0, &log, error, sizeof(error)));
}
END_TEST

static void add_fault(void *owner, const struct tls_fault *fault)
{
    char *line = owner;
    size_t used = strlen(line);

    snprintf(line + used, 2000 - used, "%zu %s %zu: %s | %s\n", fault->server, fault->directive, fault->index,
             fault->text, fault->hint);
}

/* The errors of every server are reported, each with its directive and the position of the value. */
START_TEST(all_errors_are_reported)
{
    const struct tls_certificate files[] = {{STR("self-signed"), STR("")}, {STR("/no.pem"), STR("/no.key")}};
    const struct tls_certificate bare = {STR("/no.pem"), STR("")};
    struct tls_settings settings[3] = {pair_settings(), pair_settings(), pair_settings()};
    struct str bad_name = STR("a.*.b");
    int lines = 0;
    struct log log = {.level = LOG_DEBUG, .sink = count_line, .owner = &lines};
    char message[2000] = "";

    settings[0].ciphers = settings[0].curves = STR("NO");
    settings[1].certificates = files;
    settings[1].certificate_count = 2;
    settings[1].names = &bad_name;
    settings[1].name_count = 1;
    settings[2].certificates = &bare;
    settings[2].certificate_count = 1;
    settings[2].ciphersuites = STR("NO");
    ck_assert_ptr_null(tls_context_load(settings, 3, &log, add_fault, message));
    static const char *const lines_wanted[] = {
        "0 ssl_ciphers 0: ssl_ciphers: \"NO\" is rejected by OpenSSL: ",
        "0 ssl_ecdh_curve 0: ssl_ecdh_curve: \"NO\" is rejected by OpenSSL: ",
        "1 ssl_certificate 1: \"/no.pem\" cannot be opened: No such file or directory | relative paths start",
        "1 ssl_certificate_key 1: \"/no.key\" cannot be opened: No such file or directory | relative paths start",
        "1  0: \"a.*.b\" is not a server name: ",
        "2 ssl_ciphersuites 0: ssl_ciphersuites: \"NO\" is rejected by OpenSSL: ",
        "2 ssl_certificate 0: \"/no.pem\" cannot be opened: No such file or directory | relative paths start",
    };
    const char *at = message;
    for (size_t i = 0; i < sizeof(lines_wanted) / sizeof(lines_wanted[0]); i++) {
        ck_assert_msg(strncmp(at, lines_wanted[i], strlen(lines_wanted[i])) == 0, "%s\nwhere was wanted %s", at,
                      lines_wanted[i]);
        at = strchr(at, '\n') + 1;
    }
    ck_assert_str_eq(at, "");
    ck_assert_uint_eq(ERR_peek_error(), 0);
}
END_TEST

static const struct str zero_names[] = {{"zero.example", 12}},
                        one_names[] = {{"one.example", 11}, {"*.one.example", 13}},
                        two_names[] = {{"two.example", 11}}, two_alpn[] = {{"h2", 2}, {"http/1.1", 8}};

/* Three servers with different settings; the second one is the default server. */
static void three_servers(struct tls_settings servers[3])
{
    for (int i = 0; i < 3; i++)
        servers[i] = pair_settings();
    servers[0].names = zero_names;
    servers[0].protocols = TLS_PROTOCOL_1_2;
    servers[0].ciphers = STR("ECDHE-ECDSA-AES256-GCM-SHA384");
    servers[1].names = one_names;
    servers[1].name_count = 2;
    servers[1].is_default = true;
    servers[1].curves = STR("P-384");
    servers[2].names = two_names;
    servers[2].protocols = TLS_PROTOCOL_1_3;
    servers[2].ciphersuites = STR("TLS_CHACHA20_POLY1305_SHA256");
    servers[2].alpn = two_alpn;
    servers[2].alpn_count = 2;
}

static const struct {
    const char *name; /* SNI; NULL: none */
    int server;
    const char *protocol, *cipher, *curve, *alpn;
} choices[] = {
    {"zero.example", 0, "TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384", "X25519", "http/1.1"},
    {"ZERO.Example.", 0, "TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384", "X25519", "http/1.1"},
    {"one.example", 1, "TLSv1.3", "TLS_AES_128_GCM_SHA256", "secp384r1", "http/1.1"},
    {"www.One.example", 1, "TLSv1.3", "TLS_AES_128_GCM_SHA256", "secp384r1", "http/1.1"},
    {"two.example", 2, "TLSv1.3", "TLS_CHACHA20_POLY1305_SHA256", "X25519", "h2"},
    {"stranger.example", 1, "TLSv1.3", "TLS_AES_128_GCM_SHA256", "secp384r1", "http/1.1"},
    {NULL, 1, "TLSv1.3", "TLS_AES_128_GCM_SHA256", "secp384r1", "http/1.1"},
};

START_TEST(sni_selects_all_settings)
{
    static const unsigned char offered[] = "\x08http/1.1\x02h2\x07strange";
    const char *name = choices[_i].name;
    struct tls_settings servers[3];
    struct tls_pair pair;

    three_servers(servers);
    pair_open(&pair, servers, 3);
    ck_assert_ptr_eq(tls_session_settings(pair.session), &servers[1]);
    ck_assert_uint_eq(tls_session_protocol(pair.session).length, 0);
    SSL_set_alpn_protos(pair.client, offered, sizeof(offered) - 1);
    SSL_set1_groups_list(pair.client, "X25519:P-384:P-256");
    SSL_set_ciphersuites(pair.client,
                         "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256");
    if (name)
        SSL_set_tlsext_host_name(pair.client, name);
    ck_assert_msg(pair_handshake(&pair) == 0, "%s", tls_session_error(pair.session));
    ck_assert_ptr_eq(tls_session_settings(pair.session), &servers[choices[_i].server]);
    ck_assert(str_equal(tls_session_protocol(pair.session), str_from(choices[_i].protocol)));
    ck_assert(str_equal(tls_session_cipher(pair.session), str_from(choices[_i].cipher)));
    ck_assert_msg(str_equal(tls_session_curve(pair.session), str_from(choices[_i].curve)), STR_FMT,
                  STR_ARG(tls_session_curve(pair.session)));
    ck_assert(str_equal(tls_session_alpn(pair.session), str_from(choices[_i].alpn)));
    ck_assert(str_equal(tls_session_server_name(pair.session), str_from(name)));
    X509 *seen = SSL_get1_peer_certificate(pair.client);
    ck_assert_int_eq(X509_check_host(seen, servers[choices[_i].server].names[0].data,
                                     servers[choices[_i].server].names[0].length, 0, NULL),
                     1);
    X509_free(seen);
    pair_exchange(&pair, 3000);
    pair_close(&pair);
}
END_TEST

START_TEST(ticket_is_valid_for_its_server_only)
{
    struct tls_settings servers[3];
    struct tls_pair pair;

    three_servers(servers);
    servers[2].protocols = servers[0].protocols = 0;
    servers[2].ciphersuites = STR("");
    pair_open(&pair, servers, 3);
    SSL_CTX_set_max_proto_version(pair.client_openssl, _i ? TLS1_3_VERSION : TLS1_2_VERSION);
    SSL_CTX_set_cipher_list(pair.client_openssl, "ECDHE-ECDSA-AES256-GCM-SHA384");
    pair_reconnect(&pair);
    SSL_set_tlsext_host_name(pair.client, "one.example");
    ck_assert_int_eq(pair_handshake(&pair), 0);
    pair_exchange(&pair, 10);
    SSL_SESSION *stored = SSL_get1_session(pair.client);
    pair_shutdown(&pair);
    for (int i = 0; i < 2; i++) {
        pair_reconnect(&pair);
        SSL_set_session(pair.client, stored);
        SSL_set_tlsext_host_name(pair.client, (i ? "two.example" : "one.example"));
        ck_assert_int_eq(pair_handshake(&pair), 0);
        ck_assert_int_eq(tls_session_reused(pair.session), i == 0);
        pair_exchange(&pair, 10);
        pair_shutdown(&pair);
    }
    SSL_SESSION_free(stored);
    pair_close(&pair);
}
END_TEST

START_TEST(aes_128_first_by_default)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;

    pair_open(&pair, &settings, 1);
    SSL_CTX_set_ciphersuites(pair.client_openssl,
                             "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256");
    SSL_CTX_set_cipher_list(pair.client_openssl, "ECDHE+CHACHA20:ECDHE+AES256:ECDHE+AES128:AES128-SHA");
    SSL_CTX_set_max_proto_version(pair.client_openssl, _i ? TLS1_3_VERSION : TLS1_2_VERSION);
    pair_reconnect(&pair);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_uint_eq(pair.key.cipher, RECORD_AES_128_GCM);
    pair_reconnect(&pair);
    SSL_set_cipher_list(pair.client, "AES128-SHA:ECDHE-ECDSA-AES128-SHA256");
    SSL_set_ciphersuites(pair.client, "TLS_AES_128_CCM_SHA256");
    ck_assert_int_eq(pair_handshake(&pair), -EPROTO);
    ck_assert_ptr_nonnull(strstr(tls_session_error(pair.session), "no cipher is common"));
    pair_close(&pair);
}
END_TEST

START_TEST(duplicate_name_is_reported)
{
    struct tls_settings servers[2] = {pair_settings(), pair_settings()};
    struct tls_pair pair;

    pair_open(&pair, servers, 2);
    ck_assert_ptr_nonnull(strstr(pair.last_log, "conflicting server name \"localhost\""));
    SSL_set_tlsext_host_name(pair.client, "localhost");
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_ptr_eq(tls_session_settings(pair.session), &servers[0]);
    pair_close(&pair);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, invalid_settings_are_rejected, 0,
                        sizeof(settings_cases) / sizeof(settings_cases[0]));
    tcase_add_test(tcase, all_errors_are_reported);
    tcase_add_loop_test(tcase, sni_selects_all_settings, 0, sizeof(choices) / sizeof(choices[0]));
    tcase_add_loop_test(tcase, ticket_is_valid_for_its_server_only, 0, 2);
    tcase_add_loop_test(tcase, aes_128_first_by_default, 0, 2);
    tcase_add_test(tcase, duplicate_name_is_reported);
}

int main(void)
{
    return run_suite("tls_context", add_tests);
}
