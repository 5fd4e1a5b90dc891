/*
 * The client of the self-test: OpenSSL on a blocking socket in a process of its own, which shares no TLS code with
 * the server; it decrypts and compares.
 */
#include "doctor/doctor_client.h"

#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

unsigned char doctor_pattern(uint64_t at)
{
    return (unsigned char)(at * 131 + (at >> 8) * 31 + (at >> 16));
}

static enum doctor_client_end receive_file(SSL *ssl, uint64_t expected)
{
    unsigned char bytes[16384];
    uint64_t at = 0;
    int got;

    while ((got = SSL_read(ssl, bytes, sizeof(bytes))) > 0) {
        for (int i = 0; i < got; i++, at++) {
            if (at >= expected || bytes[i] != doctor_pattern(at))
                return DOCTOR_CLIENT_WRONG;
        }
    }
    if (at != expected)
        return DOCTOR_CLIENT_SHORT;
    return SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN ? DOCTOR_CLIENT_COMPLETE : DOCTOR_CLIENT_NO_CLOSE_NOTIFY;
}

static bool allow_only(SSL *ssl, const struct suite *suite)
{
    int version = suite->version ? TLS1_3_VERSION : TLS1_2_VERSION;

    if (SSL_set_min_proto_version(ssl, version) != 1 || SSL_set_max_proto_version(ssl, version) != 1)
        return false;
    return (suite->version ? SSL_set_ciphersuites(ssl, suite->openssl)
                           : SSL_set_cipher_list(ssl, suite->openssl)) == 1;
}

enum doctor_client_end doctor_client_run(int fd, const struct suite *suite, uint64_t expected)
{
    const struct timeval timeout = {.tv_sec = 10};
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = context ? SSL_new(context) : NULL;
    enum doctor_client_end end = DOCTOR_CLIENT_NO_HANDSHAKE;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    if (ssl && allow_only(ssl, suite) && SSL_set_fd(ssl, fd) == 1 && SSL_connect(ssl) == 1) {
        end = receive_file(ssl, expected);
        SSL_shutdown(ssl);
    }
    SSL_free(ssl);
    SSL_CTX_free(context);
    close(fd);
    return end;
}
