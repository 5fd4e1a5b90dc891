/*
 * Loopback connections for the probe and the measurement of kTLS.
 */
#include "tls/tcp_pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

void tcp_pair_close(struct tcp_pair *pair)
{
    const struct linger reset = {.l_onoff = 1};

    if (pair->local >= 0) {
        (void)setsockopt(pair->local, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(pair->local);
    }
    if (pair->peer >= 0)
        close(pair->peer);
}

int tcp_pair_open(struct tcp_pair *out_pair)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr *where = (struct sockaddr *)&address;
    socklen_t length = sizeof(address);
    struct tcp_pair pair = {-1, -1};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = listener >= 0 && bind(listener, where, length) == 0 && listen(listener, 1) == 0 &&
                getsockname(listener, where, &length) == 0 &&
                (pair.local = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0 &&
                connect(pair.local, where, length) == 0 &&
                (pair.peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;
    int error = good ? 0 : -errno;

    if (listener >= 0)
        close(listener);
    if (good)
        *out_pair = pair;
    else
        tcp_pair_close(&pair);
    return error;
}
