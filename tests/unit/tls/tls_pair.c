#include "tls_pair.h"

#include "hex.h"
#include "tls/ktls.h"

#include "base/limits.h"

#include <check.h>
#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void sent(struct tls_pair *pair, const char *bytes, size_t length)
{
    pair->wire = realloc(pair->wire, pair->wire_length + length);
    memcpy(pair->wire + pair->wire_length, bytes, length);
    pair->wire_length += length;
    ck_assert_int_eq(BIO_write(SSL_get_rbio(pair->client), bytes, (int)length), (int)length);
}

static void ciphertext(void *owner, struct str bytes)
{
    struct tls_pair *pair = owner;

    ck_assert_msg(pair->keys == 0, "ciphertext after the key was taken");
    pair->sealed_with_openssl = true;
    sent(pair, bytes.data, bytes.length);
}

void pair_from_kernel(struct tls_pair *pair, size_t length)
{
    char bytes[65536];

    while (length) {
        ssize_t received = recv(pair->kernel_peer, bytes, length < sizeof(bytes) ? length : sizeof(bytes), 0);
        ck_assert_int_gt(received, 0);
        length -= (size_t)received;
        sent(pair, bytes, (size_t)received);
    }
}

static void seal(struct tls_pair *pair, uint8_t type, struct str plaintext)
{
    char into[LIMIT_RECORD_PLAINTEXT + RECORD_OVERHEAD];
    struct iovec part = {(void *)(uintptr_t)plaintext.data, plaintext.length};
    ssize_t length = record_seal(pair->cipher_contexts, &pair->key, &pair->cipher_context, type, &part, 1, into);

    ck_assert_int_gt(length, 0);
    ck_assert_uint_eq((size_t)length, plaintext.length + record_overhead(&pair->key));
    sent(pair, into, (size_t)length);
}

static void record(void *owner, uint8_t type, struct str plaintext)
{
    struct tls_pair *pair = owner;

    ck_assert_uint_gt(pair->keys, 0);
    ck_assert_uint_ne(type, RECORD_APPLICATION_DATA);
    pair->records++;
    pair->sealed_with_openssl = false;
    if (pair->kernel_local) {
        ck_assert_int_eq(ktls_send_record(&ktls_calls_kernel, pair->kernel_local, type, plaintext),
                         (ssize_t)plaintext.length);
        pair_from_kernel(pair, plaintext.length + record_overhead(&pair->key));
        return;
    }
    seal(pair, type, plaintext);
}

static void key_ready(void *owner, const struct record_key *key)
{
    struct tls_pair *pair = owner;

    pair->key = *key;
    pair->keys++;
    if (pair->kernel_local)
        ck_assert_int_eq(ktls_rekey(&ktls_calls_kernel, pair->kernel_local, key), 0);
}

static bool may_update_key(void *owner)
{
    struct tls_pair *pair = owner;

    pair->asked_update++;
    return !pair->forbid_update;
}

static uint64_t now_ms(void *owner)
{
    const struct tls_pair *pair = owner;

    return pair->now_ms;
}

static struct cipher_context_cache *cipher_contexts(void *owner)
{
    const struct tls_pair *pair = owner;

    return pair->decrypts_with_openssl ? NULL : pair->cipher_contexts;
}

static const struct tls_output output = {ciphertext, record, key_ready, may_update_key, now_ms, cipher_contexts};

static void logged(void *owner, enum log_level level, struct str line)
{
    struct tls_pair *pair = owner;
    size_t length = line.length < sizeof(pair->last_log) - 1 ? line.length : sizeof(pair->last_log) - 1;

    memcpy(pair->last_log, line.data, length);
    pair->last_log[length] = '\0';
    pair->log_lines++;
}

static void client_secret(const SSL *client, const char *line)
{
    static const char label[] = "CLIENT_TRAFFIC_SECRET_0 ";
    struct tls_pair *pair = SSL_get_app_data(client);
    uint8_t secret[RECORD_SECRET_MAX];

    if (strncmp(line, label, sizeof(label) - 1) != 0)
        return;
    size_t length = from_hex(strrchr(line, ' '), secret);
    ck_assert_int_eq(record_key_derive(length == 48 ? RECORD_AES_256_GCM : RECORD_AES_128_GCM,
                                       str_of((char *)secret, length), &pair->client_key),
                     0);
}

static void record_alert(const SSL *client, int where, int what)
{
    struct tls_pair *pair = SSL_get_app_data(client);

    if (where == SSL_CB_READ_ALERT)
        pair->alert = what & 0xff;
}

struct tls_settings pair_settings(void)
{
    static const struct str names[] = {{"localhost", 9}};
    static const struct tls_certificate certificates[] = {{{"self-signed", 11}, {NULL, 0}}};

    return (struct tls_settings){
        .names = names,
        .name_count = 1,
        .certificates = certificates,
        .certificate_count = 1,
        .prefer_server_ciphers = true,
        .session_tickets = true,
        .session_timeout_s = 300,
    };
}

void pair_open(struct tls_pair *pair, const struct tls_settings *servers, size_t count)
{
    char error[512] = "";

    memset(pair, 0, sizeof(*pair));
    pair->log = (struct log){.level = LOG_DEBUG, .sink = logged, .owner = pair};
    pair->context = tls_context_create(servers, count, &pair->log, error, sizeof(error));
    ck_assert_msg(pair->context, "%s", error);
    pair->cipher_contexts = cipher_context_cache_create(4, NULL);
    pair->client_openssl = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_session_cache_mode(pair->client_openssl, SSL_SESS_CACHE_CLIENT);
    SSL_CTX_set_keylog_callback(pair->client_openssl, client_secret);
    SSL_CTX_set_info_callback(pair->client_openssl, record_alert);
    pair_reconnect(pair);
}

static void disconnect(struct tls_pair *pair)
{
    tls_session_destroy(pair->session);
    SSL_free(pair->client);
    record_release(pair->cipher_contexts, &pair->cipher_context);
    record_release(pair->cipher_contexts, &pair->client_cipher_context);
    if (pair->kernel_local) {
        close(pair->kernel_local);
        close(pair->kernel_peer);
        pair->kernel_local = pair->kernel_peer = 0;
    }
    free(pair->wire);
    pair->wire = NULL;
    pair->wire_length = 0;
    pair->keys = pair->records = pair->asked_update = 0;
    pair->sealed_with_openssl = false;
}

void pair_reconnect(struct tls_pair *pair)
{
    disconnect(pair);
    pair->session = tls_session_create(pair->context, &output, pair);
    ck_assert_ptr_nonnull(pair->session);
    pair->client = SSL_new(pair->client_openssl);
    SSL_set_app_data(pair->client, pair);
    SSL_set_bio(pair->client, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    BIO_set_mem_eof_return(SSL_get_rbio(pair->client), -1);
    SSL_set_connect_state(pair->client);
}

void pair_close(struct tls_pair *pair)
{
    disconnect(pair);
    tls_context_destroy(pair->context);
    cipher_context_cache_destroy(pair->cipher_contexts);
    SSL_CTX_free(pair->client_openssl);
    ck_assert_uint_eq(ERR_peek_error(), 0);
}

/* Passes the next bytes from the client to the server, which reads or continues its handshake. */
static ssize_t step(struct tls_pair *pair, bool reading, char *into, size_t size, char *input,
                    size_t input_size)
{
    size_t max = pair->fragment && pair->fragment < input_size ? pair->fragment : input_size;
    int length = BIO_read(SSL_get_wbio(pair->client), input, (int)max);

    if (length > 0)
        tls_session_set_input(pair->session, str_of(input, (size_t)length));
    ssize_t result =
        reading ? tls_session_read(pair->session, into, size) : tls_session_handshake(pair->session);
    ck_assert_uint_eq(ERR_peek_error(), 0);
    return result;
}

int pair_handshake(struct tls_pair *pair)
{
    char input[16384];
    int result = -EAGAIN, mine = 0;

    for (int turn = 0; turn < 20000; turn++) {
        if (mine != 1) {
            mine = SSL_do_handshake(pair->client);
            if (mine != 1 && SSL_get_error(pair->client, mine) != SSL_ERROR_WANT_READ) {
                ERR_clear_error();
                mine = 1;
            }
        }
        if (result == -EAGAIN)
            result = (int)step(pair, false, NULL, 0, input, sizeof(input));
        /* In TLS 1.3 the client's handshake is complete before its Finished arrives. */
        if ((result == 0 && mine == 1) || result == -EPROTO)
            break;
        if (mine == 1 && BIO_ctrl_pending(SSL_get_wbio(pair->client)) == 0)
            break;
    }
    if (result == 0 && tls_session_input_left(pair->session) == 0)
        return 0;
    return result;
}

ssize_t pair_server_read(struct tls_pair *pair, char *into, size_t size)
{
    static char input[65536];
    size_t used = 0;
    ssize_t result = -EAGAIN;

    while (used < size) {
        bool more = BIO_ctrl_pending(SSL_get_wbio(pair->client)) > 0;
        if (tls_session_input_left(pair->session) > 0)
            result = tls_session_read(pair->session, into + used, size - used);
        else
            result = step(pair, true, into + used, size - used, input, sizeof(input));
        if (result > 0)
            used += (size_t)result;
        else if (result != -EAGAIN || (!more && tls_session_input_left(pair->session) == 0))
            break;
    }
    return used ? (ssize_t)used : result;
}

void pair_server_write(struct tls_pair *pair, struct str plaintext)
{
    if (!tls_session_has_key(pair->session)) {
        ck_assert_int_eq(tls_session_write(pair->session, plaintext), (ssize_t)plaintext.length);
        return;
    }
    while (plaintext.length) {
        struct str part = str_slice(plaintext, 0, LIMIT_RECORD_PLAINTEXT);
        seal(pair, RECORD_APPLICATION_DATA, part);
        plaintext = str_skip(plaintext, part.length);
    }
}

ssize_t pair_client_read(struct tls_pair *pair, char *into, size_t size)
{
    size_t used = 0;
    int result = 0;

    while (used < size && (result = SSL_read(pair->client, into + used, (int)(size - used))) > 0)
        used += (size_t)result;
    if (used)
        return (ssize_t)used;
    int error = SSL_get_error(pair->client, result);
    ERR_clear_error();
    return -error;
}

void pair_exchange(struct tls_pair *pair, size_t size)
{
    char *there = malloc(size), *back = malloc(size);

    for (size_t i = 0; i < size; i++)
        there[i] = (char)(i * 31 + i / 251);
    pair_server_write(pair, str_of(there, size));
    ck_assert_int_eq(pair_client_read(pair, back, size), (ssize_t)size);
    ck_assert(memcmp(there, back, size) == 0);
    ck_assert_int_eq(SSL_write(pair->client, there, (int)size), (int)size);
    memset(back, 0, size);
    ck_assert_int_eq(pair_server_read(pair, back, size), (ssize_t)size);
    ck_assert(memcmp(there, back, size) == 0);
    free(there);
    free(back);
}

void pair_shutdown(struct tls_pair *pair)
{
    char byte;

    tls_session_shutdown(pair->session);
    tls_session_shutdown(pair->session);
    ck_assert_int_eq(pair_client_read(pair, &byte, 1), -SSL_ERROR_ZERO_RETURN);
    SSL_shutdown(pair->client);
    ck_assert_int_eq(pair_server_read(pair, &byte, 1), 0);
}

ssize_t pair_forge(struct tls_pair *pair, uint8_t type, struct str plaintext, char *into, size_t size)
{
    static char bytes[LIMIT_RECORD_PLAINTEXT + RECORD_OVERHEAD];
    struct iovec part = {(void *)(uintptr_t)plaintext.data, plaintext.length};
    ssize_t length = record_seal(pair->cipher_contexts, &pair->client_key, &pair->client_cipher_context, type,
                                 &part, 1, bytes);

    ck_assert_int_gt(length, 0);
    tls_session_set_input(pair->session, str_of(bytes, (size_t)length));
    ssize_t result = tls_session_read(pair->session, into, size);
    tls_session_return_input(pair->session);
    return result;
}
