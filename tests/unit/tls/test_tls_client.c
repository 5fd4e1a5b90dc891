/* The TLS client for upstream servers, connected in memory with the TLS server of the project. */
#include "tls/tls_client.h"

#include "base/buffer.h"
#include "base/limits.h"
#include "tls/tls_session_private.h"
#include "pem_files.h"
#include "tls_pair.h"

#include "../runner.h"

#include <errno.h>

struct end {
    struct tls_session *session;
    struct buffer sent;
};

static void ciphertext(void *owner, struct str bytes)
{
    struct end *end = owner;

    ck_assert_int_eq(buffer_append(&end->sent, bytes), 0);
}

/* Ignored: the server passes records here only after its key was offered, when its handshake is complete. */
static void record(void *owner, uint8_t type, struct str plaintext)
{
}

static void key_ready(void *owner, const struct record_key *key)
{
}

static const struct tls_output output = {.ciphertext = ciphertext, .record = record, .key_ready = key_ready};

/* Passes the output of one side to the other. Returns the result of the receiver's handshake. */
static int pass_output(struct end *from, struct end *to)
{
    int result;

    tls_session_set_input(to->session, buffer_str(&from->sent));
    result = tls_session_handshake(to->session);
    (void)tls_session_return_input(to->session);
    from->sent.length = 0;
    return result;
}

static struct tls_context *client_context(bool verify)
{
    const struct tls_client_settings settings = {.verify = verify};
    char error[256];
    struct tls_context *context = tls_client_context_create(&settings, error, sizeof(error));

    ck_assert_msg(context != NULL, "%s", error);
    return context;
}

/* A handshake with a server whose certificate is not trusted. Returns the client's result. */
static int handshake_result(bool verify, char *why, size_t size)
{
    struct tls_pair pair;
    struct tls_settings settings = pair_settings();
    struct tls_context *context = client_context(verify);
    struct end client = {0};
    struct end server = {0};
    int result = -EAGAIN;

    pair_open(&pair, &settings, 1);
    server.session = tls_session_create(pair.context, &output, &server);
    client.session = tls_session_create(context, &output, &client);
    ck_assert_int_eq(tls_session_set_server_name(client.session, context, STR("localhost")), 0);
    ck_assert_int_eq(tls_session_handshake(client.session), -EAGAIN);
    ck_assert_uint_gt(client.sent.length, 0);
    for (int i = 0; i < 4 && result == -EAGAIN; i++) {
        (void)!pass_output(&client, &server);
        result = pass_output(&server, &client);
    }
    snprintf(why, size, "%s", tls_session_error(client.session));
    tls_session_destroy(client.session);
    tls_session_destroy(server.session);
    tls_context_destroy(context);
    buffer_finish(&client.sent);
    buffer_finish(&server.sent);
    pair_close(&pair);
    return result;
}

START_TEST(untrusted_certificate_is_rejected)
{
    char why[256];

    ck_assert_int_eq(handshake_result(true, why, sizeof(why)), -EPROTO);
    ck_assert_msg(strstr(why, "self") != NULL, "%s", why);
    ck_assert_int_eq(handshake_result(false, why, sizeof(why)), 0);
}
END_TEST

START_TEST(plain_http_response_is_rejected)
{
    struct tls_context *context = client_context(false);
    struct end client = {0};

    client.session = tls_session_create(context, &output, &client);
    ck_assert_int_eq(tls_session_set_server_name(client.session, context, STR("127.0.0.1")), 0);
    ck_assert_int_eq(tls_session_handshake(client.session), -EAGAIN);
    tls_session_set_input(client.session, STR("HTTP/1.1 400 Bad Request\r\n\r\n"));
    ck_assert_int_eq(tls_session_handshake(client.session), -EPROTO);
    ck_assert(!tls_session_got_plain_http(client.session));
    (void)tls_session_return_input(client.session);
    tls_session_destroy(client.session);
    tls_context_destroy(context);
    buffer_finish(&client.sent);
}
END_TEST

START_TEST(invalid_settings_are_rejected)
{
    const struct tls_client_settings absent = {.trusted = STR("/nowhere/at/all.pem"), .verify = true};
    struct tls_context *context = client_context(false);
    struct end client = {0};
    char long_name[300];
    char error[256] = "";

    memset(long_name, 'a', sizeof(long_name));
    ck_assert_ptr_null(tls_client_context_create(&absent, error, sizeof(error)));
    ck_assert_str_ne(error, "");
    client.session = tls_session_create(context, &output, &client);
    ck_assert_int_eq(tls_session_set_server_name(client.session, context, STR("")), -EINVAL);
    ck_assert_int_eq(tls_session_set_server_name(client.session, context, str_of(long_name, sizeof(long_name))),
                     -EINVAL);
    ck_assert_int_eq(tls_session_set_server_name(client.session, context, STR("[::1]")), 0);
    tls_session_destroy(client.session);
    tls_context_destroy(context);
}
END_TEST

/* Returns NULL if the context can be created, else the error. */
static const char *context_error(const struct tls_client_settings *settings)
{
    static char error[256];
    struct tls_context *context = tls_client_context_create(settings, error, sizeof(error));

    tls_context_destroy(context);
    return context ? NULL : error;
}

START_TEST(keys_with_a_password)
{
    struct pem_pair pair;
    struct tls_client_settings settings = {0};

    pem_directory_make();
    pair = pem_make("EC", "client", -1, 1, NULL);
    pem_write_certificates("client.pem", &pair.certificate, 1);
    pem_write_key("client.key", pair.key, "second line", false);
    pem_write_key("old.key", pair.key, "second line", true);
    pem_write_text("right", STR("first\r\nsecond line\r\nthird"));
    pem_write_text("wrong", STR("first\nsecond\n\n"));
    pem_write_text("none", STR(""));
    settings.certificate = pem_path("client.pem");
    settings.key = pem_path("client.key");
    ck_assert_ptr_nonnull(context_error(&settings));
    settings.passwords = pem_path("wrong");
    ck_assert_ptr_nonnull(context_error(&settings));
    settings.passwords = pem_path("none");
    ck_assert_ptr_nonnull(context_error(&settings));
    settings.passwords = STR("/nowhere/at/all");
    ck_assert_str_eq(context_error(&settings), "No such file or directory");
    settings.passwords = pem_path("right");
    ck_assert_ptr_null(context_error(&settings));
    settings.key = pem_path("old.key");
    ck_assert_ptr_null(context_error(&settings));
    pem_free(&pair);
    pem_directory_remove();
}
END_TEST

START_TEST(commands_of_openssl_are_applied_or_rejected)
{
    const struct {
        struct tls_command command;
        bool good;
    } rows[] = {
        {{STR("MinProtocol"), STR("TLSv1.3")}, true},  {{STR("Groups"), STR("X25519")}, true},
        {{STR("Options"), STR("KTLS")}, true},         {{STR("MinProtocol"), STR("TLSv1.1")}, false},
        {{STR("MinProtocol"), STR("None")}, false},    {{STR("NoSuchCommand"), STR("x")}, false},
        {{STR("Groups"), STR("no-such-group")}, false}, {{STR(""), STR("")}, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct tls_client_settings settings = {.commands = &rows[i].command, .command_count = 1};

        ck_assert_msg((context_error(&settings) == NULL) == rows[i].good, "row %zu", i);
    }
}
END_TEST

START_TEST(settings_are_compared)
{
    const struct tls_command a = {STR("Groups"), STR("X25519")}, b = {STR("Groups"), STR("P-256")};
    const struct tls_client_settings none = {0}, first = {.commands = &a, .command_count = 1},
                                     second = {.commands = &b, .command_count = 1}, list = {.crl = STR("a")},
                                     words = {.passwords = STR("a")};

    ck_assert(tls_client_settings_equal(&first, &first));
    ck_assert(!tls_client_settings_equal(&first, &second));
    ck_assert(!tls_client_settings_equal(&first, &none));
    ck_assert(!tls_client_settings_equal(&list, &none));
    ck_assert(!tls_client_settings_equal(&words, &none));
}
END_TEST

/* A server of OpenSSL only, because it can send messages that this server never sends. */
static SSL *openssl_server(const struct tls_pair *pair)
{
    SSL_CTX *own = pair->context->default_server->openssl;
    SSL_CTX *openssl = SSL_CTX_new(TLS_server_method());
    SSL *ssl;

    ck_assert_int_eq(SSL_CTX_use_certificate(openssl, SSL_CTX_get0_certificate(own)), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey(openssl, SSL_CTX_get0_privatekey(own)), 1);
    ssl = SSL_new(openssl);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(ssl);
    SSL_CTX_free(openssl);
    return ssl;
}

/* Passes bytes in both directions. Returns the result of the client's read. */
static ssize_t pass_both_ways(SSL *server, struct end *client)
{
    char *bytes;
    char into[16];
    ssize_t result = -EAGAIN;
    long length;

    (void)!BIO_write(SSL_get_rbio(server), client->sent.data, (int)client->sent.length);
    client->sent.length = 0;
    (void)SSL_do_handshake(server);
    length = BIO_get_mem_data(SSL_get_wbio(server), &bytes);
    tls_session_set_input(client->session, str_of(bytes, (size_t)length));
    if (tls_session_handshake(client->session) == 0)
        result = tls_session_read(client->session, into, sizeof(into));
    (void)tls_session_return_input(client->session);
    (void)BIO_reset(SSL_get_wbio(server));
    return result;
}

/* The client must answer each request for a new key, so it limits the number of requests. */
START_TEST(excess_key_updates_are_rejected)
{
    struct tls_settings settings = pair_settings();
    struct tls_context *context = client_context(false);
    struct end client = {0};
    struct tls_pair pair;
    ssize_t result = -EAGAIN;
    int rounds = 0;
    SSL *server;

    pair_open(&pair, &settings, 1);
    server = openssl_server(&pair);
    client.session = tls_session_create(context, &output, &client);
    ck_assert_int_eq(tls_session_handshake(client.session), -EAGAIN);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pass_both_ways(server, &client), -EAGAIN);
    ck_assert(SSL_is_init_finished(server));
    while (result == -EAGAIN && rounds++ <= 2 * LIMIT_KEY_UPDATES) {
        ck_assert_int_eq(SSL_key_update(server, SSL_KEY_UPDATE_REQUESTED), 1);
        result = pass_both_ways(server, &client);
    }
    ck_assert_int_eq(result, -EPROTO);
    ck_assert_int_eq(rounds, LIMIT_KEY_UPDATES + 1);
    SSL_free(server);
    tls_session_destroy(client.session);
    tls_context_destroy(context);
    buffer_finish(&client.sent);
    pair_close(&pair);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, untrusted_certificate_is_rejected);
    tcase_add_test(tcase, plain_http_response_is_rejected);
    tcase_add_test(tcase, invalid_settings_are_rejected);
    tcase_add_test(tcase, keys_with_a_password);
    tcase_add_test(tcase, commands_of_openssl_are_applied_or_rejected);
    tcase_add_test(tcase, settings_are_compared);
    tcase_add_test(tcase, excess_key_updates_are_rejected);
}

int main(void)
{
    return run_suite("tls_client", add_tests);
}
