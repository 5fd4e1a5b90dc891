/*
 * Client sockets and the client TLS context.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "blast.h"

#define SUITES_12 "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256"

enum { SOURCE_ADDRESSES = 100, SLOW_BUFFER = 32 * 1024, TIMEOUT_SECONDS = 60 };

/*
 * Rotates through 127.0.0.1 to 127.0.0.100: each address has its own ports, and closed connections keep theirs for a
 * minute (TIME_WAIT).
 */
static void source_address_bind(int fd, const struct options *options, unsigned source_index)
{
    struct sockaddr_in source = {.sin_family = AF_INET};
    int on = 1;

    if (strncmp(options->address, "127.", 4) != 0)
        return;
    source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + source_index % SOURCE_ADDRESSES);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&source, sizeof(source)) < 0)
        fatal("bind");
}

int socket_connect(const struct options *options, unsigned source_index)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(options->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval timeout = {.tv_sec = TIMEOUT_SECONDS};     /* for a server that stopped accepting */
    int on = 1;
    int buffer = SLOW_BUFFER;

    if (fd < 0 || inet_pton(AF_INET, options->address, &address.sin_addr) != 1)
        fatal("socket");
    source_address_bind(fd, options, source_index);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    if (options->slow > 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        fatal("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

SSL_CTX *tls_context_create(const struct options *options)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    int version = options->tls12 ? TLS1_2_VERSION : TLS1_3_VERSION;
    const char *suite = options->suite;

    if (!tls)
        fatal("TLS");
    SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_min_proto_version(tls, version);
    SSL_CTX_set_max_proto_version(tls, version);
    if (options->tls12) {
        if (SSL_CTX_set_cipher_list(tls, suite ? suite : SUITES_12) != 1)
            fatal("the cipher suite");
    } else if (SSL_CTX_set_ciphersuites(tls, suite ? suite : "TLS_AES_128_GCM_SHA256") != 1) {
        fatal("the cipher suite");
    }
    return tls;
}
