/*
 * A TLS client in memory: the caller passes bytes between it and the socket. Unlike an OpenSSL client, it divides its
 * output into records of a given size.
 */
#ifndef TEST_COMPLEXITY_TLS_CLIENT_H
#define TEST_COMPLEXITY_TLS_CLIENT_H

#include "base/buffer.h"

#include <stdbool.h>

struct tls_client;

/*
 * The ClientHello has an extension of `padding` bytes and is sent in records of `hello_record` bytes; 0: as OpenSSL
 * divides it. The request is sent after the handshake in records of `record` bytes.
 */
struct tls_client *tls_client_create(size_t padding, size_t hello_record, struct str request, size_t record);
void tls_client_destroy(struct tls_client *client);
/* Consumes received bytes. Appends their plaintext to `plain`, and the bytes to be sent now to `to_send`. */
void tls_client_advance(struct tls_client *client, struct str received, struct buffer *plain, struct buffer *to_send);

#endif
