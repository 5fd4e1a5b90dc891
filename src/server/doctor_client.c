/*
 * The client of the doctor's trial: plain OpenSSL on a blocking socket, in a process
 * of its own, which trusts nothing of ours: it decrypts and compares.
 */
#include "server/doctor_client.h"

#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

unsigned char doctor_pattern(uint64_t at)
{
    return (unsigned char)(at * 131 + (at >> 8) * 31 + (at >> 16));
}

static enum doctor_client_end receive(SSL *ssl, uint64_t expected)
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
    return SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN ? DOCTOR_CLIENT_WHOLE : DOCTOR_CLIENT_CUT;
}

enum doctor_client_end doctor_client_run(int fd, const char *suite, uint64_t expected)
{
    const struct timeval patience = {.tv_sec = 10};
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = context ? SSL_new(context) : NULL;
    enum doctor_client_end end = DOCTOR_CLIENT_NO_HANDSHAKE;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (ssl && SSL_set_min_proto_version(ssl, TLS1_3_VERSION) == 1 && SSL_set_ciphersuites(ssl, suite) == 1 &&
        SSL_set_fd(ssl, fd) == 1 && SSL_connect(ssl) == 1) {
        end = receive(ssl, expected);
        SSL_shutdown(ssl);
    }
    SSL_free(ssl);
    SSL_CTX_free(context);
    close(fd);
    return end;
}
