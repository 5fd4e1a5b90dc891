/*
 * A server session with hostile input. The first byte of the input selects the mode, the second the fragment size:
 *   'r'  the client sends only the rest;
 *   'm'  a real handshake; the rest is XORed with the client's output;
 *   'f'  after a real handshake, records [type, length, bytes...] sealed under the client's own key;
 *   'k'  the same after so many records that tls_receiver decrypts;
 *   'c'  then, the rest as ciphertext.
 * The session ends or waits, a failed session remains failed, and the server's records are sealed in order.
 */
#include "fuzz.h"

#include "base/limits.h"
#include "tls/tls_session.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

enum { TURNS = 8, LENT = 16384, FIRST_RECORDS = 8 };

static struct fuzz_peers {
    struct tls_context *context;
    struct cipher_context_cache *cipher_contexts;
    SSL_CTX *openssl;
    SSL *client;
    struct record_key client_key, key;
    struct cipher_context *client_cipher_context, *cipher_context;
    bool key_taken;
    uint64_t sequence;
} peers;

static void deliver(struct str bytes)
{
    if (peers.client)
        HOLDS(BIO_write(SSL_get_rbio(peers.client), bytes.data, (int)bytes.length) == (int)bytes.length);
}

static void ciphertext(void *owner, struct str bytes)
{
    HOLDS(!peers.key_taken);
    deliver(bytes);
}

static void record(void *owner, uint8_t type, struct str plaintext)
{
    static char into[LIMIT_RECORD_PLAINTEXT + RECORD_OVERHEAD];
    struct iovec part = {(void *)(uintptr_t)plaintext.data, plaintext.length};

    HOLDS(peers.key_taken && type != RECORD_APPLICATION_DATA && peers.key.sequence == peers.sequence++);
    ssize_t length = record_seal(peers.cipher_contexts, &peers.key, &peers.cipher_context, type, &part, 1, into);
    HOLDS(length > 0);
    deliver(str_of(into, (size_t)length));
}

static void key_ready(void *owner, const struct record_key *key)
{
    peers.key_taken = true;
    peers.key = *key;
    peers.sequence = key->sequence;
}

static struct cipher_context_cache *cipher_contexts(void *owner)
{
    return peers.cipher_contexts;
}

static const struct tls_output output = {
    .ciphertext = ciphertext, .record = record, .key_ready = key_ready, .cipher_contexts = cipher_contexts};

static void client_secret(const SSL *client, const char *line)
{
    uint8_t secret[RECORD_SECRET_MAX];
    const char *hex = strrchr(line, ' ') + 1;

    if (strncmp(line, "CLIENT_TRAFFIC_SECRET_0 ", 24) != 0)
        return;
    for (size_t i = 0; i < 32; i++)
        HOLDS(sscanf(hex + 2 * i, "%2hhx", &secret[i]) == 1);
    HOLDS(record_key_derive(RECORD_AES_128_GCM, str_of((char *)secret, 32), &peers.client_key) == 0);
}

static void quiet(void *owner, enum log_level level, struct str line)
{
}

static void set_up(void)
{
    static const struct str names[] = {{"localhost", 9}, {"*.example.com", 13}};
    static const struct tls_certificate certificate = {{"self-signed", 11}, {NULL, 0}};
    static struct tls_settings servers[2];
    struct log log = {.sink = quiet};
    char error[512];

    for (int i = 0; i < 2; i++)
        servers[i] = (struct tls_settings){.names = &names[i],
                                           .name_count = 1,
                                           .certificates = &certificate,
                                           .certificate_count = 1,
                                           .session_tickets = true,
                                           .prefer_server_ciphers = true};
    peers.context = tls_context_create(servers, 2, &log, error, sizeof(error));
    peers.cipher_contexts = cipher_context_cache_create(2, NULL);
    peers.openssl = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_keylog_callback(peers.openssl, client_secret);
    HOLDS(peers.context && peers.cipher_contexts && peers.openssl);
}

/* Reads until no more bytes are available, as the wire does. */
static int drain(struct tls_session *session, bool handshake)
{
    static char into[LENT];
    ssize_t result = handshake ? tls_session_handshake(session) : 0;

    if (result == 0)
        while ((result = tls_session_read(session, into, sizeof(into))) > 0)
            HOLDS((size_t)result <= sizeof(into));
    HOLDS(result == 0 || result == -EAGAIN || result == -EPROTO);
    HOLDS(ERR_peek_error() == 0);
    if (result == -EPROTO) {
        HOLDS(tls_session_handshake(session) == -EPROTO && tls_session_read(session, into, 1) == -EPROTO);
        HOLDS(tls_session_error(session) != NULL);
    }
    return (int)result;
}

static void push(struct tls_session *session, const uint8_t *bytes, size_t size, size_t fragment)
{
    int result = -EAGAIN;

    for (size_t at = 0; at < size && result == -EAGAIN; at += fragment) {
        tls_session_set_input(session,
                         str_of((const char *)bytes + at, size - at < fragment ? size - at : fragment));
        result = drain(session, true);
        tls_session_return_input(session);
    }
    (void)tls_session_got_plain_http(session);
}

/* A handshake with a real client; `change` is XORed with its output. */
static void perform_handshake(struct tls_session *session, const uint8_t *change, size_t size, size_t fragment)
{
    static uint8_t bytes[LENT];
    size_t changed = 0;

    peers.client = SSL_new(peers.openssl);
    SSL_set_bio(peers.client, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(peers.client);
    for (int turn = 0; turn < TURNS; turn++) {
        (void)SSL_do_handshake(peers.client);
        ERR_clear_error();
        int length = BIO_read(SSL_get_wbio(peers.client), bytes, sizeof(bytes));
        for (int i = 0; i < length && changed < size; i++)
            bytes[i] ^= change[changed++];
        if (length > 0)
            push(session, bytes, (size_t)length, fragment);
    }
}

static void forge(struct tls_session *session, const uint8_t *bytes, size_t size)
{
    static char into[LIMIT_RECORD_PLAINTEXT + RECORD_OVERHEAD];

    while (size >= 2) {
        size_t length = bytes[1] < size - 2 ? bytes[1] : size - 2;
        struct iovec part = {(void *)(uintptr_t)(bytes + 2), length};
        ssize_t sealed = record_seal(peers.cipher_contexts, &peers.client_key, &peers.client_cipher_context,
                                     bytes[0], &part, 1, into);
        HOLDS(sealed > 0);
        tls_session_set_input(session, str_of(into, (size_t)sealed));
        (void)drain(session, false);
        tls_session_return_input(session);
        bytes += 2 + length;
        size -= 2 + length;
    }
}

static void send_first_records(struct tls_session *session)
{
    static const uint8_t data[] = {RECORD_APPLICATION_DATA, 1, 'x'};

    HOLDS(peers.key_taken && tls_session_has_key(session));
    for (int i = 0; i < FIRST_RECORDS; i++)
        forge(session, data, sizeof(data));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (!peers.context)
        set_up();
    if (size < 2)
        return 0;
    size_t fragment = bytes[1] ? bytes[1] : LENT;
    struct tls_session *session = tls_session_create(peers.context, &output, NULL);
    HOLDS(session);
    if (bytes[0] == 'r')
        push(session, bytes + 2, size - 2, fragment);
    else
        perform_handshake(session, bytes[0] == 'm' ? bytes + 2 : NULL, bytes[0] == 'm' ? size - 2 : 0, fragment);
    if (bytes[0] == 'k' || bytes[0] == 'c')
        send_first_records(session);
    if (bytes[0] == 'f' || bytes[0] == 'k')
        forge(session, bytes + 2, size - 2);
    else if (bytes[0] == 'c')
        push(session, bytes + 2, size - 2, fragment);
    tls_session_shutdown(session);
    tls_session_destroy(session);
    record_release(peers.cipher_contexts, &peers.cipher_context);
    record_release(peers.cipher_contexts, &peers.client_cipher_context);
    SSL_free(peers.client);
    peers.client = NULL;
    peers.key_taken = false;
    return 0;
}
