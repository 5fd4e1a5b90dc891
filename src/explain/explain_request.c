/*
 * The client: one request over a blocking socket, plain or over TLS. It waits only for the first byte of the
 * response, since the worker prints the explanation.
 */
#include "explain/explain.h"

#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define TIMEOUT_S 30

static int request_make(const struct explain_url *url, struct buffer *out)
{
    return buffer_printf(out,
                         "GET %s" STR_FMT " HTTP/1.1\r\nHost: " STR_FMT
                         "\r\nUser-Agent: sluice-explain\r\nAccept: */*\r\n"
                         "Connection: close\r\n\r\n",
                         str_starts(url->target, STR("/")) ? "" : "/", STR_ARG(url->target),
                         STR_ARG(url->authority.length ? url->authority : STR("localhost")));
}

static bool request_over_tls(int fd, const struct explain_url *url, struct str request)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = context ? SSL_new(context) : NULL;
    char name[256] = "";
    char byte;
    bool good;

    if (url->host.length < sizeof(name) && url->host.length)
        memcpy(name, url->host.data, url->host.length);
    good = ssl && SSL_set_fd(ssl, fd) == 1 && (!name[0] || SSL_set_tlsext_host_name(ssl, name) == 1) &&
           SSL_connect(ssl) == 1 && SSL_write(ssl, request.data, (int)request.length) > 0;
    if (good && SSL_read(ssl, &byte, 1) <= 0)
        (void)SSL_get_error(ssl, 0); /* closed without a response: the worker prints the reason */
    SSL_free(ssl);
    SSL_CTX_free(context);
    return good;
}

static bool request_plain(int fd, struct str request)
{
    char byte;

    return send(fd, request.data, request.length, MSG_NOSIGNAL) == (ssize_t)request.length &&
           recv(fd, &byte, 1, 0) >= 0;
}

bool explain_request(int fd, const struct explain_url *url, bool tls)
{
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};
    struct buffer request = {0};
    bool good = request_make(url, &request) == 0;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    if (good)
        good = tls ? request_over_tls(fd, url, buffer_str(&request)) : request_plain(fd, buffer_str(&request));
    buffer_finish(&request);
    close(fd);
    return good;
}
