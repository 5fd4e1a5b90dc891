#include "pem_files.h"
#include "tls/tls_server.h"
#include "tls_pair.h"

#include <check.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>

static struct pem_pair pair_of_keys;
static char long_line[3000];

/* Writes the Diffie-Hellman parameters of a group known to OpenSSL by name. */
static void write_parameters(const char *name, const char *group)
{
    EVP_PKEY_CTX *making = EVP_PKEY_CTX_new_from_name(NULL, "DH", NULL);
    EVP_PKEY *parameters = NULL;
    BIO *text = BIO_new(BIO_s_mem());
    char *bytes;

    ck_assert_int_eq(EVP_PKEY_paramgen_init(making), 1);
    ck_assert_int_eq(EVP_PKEY_CTX_ctrl_str(making, "group", group), 1);
    ck_assert_int_eq(EVP_PKEY_paramgen(making, &parameters), 1);
    ck_assert_int_eq(PEM_write_bio_Parameters(text, parameters), 1);
    long length = BIO_get_mem_data(text, &bytes);
    pem_write_text(name, str_of(bytes, (size_t)length));
    BIO_free(text);
    EVP_PKEY_free(parameters);
    EVP_PKEY_CTX_free(making);
}

/* Created once for all tests, because creating an RSA key takes longest. */
static void make_keys(void)
{
    pair_of_keys = pem_make("RSA", "localhost", -1, 9, NULL);
}

static void free_keys(void)
{
    pem_free(&pair_of_keys);
}

static void make_all(void)
{
    pem_directory_make();
    pem_write_certificates("one.pem", &pair_of_keys.certificate, 1);
    pem_write_key("open.key", pair_of_keys.key, NULL, false);
    pem_write_key("new.key", pair_of_keys.key, "secret", false);
    pem_write_key("old.key", pair_of_keys.key, "secret", true);
    write_parameters("dh.pem", "ffdhe2048");
    write_parameters("weak.pem", "dh_1024_160");
    pem_write_text("truncated.pem", STR("-----BEGIN DH PARAMETERS-----\nMIIB\n-----END DH PARAMETERS-----\n"));
    memset(long_line, 'x', sizeof(long_line));
    memcpy(long_line + sizeof(long_line) - 8, "\nsecret\n", 8);
}

/* Loads the server. `words` NULL: expects success, else an error that contains `words`. */
static void assert_loads(const struct tls_settings *settings, const char *words)
{
    struct log log = {.level = LOG_EMERG};
    char error[1024] = "";
    struct tls_context *context = tls_context_create(settings, 1, &log, error, sizeof(error));

    if (words)
        ck_assert_msg(!context && strstr(error, words), "expected \"%s\", got \"%s\"", words, error);
    else
        ck_assert_msg(context, "%s", error);
    tls_context_destroy(context);
    ck_assert_uint_eq(ERR_peek_error(), 0);
}

static const struct {
    const char *text, *words;
} phrases[] = {
    {"secret\n", NULL},
    {"secret", NULL},
    {"wrong\nsecret\nnever", NULL},
    {"wrong\r\nsecret\r\n", NULL},
    {"\n\nsecret\n", NULL},
    {"wrong\n", "no pass phrase in"},
    {"secret \n", "no pass phrase in"},
    {"", "no pass phrase in"},
    {long_line, NULL},
    {NULL, "phrases.none\" cannot be opened: No such file"},
};

START_TEST(passwords_decrypt_keys)
{
    static const char *const keys[] = {"new.key", "old.key"};
    struct tls_settings settings = pair_settings();
    const char *text = phrases[_i].text;

    if (text == long_line)
        pem_write_text("phrases", str_of(long_line, sizeof(long_line)));
    else if (text)
        pem_write_text("phrases", str_from(text));
    settings.passwords = text ? pem_path("phrases") : pem_path("phrases.none");
    for (int i = 0; i < 2; i++) {
        struct tls_certificate certificate = {pem_path("one.pem"), pem_path(keys[i])};

        settings.certificates = &certificate;
        assert_loads(&settings, phrases[_i].words);
    }
    /* An unencrypted key needs no password. */
    struct tls_certificate open = {pem_path("one.pem"), pem_path("open.key")};
    settings.certificates = &open;
    assert_loads(&settings, text ? NULL : phrases[_i].words);
}
END_TEST

static void report_fault(void *owner, const struct tls_fault *fault)
{
    ck_abort_msg("%s", fault->text);
}

START_TEST(renewed_key_is_decrypted)
{
    struct tls_certificate certificate = {pem_path("one.pem"), pem_path("new.key")};
    struct tls_settings settings = pair_settings();
    struct tls_files files = {NULL, 0};
    struct tls_pair pair;

    pem_write_text("phrases", STR("secret\n"));
    settings.certificates = &certificate;
    settings.passwords = pem_path("phrases");
    settings.dh_parameters = pem_path("dh.pem");
    pair_open(&pair, &settings, 1);
    uint64_t before = tls_files_stamp(&settings);
    ck_assert(tls_files_read(&settings, &files, report_fault, NULL));
    pem_write_text("phrases", STR("another\n"));
    ck_assert_uint_ne(tls_files_stamp(&settings), before);
    ck_assert(tls_context_reload(pair.context, 0, &files, &pair.log, report_fault, NULL));
    tls_files_finish(&files);
    pair_reconnect(&pair);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    pair_close(&pair);
}
END_TEST

/* With ssl_reject_handshake, a client without SNI, or with an unknown name, gets an alert and no certificate. */
START_TEST(reject_handshake_of_unknown_names)
{
    static const struct str names[] = {{"one.test", 8}};
    struct tls_settings servers[2] = {pair_settings(), pair_settings()};
    struct tls_pair pair;

    servers[0].reject = true;
    servers[0].certificate_count = 0;
    servers[0].name_count = 0;
    servers[1].names = names;
    pair_open(&pair, servers, 2);
    for (int i = 0; i < 3; i++) {
        pair_reconnect(&pair);
        pair.alert = 0;
        if (i > 0)
            SSL_set_tlsext_host_name(pair.client, (i == 1 ? "none.test" : "one.test"));
        ck_assert_int_eq(pair_handshake(&pair), i == 2 ? 0 : -EPROTO);
        (void)SSL_do_handshake(pair.client); /* reads the alert */
        ERR_clear_error();
        ck_assert_int_eq(pair.alert, i == 2 ? 0 : SSL_AD_UNRECOGNIZED_NAME);
        ck_assert(!SSL_get0_peer_certificate(pair.client) == (i < 2));
    }
    pair_exchange(&pair, 1000);
    pair_close(&pair);
    /* Without ssl_reject_handshake a certificate is required. */
    servers[0].reject = false;
    assert_loads(servers, "no ssl_certificate is given");
}
END_TEST

static const struct {
    const char *file, *words;
    bool spoken;
} parameters[] = {
    {NULL, NULL, false},
    {"auto", NULL, true},
    {"dh.pem", NULL, true},
    {"weak.pem", "have 1024 bits", false},
    {"truncated.pem", "cannot be read", false},
    {"one.pem", "contains no parameters of Diffie-Hellman", false},
    {"none.pem", "cannot be opened: No such file", false},
};

START_TEST(diffie_hellman_parameters)
{
    struct tls_certificate certificate = {pem_path("one.pem"), pem_path("open.key")};
    struct tls_settings settings = pair_settings();
    const char *file = parameters[_i].file;
    struct tls_pair pair;

    settings.certificates = &certificate;
    settings.ciphers = STR("DHE-RSA-AES128-GCM-SHA256");
    settings.protocols = TLS_PROTOCOL_1_2;
    if (file)
        settings.dh_parameters = strcmp(file, "auto") == 0 ? STR("auto") : pem_path(file);
    if (parameters[_i].words) {
        assert_loads(&settings, parameters[_i].words);
        return;
    }
    pair_open(&pair, &settings, 1);
    ck_assert_int_eq(pair_handshake(&pair), parameters[_i].spoken ? 0 : -EPROTO);
    if (parameters[_i].spoken) {
        ck_assert_str_eq(SSL_get_cipher(pair.client), "DHE-RSA-AES128-GCM-SHA256");
        pair_exchange(&pair, 20000);
    }
    pair_close(&pair);
}
END_TEST

static const struct {
    struct tls_command command;
    const char *words;
} commands[] = {
    {{{"Options", 7}, {"PrioritizeChaCha", 16}}, NULL},
    {{{"Options", 7}, {"KTLS", 4}}, NULL},
    {{{"options", 7}, {"-SessionTicket", 14}}, NULL},
    {{{"SignatureAlgorithms", 19}, {"RSA-PSS+SHA256", 14}}, NULL},
    {{{"MinProtocol", 11}, {"TLSv1.3", 7}}, NULL},
    {{{"MinProtocol", 11}, {"TLSv1.1", 7}}, "versions before TLS 1.2"},
    {{{"MinProtocol", 11}, {"None", 4}}, "versions before TLS 1.2"},
    {{{"Options", 7}, {"NoSuchThing", 11}}, "rejects \"NoSuchThing\" for Options"},
    {{{"Ciphersuites", 12}, {"TLS_NONSENSE", 12}}, "rejects \"TLS_NONSENSE\""},
    {{{"Groups", 6}, {"P-999", 5}}, "rejects \"P-999\""},
    {{{"NoSuchThing", 11}, {"x", 1}}, "has no command \"NoSuchThing\""},
    {{{"", 0}, {"x", 1}}, "has no command \"\""},
    {{{"certificate", 11}, {"one.pem", 7}}, "\"certificate\" is not allowed here"},
    {{{"VerifyMode", 10}, {"Request", 7}}, "\"VerifyMode\" is not allowed here"},
};

START_TEST(invalid_commands_are_rejected)
{
    struct tls_settings settings = pair_settings();

    settings.commands = &commands[_i].command;
    settings.command_count = 1;
    assert_loads(&settings, commands[_i].words);
}
END_TEST

/* ssl_conf_command applies to the server that SNI chooses, and to no other. */
START_TEST(commands_apply_per_server)
{
    static const struct str names[2][1] = {{{"one.test", 8}}, {{"two.test", 8}}};
    static const struct tls_command message[] = {
        {{"Groups", 6}, {"P-384", 5}},
        {{"Ciphersuites", 12}, {"TLS_CHACHA20_POLY1305_SHA256", 28}},
    };
    struct tls_settings servers[2] = {pair_settings(), pair_settings()};
    struct tls_pair pair;

    for (int i = 0; i < 2; i++)
        servers[i].names = names[i];
    servers[_i].commands = message;
    servers[_i].command_count = 2;
    pair_open(&pair, servers, 2);
    for (int i = 0; i < 2; i++) {
        pair_reconnect(&pair);
        SSL_set_tlsext_host_name(pair.client, names[i][0].data);
        SSL_set1_groups_list(pair.client, "X25519:P-384");
        ck_assert_int_eq(pair_handshake(&pair), 0);
        ck_assert_str_eq(SSL_get_cipher(pair.client),
                         i == _i ? "TLS_CHACHA20_POLY1305_SHA256" : "TLS_AES_128_GCM_SHA256");
        ck_assert_int_eq((int)SSL_get_negotiated_group(pair.client), i == _i ? NID_secp384r1 : NID_X25519);
        pair_exchange(&pair, 1000);
    }
    pair_close(&pair);
}
END_TEST

static const struct {
    const char *own, *offered, *chosen; /* own NULL: no protocol is agreed on; chosen NULL: the handshake fails */
} agreements[] = {
    {NULL, "\x02h2", ""},
    {NULL, "", ""},
    {"pg", "\x02h2\x02pg", "pg"},
    {"pg", "\x02h2", NULL},
    {"pg", "", ""},
};

START_TEST(alpn_of_own_list)
{
    struct tls_settings settings = pair_settings();
    struct str own = str_from(agreements[_i].own ? agreements[_i].own : "");
    const char *offered = agreements[_i].offered, *chosen = agreements[_i].chosen;
    const unsigned char *agreed = NULL;
    struct tls_pair pair;
    unsigned length = 0;

    settings.alpn = &own;
    settings.alpn_count = agreements[_i].own ? 1 : 0;
    pair_open(&pair, &settings, 1);
    if (*offered)
        SSL_set_alpn_protos(pair.client, (const unsigned char *)offered, (unsigned)strlen(offered));
    ck_assert_int_eq(pair_handshake(&pair), chosen ? 0 : -EPROTO);
    SSL_get0_alpn_selected(pair.client, &agreed, &length);
    if (chosen)
        ck_assert(str_equal(str_of((const char *)agreed, length), str_from(chosen)));
    pair_close(&pair);
}
END_TEST

#define COUNT(table) (sizeof(table) / sizeof(table[0]))

int main(void)
{
    Suite *suite = suite_create("tls_extra");
    TCase *tests = tcase_create("tls_extra");

    tcase_set_timeout(tests, 60);
    tcase_add_unchecked_fixture(tests, make_keys, free_keys);
    tcase_add_checked_fixture(tests, make_all, pem_directory_remove);
    tcase_add_loop_test(tests, passwords_decrypt_keys, 0, COUNT(phrases));
    tcase_add_test(tests, renewed_key_is_decrypted);
    tcase_add_test(tests, reject_handshake_of_unknown_names);
    tcase_add_loop_test(tests, diffie_hellman_parameters, 0, COUNT(parameters));
    tcase_add_loop_test(tests, invalid_commands_are_rejected, 0, COUNT(commands));
    tcase_add_loop_test(tests, commands_apply_per_server, 0, 2);
    tcase_add_loop_test(tests, alpn_of_own_list, 0, COUNT(agreements));
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
