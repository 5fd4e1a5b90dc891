#include "pem_files.h"
#include "tls/tls_server.h"
#include "tls_pair.h"

#include "../runner.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

static bool is_zero(const void *bytes, size_t size)
{
    const char *byte = bytes;

    for (size_t i = 0; i < size; i++) {
        if (byte[i])
            return false;
    }
    return true;
}

START_TEST(two_random_keys_are_valid)
{
    struct ticket_keys keys = {0};
    struct ticket_key first, second, found;

    ck_assert(!ticket_keys_get(&keys, 0, &found) && !ticket_keys_get(&keys, 1, &found));
    ck_assert_int_eq(ticket_keys_rotate(&keys), 0);
    ck_assert(ticket_keys_get(&keys, 0, &first) && !ticket_keys_get(&keys, 1, &found));
    ck_assert_uint_eq(first.size, 32);
    ck_assert(!is_zero(first.name, 16) && !is_zero(first.hmac, 32) && !is_zero(first.aes, 32));
    ck_assert_int_eq(ticket_keys_rotate(&keys), 0);
    ck_assert(ticket_keys_get(&keys, 0, &second) && ticket_keys_get(&keys, 1, &found));
    ck_assert(memcmp(&found, &first, sizeof(first)) == 0);
    ck_assert(memcmp(second.name, first.name, 16) != 0 && memcmp(second.aes, first.aes, 32) != 0);
    ck_assert(!ticket_keys_get(&keys, 2, &found));
    for (int i = 0; i < 7; i++) {
        ck_assert_int_eq(ticket_keys_rotate(&keys), 0);
        ck_assert(ticket_keys_get(&keys, 1, &found) && memcmp(&found, &second, sizeof(found)) == 0);
        ck_assert(ticket_keys_get(&keys, 0, &second));
        ck_assert_msg(is_zero(&keys.keys[(keys.number + 1) % TICKET_KEYS_GENERATED], sizeof(found)),
                      "an old key is not wiped");
    }
    ticket_keys_wipe(&keys);
    ck_assert(is_zero(&keys, sizeof(keys)));
}
END_TEST

START_TEST(overwritten_key_is_not_used)
{
    struct ticket_keys keys;
    struct ticket_key found;

    memset(&keys, 0xff, sizeof(keys));
    ck_assert(!ticket_keys_get(&keys, 0, &found) && !ticket_keys_get(&keys, 1, &found));
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(ticket_keys_rotate(&keys), 0);
    ck_assert(ticket_keys_get(&keys, 0, &found) && ticket_keys_get(&keys, 1, &found));
}
END_TEST

/* A reader during a rotation gets the old or the new key, never a mixture of both. */
START_TEST(key_is_read_atomically)
{
    struct ticket_keys *keys = mmap(NULL, sizeof(*keys), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct ticket_key found;
    unsigned taken = 0, torn = 0;

    ck_assert(keys != MAP_FAILED);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    for (int i = 0; child == 0 && i < 200000; i++) {
        if (ticket_keys_rotate(keys) < 0)
            _exit(1);
    }
    if (child == 0)
        _exit(0);
    int status;
    while (waitpid(child, &status, WNOHANG) == 0) {
        for (int i = 0; i < 10000; i++) {
            if (!ticket_keys_get(keys, 1, &found))
                continue;
            taken++;
            if (is_zero(found.name, 8) || is_zero(found.hmac + 24, 8) || is_zero(found.aes + 24, 8))
                torn++;
        }
    }
    ck_assert_msg(torn == 0, "%u of %u keys are wiped in part", torn, taken);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_gt(taken, 0);
    munmap(keys, sizeof(*keys));
}
END_TEST

START_TEST(key_files_have_two_sizes)
{
    char bytes[81];
    struct ticket_key key;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i + 1);
    for (size_t length = 0; length <= sizeof(bytes); length++)
        ck_assert_int_eq(ticket_key_parse(str_of(bytes, length), &key),
                         length == 48 || length == 80 ? 0 : -EINVAL);
    ck_assert_int_eq(ticket_key_parse(str_of(bytes, 80), &key), 0);
    ck_assert(key.size == 32 && key.name[0] == 1 && key.hmac[0] == 17 && key.hmac[31] == 48 &&
              key.aes[0] == 49 && key.aes[31] == 80);
    ck_assert_int_eq(ticket_key_parse(str_of(bytes, 48), &key), 0);
    ck_assert(key.size == 16 && key.name[15] == 16 && key.aes[0] == 17 && key.aes[15] == 32 &&
              key.hmac[0] == 33 && key.hmac[15] == 48);
}
END_TEST

/* Makes a full handshake. Returns the session of its ticket. */
static SSL_SESSION *full_handshake(struct tls_pair *pair, int version)
{
    SSL_CTX_set_min_proto_version(pair->client_openssl, version);
    SSL_CTX_set_max_proto_version(pair->client_openssl, version);
    pair_reconnect(pair);
    ck_assert_int_eq(pair_handshake(pair), 0);
    ck_assert(!tls_session_reused(pair->session));
    pair_exchange(pair, 10);
    SSL_SESSION *stored = SSL_get1_session(pair->client);
    ck_assert(SSL_SESSION_has_ticket(stored));
    pair_shutdown(pair);
    return stored;
}

/*
 * Returns true if the session is resumed. *out_next, unless NULL, gets the new session. Uses a copy, because OpenSSL
 * uses each session only once.
 */
static bool resumes(struct tls_pair *pair, SSL_SESSION *session, SSL_SESSION **out_next)
{
    SSL_SESSION *copy = SSL_SESSION_dup(session);

    pair_reconnect(pair);
    SSL_set_session(pair->client, copy);
    SSL_SESSION_free(copy);
    ck_assert_int_eq(pair_handshake(pair), 0);
    pair_exchange(pair, 10);
    bool reused = tls_session_reused(pair->session);
    if (out_next)
        *out_next = SSL_get1_session(pair->client);
    pair_shutdown(pair);
    return reused;
}

START_TEST(ticket_is_valid_after_one_rotation)
{
    struct tls_settings settings = pair_settings();
    struct ticket_keys keys = {0};
    struct tls_pair pair;

    ck_assert_int_eq(ticket_keys_rotate(&keys), 0);
    pair_open(&pair, &settings, 1);
    tls_context_share(pair.context, &keys, NULL);
    SSL_SESSION *stored = full_handshake(&pair, versions[_i]), *next = NULL;
    ck_assert(resumes(&pair, stored, NULL));
    ck_assert_int_eq(ticket_keys_rotate(&keys), 0);
    ck_assert(resumes(&pair, stored, &next));
    ck_assert_int_eq(ticket_keys_rotate(&keys), 0);
    ck_assert_msg(!resumes(&pair, stored, NULL), "its key is gone");
    ck_assert_msg(resumes(&pair, next, NULL), "that one was sealed with the second key");
    ticket_keys_wipe(&keys);
    ck_assert_msg(!resumes(&pair, next, NULL), "no key is left");
    SSL_SESSION_free(stored);
    SSL_SESSION_free(next);
    pair_close(&pair);
}
END_TEST

/* A ticket's lifetime is that of the server that issued it, not that of the default server. */
START_TEST(ticket_lifetime_per_server)
{
    static const struct str names[2][1] = {{{"first.test", 10}}, {{"second.test", 11}}};
    struct tls_settings servers[2] = {pair_settings(), pair_settings()};
    struct tls_pair pair;

    for (int i = 0; i < 2; i++) {
        servers[i].names = names[i];
        servers[i].name_count = 1;
        servers[i].session_timeout_s = i ? 7 : 5000;
    }
    pair_open(&pair, servers, 2);
    SSL_CTX_set_max_proto_version(pair.client_openssl, versions[_i / 2]);
    pair_reconnect(&pair);
    SSL_set_tlsext_host_name(pair.client, names[_i % 2][0].data);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    pair_exchange(&pair, 10);
    ck_assert_uint_eq(SSL_SESSION_get_ticket_lifetime_hint(SSL_get_session(pair.client)), _i % 2 ? 7 : 5000);
    pair_close(&pair);
}
END_TEST

START_TEST(changed_ticket_needs_a_full_handshake)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    const unsigned char *ticket;
    size_t length;

    pair_open(&pair, &settings, 1);
    SSL_SESSION *stored = full_handshake(&pair, versions[_i / 4]);
    SSL_SESSION_get0_ticket(stored, &ticket, &length);
    size_t places[] = {0, 16, 40, length - 1}; /* key name, IV, encrypted state, HMAC */
    ((unsigned char *)(uintptr_t)ticket)[places[_i % 4]] ^= 1;
    ck_assert(!resumes(&pair, stored, NULL));
    SSL_SESSION_free(stored);
    pair_close(&pair);
}
END_TEST

struct machine {
    struct tls_certificate certificate;
    struct str keys[2];
    struct tls_settings settings;
    struct tls_pair pair;
};

static void open_machine(struct machine *machine, const char *first, const char *second)
{
    machine->certificate = (struct tls_certificate){pem_path("site.pem"), pem_path("site.key")};
    machine->settings = pair_settings();
    machine->settings.certificates = &machine->certificate;
    machine->keys[0] = pem_path(first);
    if (second)
        machine->keys[1] = pem_path(second);
    machine->settings.ticket_keys = machine->keys;
    machine->settings.ticket_key_count = second ? 2 : 1;
    pair_open(&machine->pair, &machine->settings, 1);
}

/* Three machines at different stages of replacing the key file. */
START_TEST(machines_share_key_files)
{
    struct pem_pair site = pem_make("EC", "site", -1, 9, NULL);
    struct machine old, both, new;
    char bytes[80];

    pem_directory_make();
    pem_write_certificates("site.pem", &site.certificate, 1);
    pem_write_key("site.key", site.key, NULL, false);
    memset(bytes, 'a', sizeof(bytes));
    pem_write_text("old", str_of(bytes, 48));
    memset(bytes, 'b', sizeof(bytes));
    pem_write_text("new", str_of(bytes, 80));
    open_machine(&old, "old", NULL);
    open_machine(&both, "new", "old");
    open_machine(&new, "new", NULL);
    SSL_SESSION *from_old = full_handshake(&old.pair, versions[_i]), *from_both = NULL;
    SSL_CTX_set_min_proto_version(both.pair.client_openssl, versions[_i]);
    SSL_CTX_set_max_proto_version(both.pair.client_openssl, versions[_i]);
    SSL_CTX_set_max_proto_version(new.pair.client_openssl, versions[_i]);
    ck_assert(!resumes(&new.pair, from_old, NULL));
    ck_assert(resumes(&both.pair, from_old, &from_both));
    ck_assert(resumes(&new.pair, from_both, NULL));
    ck_assert(!resumes(&old.pair, from_both, NULL));
    SSL_SESSION_free(from_old);
    SSL_SESSION_free(from_both);
    pair_close(&old.pair);
    pair_close(&both.pair);
    pair_close(&new.pair);
    pem_directory_remove();
    pem_free(&site);
}
END_TEST

static void quiet(void *owner, enum log_level level, struct str line)
{
}

START_TEST(invalid_key_files_are_reported)
{
    static const struct {
        const char *name;
        size_t length;
        const char *words;
    } cases[] = {
        {"empty", 0, "empty\" has 0 bytes, and neither 80 nor 48; make one with: openssl rand 80 > /tmp/"},
        {"long", 81, "has 81 bytes"},
        {"absent", SIZE_MAX, "absent\" cannot be opened: No such file"},
    };
    struct tls_settings settings = pair_settings();
    struct log log = {.level = LOG_ERROR, .sink = quiet};
    char bytes[100] = "", error[512] = "";
    struct str path;

    pem_directory_make();
    if (cases[_i].length != SIZE_MAX)
        pem_write_text(cases[_i].name, str_of(bytes, cases[_i].length));
    path = pem_path(cases[_i].name);
    settings.ticket_keys = &path;
    settings.ticket_key_count = 1;
    ck_assert_ptr_null(tls_context_create(&settings, 1, &log, error, sizeof(error)));
    ck_assert_msg(strstr(error, cases[_i].words), "%s", error);
    pem_directory_remove();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, two_random_keys_are_valid);
    tcase_add_test(tcase, overwritten_key_is_not_used);
    tcase_add_test(tcase, key_is_read_atomically);
    tcase_add_test(tcase, key_files_have_two_sizes);
    tcase_add_loop_test(tcase, ticket_is_valid_after_one_rotation, 0, 2);
    tcase_add_loop_test(tcase, ticket_lifetime_per_server, 0, 2 * 2);
    tcase_add_loop_test(tcase, changed_ticket_needs_a_full_handshake, 0, 2 * 4);
    tcase_add_loop_test(tcase, machines_share_key_files, 0, 2);
    tcase_add_loop_test(tcase, invalid_key_files_are_reported, 0, 3);
}

int main(void)
{
    return run_suite("tls_tickets", add_tests);
}
