/* The client of the kit: OpenSSL or plain bytes. */
#include "kit.h"

#include <check.h>
#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <unistd.h>

static long tap(BIO *bio, int operation, const char *bytes, size_t size, int number, long argument, int result,
                size_t *count)
{
    struct kit *kit = (void *)BIO_get_callback_arg(bio);

    if (operation == (BIO_CB_READ | BIO_CB_RETURN) && result > 0) {
        kit->tapped = realloc(kit->tapped, kit->tapped_length + *count);
        memcpy(kit->tapped + kit->tapped_length, bytes, *count);
        kit->tapped_length += *count;
    }
    return result;
}

void kit_client_open(struct kit *kit)
{
    kit->client_openssl = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(kit->client_openssl, kit->transport->version);
    SSL_CTX_set_max_proto_version(kit->client_openssl, kit->transport->version);
    if (kit->transport->version == TLS1_3_VERSION)
        ck_assert_int_eq(SSL_CTX_set_ciphersuites(kit->client_openssl, kit->transport->cipher), 1);
    else
        ck_assert_int_eq(SSL_CTX_set_cipher_list(kit->client_openssl, kit->transport->cipher), 1);
    kit->client = SSL_new(kit->client_openssl);
    SSL_set_fd(kit->client, kit->client_fd);
    BIO_set_callback_ex(SSL_get_rbio(kit->client), tap);
    BIO_set_callback_arg(SSL_get_rbio(kit->client), (char *)kit);
    SSL_set_connect_state(kit->client);
}

void kit_client_close(struct kit *kit)
{
    SSL_free(kit->client);
    SSL_CTX_free(kit->client_openssl);
    if (kit->client_fd >= 0)
        close(kit->client_fd);
    free(kit->got);
    free(kit->tapped);
}

unsigned kit_nonces(const struct kit *kit, uint64_t *out_last)
{
    const uint8_t *wire = (const uint8_t *)kit->tapped;
    unsigned count = 0;
    bool sealed = false;

    for (size_t at = 0, length; at + 5 <= kit->tapped_length; at += 5 + length) {
        uint64_t nonce = 0;

        length = (size_t)wire[at + 3] << 8 | wire[at + 4];
        for (int i = 0; i < 8 && sealed; i++)
            nonce = nonce << 8 | wire[at + 5 + (size_t)i];
        if (sealed && count++)
            ck_assert_uint_eq(nonce, *out_last + 1);
        if (sealed)
            *out_last = nonce;
        sealed = sealed || wire[at] == 20;
    }
    return count;
}

void kit_stop_client_tls(struct kit *kit)
{
    SSL_free(kit->client);
    SSL_CTX_free(kit->client_openssl);
    kit->client = NULL;
    kit->client_openssl = NULL;
    kit->got_length = 0;
}

void kit_client_send(struct kit *kit, const char *text)
{
    size_t length = strlen(text);

    kit_until_open(kit);
    if (kit->client)
        ck_assert_int_eq(SSL_write(kit->client, text, (int)length), (int)length);
    else
        ck_assert_int_eq(send(kit->client_fd, text, length, MSG_NOSIGNAL), (ssize_t)length);
}

static ssize_t client_read(struct kit *kit, char *into, size_t size)
{
    ssize_t count;

    if (!kit->client || kit->raw) {
        count = recv(kit->client_fd, into, size, 0);
        kit->got_end |= count == 0;
        kit->got_reset |= count < 0 && errno == ECONNRESET;
        return count;
    }
    count = SSL_read(kit->client, into, (int)size);
    if (count > 0)
        return count;
    switch (SSL_get_error(kit->client, (int)count)) {
    case SSL_ERROR_ZERO_RETURN:
        kit->got_close_notify = true;
        break;
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        break;
    default:
        if (getenv("KIT_VERBOSE"))
            ERR_print_errors_fp(stderr);
        kit->got_end = true;
        kit->got_reset |= errno == ECONNRESET;
        ERR_clear_error();
        break;
    }
    return -1;
}

void kit_client_turn(struct kit *kit)
{
    size_t bytes_read = 0;

    if (kit->client_fd < 0 || kit->got_end || kit->got_close_notify)
        return;
    if (!kit->client_connected) {
        kit->client_connected = SSL_do_handshake(kit->client) == 1;
        ERR_clear_error();
        return;
    }
    while (!kit->read_max || bytes_read < kit->read_max) {
        size_t size = kit->read_max ? kit->read_max - bytes_read : 65536;
        ssize_t count;

        if (kit->got_capacity - kit->got_length < size) {
            kit->got_capacity = (kit->got_capacity + size) * 2;
            kit->got = realloc(kit->got, kit->got_capacity);
        }
        count = client_read(kit, kit->got + kit->got_length, size);
        if (count <= 0)
            return;
        kit->got_length += (size_t)count;
        bytes_read += (size_t)count;
    }
}
