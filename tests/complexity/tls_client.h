/*
 * A TLS client in memory: what it has to send and what it received are bytes, which the caller carries. It chooses
 * the sizes of its records, which the server can not.
 */
#ifndef TEST_COMPLEXITY_TLS_CLIENT_H
#define TEST_COMPLEXITY_TLS_CLIENT_H

#include "base/buffer.h"

#include <stdbool.h>

struct tls_client;

/*
 * The ClientHello has a padding of `padding` bytes, and leaves in records of `hello_record` bytes; 0: as OpenSSL
 * sends it. The request's bytes leave after the handshake in records of `record` bytes.
 */
struct tls_client *tls_client_create(size_t padding, size_t hello_record, struct str request, size_t record);
void tls_client_destroy(struct tls_client *client);
/* Takes received bytes (empty: none), appends what they decrypt to, and what is to be sent now. */
void tls_client_advance(struct tls_client *client, struct str received, struct buffer *plain, struct buffer *to_send);

#endif
