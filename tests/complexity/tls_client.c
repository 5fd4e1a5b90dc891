#include "tls_client.h"

#include <check.h>
#include <openssl/ssl.h>

enum { PADDING = 0x7777, PADDING_MAX = 65535 };

struct tls_client {
    SSL_CTX *context;
    SSL *ssl;
    BIO *in, *out;
    size_t hello_record, record;
    struct str request;             /* the unsent rest */
    size_t padding;
    bool hello_sent;
};

static void append_bytes(struct buffer *into, const char *bytes, size_t length)
{
    if (buffer_append(into, str_of(bytes, length)) < 0)
        ck_abort_msg("out of memory");
}

static int add_padding(SSL *ssl, unsigned type, unsigned context, const unsigned char **out, size_t *out_length,
                       X509 *certificate, size_t index, int *alert, void *owner)
{
    static const unsigned char zeros[PADDING_MAX];
    const struct tls_client *client = owner;

    *out = zeros;
    *out_length = client->padding;
    return client->padding > 0;
}

struct tls_client *tls_client_create(size_t padding, size_t hello_record, struct str request, size_t record)
{
    struct tls_client *client = calloc(1, sizeof(*client));

    ck_assert_ptr_nonnull(client);
    ck_assert_uint_le(padding, PADDING_MAX);
    *client = (struct tls_client){.hello_record = hello_record, .record = record, .request = request,
                                  .padding = padding};
    client->context = SSL_CTX_new(TLS_client_method());
    client->in = BIO_new(BIO_s_mem());
    client->out = BIO_new(BIO_s_mem());
    ck_assert_int_eq(SSL_CTX_add_custom_ext(client->context, PADDING, SSL_EXT_CLIENT_HELLO, add_padding, NULL, client,
                                            NULL, NULL), 1);
    client->ssl = SSL_new(client->context);
    ck_assert_ptr_nonnull(client->ssl);
    SSL_set_bio(client->ssl, client->in, client->out);
    SSL_set_connect_state(client->ssl);
    return client;
}

void tls_client_destroy(struct tls_client *client)
{
    if (!client)
        return;
    SSL_free(client->ssl);
    SSL_CTX_free(client->context);
    free(client);
}

/* Divides the handshake bytes into records of `size` bytes; the transcript hash does not cover record headers. */
static void split_records(struct str records, size_t size, struct buffer *into)
{
    while (records.length >= 5) {
        size_t length = (size_t)(unsigned char)records.data[3] << 8 | (unsigned char)records.data[4];

        for (size_t at = 0; at < length; at += size) {
            size_t part = length - at < size ? length - at : size;

            append_bytes(into, records.data, 3);
            append_bytes(into, (char[]){(char)(part >> 8), (char)part}, 2);
            append_bytes(into, records.data + 5 + at, part);
        }
        records = str_skip(records, 5 + length);
    }
}

static void move_output(struct tls_client *client, struct buffer *to_send)
{
    char *bytes;
    long length = BIO_get_mem_data(client->out, &bytes);

    if (length <= 0)
        return;
    if (!client->hello_sent && client->hello_record)
        split_records(str_of(bytes, (size_t)length), client->hello_record, to_send);
    else
        append_bytes(to_send, bytes, (size_t)length);
    client->hello_sent = true;
    (void)BIO_reset(client->out);
}

static void send_request(struct tls_client *client)
{
    while (client->request.length > 0) {
        struct str piece = str_slice(client->request, 0, client->record);
        size_t written;

        ck_assert_int_eq(SSL_write_ex(client->ssl, piece.data, piece.length, &written), 1);
        client->request = str_skip(client->request, written);
    }
}

void tls_client_advance(struct tls_client *client, struct str received, struct buffer *plain, struct buffer *to_send)
{
    char bytes[16384];
    size_t length;

    if (received.length > 0)
        ck_assert_int_eq(BIO_write(client->in, received.data, (int)received.length), (int)received.length);
    if (SSL_do_handshake(client->ssl) == 1) {
        send_request(client);
        while (SSL_read_ex(client->ssl, bytes, sizeof(bytes), &length) == 1)
            append_bytes(plain, bytes, length);
    }
    move_output(client, to_send);
}
