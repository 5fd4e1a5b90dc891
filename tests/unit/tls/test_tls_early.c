#include "base/limits.h"
#include "tls/tls_server.h"
#include "tls_pair.h"

#include "../runner.h"

#include <errno.h>
#include <stdlib.h>

static struct tls_settings settings;
static struct ticket_keys keys;
static struct replay_window *seen;
static struct tls_pair pair;
static SSL_SESSION *stored;
static char flight[32768];
static size_t flight_length;

/* Opens a server that accepts early data, and a client with a ticket from it. */
static void open_all(void)
{
    settings = pair_settings();
    settings.early_data = true;
    keys = (struct ticket_keys){0};
    seen = calloc(1, sizeof(*seen));
    ck_assert_int_eq(ticket_keys_rotate(&keys), 0);
    pair_open(&pair, &settings, 1);
    tls_context_share(pair.context, &keys, seen);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert(!tls_session_early(pair.session));
    pair_exchange(&pair, 10);
    stored = SSL_get1_session(pair.client);
    ck_assert_uint_eq(SSL_SESSION_get_max_early_data(stored), LIMIT_EARLY_DATA);
    pair_shutdown(&pair);
}

static void close_all(void)
{
    SSL_SESSION_free(stored);
    pair_close(&pair);
    free(seen);
}

/* Writes the client's first flight, ClientHello and early data, into `flight`. */
static void client_sends_early_data(struct str text)
{
    SSL_SESSION *copy = SSL_SESSION_dup(stored);
    size_t written = 0;

    pair_reconnect(&pair);
    SSL_set_session(pair.client, copy);
    SSL_SESSION_free(copy);
    ck_assert_int_eq(SSL_write_early_data(pair.client, text.data, text.length, &written), 1);
    ck_assert_uint_eq(written, text.length);
    flight_length = (size_t)BIO_read(SSL_get_wbio(pair.client), flight, sizeof(flight));
}

static int server_receives_flight(void)
{
    tls_session_set_input(pair.session, str_of(flight, flight_length));
    return tls_session_handshake(pair.session);
}

/* The client completes the handshake. The server reads no further bytes, and the early phase ends. */
static void finish_handshake(void)
{
    char bytes[100];

    ck_assert_int_eq(SSL_do_handshake(pair.client), 1);
    ck_assert_int_eq(pair_server_read(&pair, bytes, sizeof(bytes)), -EAGAIN);
    ck_assert(!tls_session_early(pair.session));
}

START_TEST(early_data_is_read_and_answered)
{
    char bytes[100] = "";

    client_sends_early_data(STR("GET /"));
    ck_assert_int_eq(server_receives_flight(), TLS_SESSION_EARLY);
    ck_assert(tls_session_early(pair.session) && tls_session_reused(pair.session));
    ck_assert(str_equal(tls_session_protocol(pair.session), STR("TLSv1.3")));
    ck_assert_int_eq(tls_session_read(pair.session, bytes, _i ? 1 : sizeof(bytes)), _i ? 1 : 5);
    if (_i)
        ck_assert_int_eq(tls_session_read(pair.session, bytes + 1, sizeof(bytes) - 1), 4);
    ck_assert(memcmp(bytes, "GET /", 5) == 0);
    ck_assert_int_eq(tls_session_read(pair.session, bytes, sizeof(bytes)), -EAGAIN);
    ck_assert(tls_session_early(pair.session) && tls_session_has_key(pair.session));
    pair_server_write(&pair, STR("an answer"));
    finish_handshake();
    ck_assert_int_eq(pair_client_read(&pair, bytes, 9), 9);
    ck_assert(memcmp(bytes, "an answer", 9) == 0);
    ck_assert_int_eq(SSL_get_early_data_status(pair.client), SSL_EARLY_DATA_ACCEPTED);
    pair_exchange(&pair, 50000);
    ck_assert_int_eq(tls_session_update_key(pair.session), 0);
    pair_exchange(&pair, 1000);
    pair_shutdown(&pair);
}
END_TEST

/* Early data in two flights; each contains a full record and is read completely. */
START_TEST(early_data_arrives_in_pieces)
{
    static char text[12000], bytes[12000];
    size_t written = 0, used = 0;

    memset(text, 'x', sizeof(text));
    client_sends_early_data(STR("first"));
    ck_assert_int_eq(server_receives_flight(), TLS_SESSION_EARLY);
    ck_assert_int_eq(tls_session_read(pair.session, bytes, sizeof(bytes)), 5);
    ck_assert_int_eq(SSL_write_early_data(pair.client, text, sizeof(text), &written), 1);
    flight_length = (size_t)BIO_read(SSL_get_wbio(pair.client), flight, sizeof(flight));
    for (size_t i = 0; i < flight_length; i += 1000) {
        ssize_t got;

        tls_session_set_input(pair.session,
                         str_of(flight + i, flight_length - i < 1000 ? flight_length - i : 1000));
        while ((got = tls_session_read(pair.session, bytes + used, sizeof(bytes) - used)) > 0)
            used += (size_t)got;
        ck_assert_int_eq(got, -EAGAIN);
    }
    ck_assert_uint_eq(used, sizeof(text));
    ck_assert(memcmp(bytes, text, sizeof(text)) == 0);
    finish_handshake();
    pair_exchange(&pair, 100);
}
END_TEST

static bool early_data_is_refused(void)
{
    bool rejected = server_receives_flight() == -EAGAIN;
    char bytes[10];

    ck_assert(!rejected || tls_session_read(pair.session, bytes, sizeof(bytes)) < 0);
    return rejected;
}

/* The same flight again, to the same worker and to another one. */
START_TEST(replay_is_rejected)
{
    struct tls_context *first = pair.context;
    char error[512];

    client_sends_early_data(STR("POST /pay"));
    ck_assert_int_eq(server_receives_flight(), TLS_SESSION_EARLY);
    pair_reconnect(&pair);
    ck_assert(early_data_is_refused());
    pair.context = tls_context_create(&settings, 1, &pair.log, error, sizeof(error));
    ck_assert_ptr_nonnull(pair.context);
    tls_context_share(pair.context, &keys, seen);
    pair_reconnect(&pair);
    ck_assert(early_data_is_refused());
    struct tls_context *second = pair.context;
    pair.context = first;
    pair_reconnect(&pair);
    tls_context_destroy(second);
    client_sends_early_data(STR("GET /again"));
    ck_assert_msg(server_receives_flight() == TLS_SESSION_EARLY,
                  "another connection with the same ticket is no replay");
}
END_TEST

/* After a rejection the client completes a full handshake; OpenSSL skips the early data that it cannot decrypt. */
static void complete_full_handshake(void)
{
    char bytes[100];

    tls_session_return_input(pair.session);
    pair_reconnect(&pair);
    client_sends_early_data(STR("GET /"));
    ck_assert(early_data_is_refused());
    ck_assert_int_eq(SSL_do_handshake(pair.client), 1);
    flight_length = (size_t)BIO_read(SSL_get_wbio(pair.client), flight, sizeof(flight));
    tls_session_set_input(pair.session, str_of(flight, flight_length));
    ck_assert_int_eq(tls_session_handshake(pair.session), 0);
    ck_assert_int_eq(tls_session_read(pair.session, bytes, sizeof(bytes)), -EAGAIN);
    ck_assert_int_eq(SSL_get_early_data_status(pair.client), SSL_EARLY_DATA_REJECTED);
    pair_exchange(&pair, 1000);
}

START_TEST(no_early_data_without_replay_window)
{
    tls_context_share(pair.context, &keys, NULL);
    client_sends_early_data(STR("GET /"));
    ck_assert(early_data_is_refused());
    complete_full_handshake();
}
END_TEST

START_TEST(clock_change_rejects_early_data)
{
    pair.now_ms += LIMIT_EARLY_DRIFT_MS + 2000; /* the wall clock is unchanged */
    client_sends_early_data(STR("GET /"));
    ck_assert(early_data_is_refused());
    complete_full_handshake();
}
END_TEST

START_TEST(server_without_early_data_rejects)
{
    settings.early_data = false; /* simulates another server chosen by SNI */
    client_sends_early_data(STR("GET /"));
    ck_assert(early_data_is_refused());
    complete_full_handshake();
}
END_TEST

START_TEST(excess_early_data_is_rejected)
{
    static char text[LIMIT_EARLY_DATA + 1];
    char bytes[100];
    size_t written = 0;

    SSL_SESSION_set_max_early_data(stored, 2 * LIMIT_EARLY_DATA);
    client_sends_early_data(str_of(text, LIMIT_EARLY_DATA));
    ck_assert_int_eq(server_receives_flight(), TLS_SESSION_EARLY);
    SSL_write_early_data(pair.client, text, 1000, &written);
    ssize_t got = 0;
    for (int i = 0; i < 100 && (got = pair_server_read(&pair, bytes, sizeof(bytes))) > 0; i++)
        ;
    for (int i = 0; i < 1000 && got > 0; i++)
        got = pair_server_read(&pair, bytes, sizeof(bytes));
    ck_assert_int_eq(got, -EPROTO);
}
END_TEST

/* The server may close the connection right after its response to early data. */
START_TEST(close_before_the_handshake_ends)
{
    char bytes[100];

    client_sends_early_data(STR("GET /"));
    ck_assert_int_eq(server_receives_flight(), TLS_SESSION_EARLY);
    ck_assert_int_eq(tls_session_read(pair.session, bytes, sizeof(bytes)), 5);
    pair_server_write(&pair, STR("an answer"));
    tls_session_shutdown(pair.session);
    ck_assert_int_eq(SSL_do_handshake(pair.client), 1);
    ck_assert_int_eq(pair_client_read(&pair, bytes, 9), 9);
    ck_assert_int_eq(pair_client_read(&pair, bytes, 1), -SSL_ERROR_ZERO_RETURN);
}
END_TEST

/* ssl_early_data does not affect handshakes without early data, in both versions, nor bytes that are not TLS. */
START_TEST(handshakes_without_early_data)
{
    pair_reconnect(&pair);
    SSL_set_max_proto_version(pair.client, _i ? TLS1_2_VERSION : TLS1_3_VERSION);
    pair.fragment = 7;
    ck_assert_int_eq(pair_handshake(&pair), 0);
    pair_exchange(&pair, 100);
    pair_shutdown(&pair);
    pair_reconnect(&pair);
    tls_session_set_input(pair.session, STR("GET / HTTP/1.1\r\n\r\n"));
    ck_assert_int_eq(tls_session_handshake(pair.session), -EPROTO);
    ck_assert(tls_session_got_plain_http(pair.session));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, open_all, close_all);
    tcase_add_loop_test(tcase, early_data_is_read_and_answered, 0, 2);
    tcase_add_test(tcase, early_data_arrives_in_pieces);
    tcase_add_test(tcase, replay_is_rejected);
    tcase_add_test(tcase, no_early_data_without_replay_window);
    tcase_add_test(tcase, clock_change_rejects_early_data);
    tcase_add_test(tcase, server_without_early_data_rejects);
    tcase_add_test(tcase, excess_early_data_is_rejected);
    tcase_add_test(tcase, close_before_the_handshake_ends);
    tcase_add_loop_test(tcase, handshakes_without_early_data, 0, 2);
}

int main(void)
{
    return run_suite("tls_early", add_tests);
}
