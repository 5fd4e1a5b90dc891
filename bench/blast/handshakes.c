/*
 * Sequential connections: connect, handshake (full or resumed), one request, its response, an orderly close. Several
 * sequences (struct sequence) run in parallel. A connection without a complete response ends the program with an error.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "blast.h"

enum { EVENTS = 256 };

struct sequence {
    int fd;
    SSL *ssl;
    uint64_t begin;
    uint64_t have;
    bool requested;
};

static void place_close(struct sequence *sequence)
{
    if (sequence->ssl) {
        SSL_shutdown(sequence->ssl);
        SSL_free(sequence->ssl);
    }
    close(sequence->fd);
}

/* Returns true once the handshake is complete and the request is sent. */
static bool place_shake(struct blast *blast, struct sequence *sequence)
{
    int length = (int)strlen(blast->request);
    int result;

    if (sequence->requested)
        return true;
    if (sequence->ssl) {
        result = SSL_do_handshake(sequence->ssl);
        if (result != 1) {
            if (SSL_get_error(sequence->ssl, result) != SSL_ERROR_WANT_READ)
                fail("handshake");
            return false;
        }
        blast->handshakes++;
        blast->resumed += (uint64_t)SSL_session_reused(sequence->ssl);
    }
    histogram_record(&blast->opening, now() - sequence->begin);
    if ((sequence->ssl ? SSL_write(sequence->ssl, blast->request, length)
                    : (int)send(sequence->fd, blast->request, (size_t)length, MSG_NOSIGNAL)) != length)
        fail("sending a request");
    sequence->requested = true;
    return true;
}

static void place_open(struct blast *blast, struct sequence *sequence, unsigned turn)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = sequence};

    *sequence = (struct sequence){.begin = now(), .fd = connection_dial(blast->options, turn)};
    fcntl(sequence->fd, F_SETFL, O_NONBLOCK);
    if (blast->tls) {
        sequence->ssl = SSL_new(blast->tls);
        if (!sequence->ssl || SSL_set_fd(sequence->ssl, sequence->fd) != 1)
            fail("memory");
        SSL_set_connect_state(sequence->ssl);
        if (blast->session && SSL_set_session(sequence->ssl, blast->session) != 1)
            fail("the session");
    }
    if (epoll_ctl(blast->poll_fd, EPOLL_CTL_ADD, sequence->fd, &event) < 0)
        fail("epoll_ctl");
    (void)place_shake(blast, sequence);
}

/* Returns true when the response is complete. */
static bool place_read(struct blast *blast, struct sequence *sequence)
{
    while (sequence->have < blast->response_length) {
        ssize_t got = sequence->ssl ? SSL_read(sequence->ssl, blast->scratch, SCRATCH_SIZE)
                                 : recv(sequence->fd, blast->scratch, SCRATCH_SIZE, 0);

        if (got > 0) {
            sequence->have += (uint64_t)got;
            continue;
        }
        if (sequence->ssl ? SSL_get_error(sequence->ssl, (int)got) != SSL_ERROR_WANT_READ : got == 0 || errno != EAGAIN)
            fail("a response is incomplete");
        return false;
    }
    return true;
}

static void place_advance(struct blast *blast, struct sequence *sequence, unsigned *turn)
{
    if (!place_shake(blast, sequence) || !place_read(blast, sequence))
        return;
    histogram_record(&blast->latency, now() - sequence->begin);
    blast->done.responses++;
    blast->done.bytes += sequence->have;
    place_close(sequence);
    if (blast->closing)
        sequence->fd = -1;
    else
        place_open(blast, sequence, ++*turn);
}

/* Sends one request, to learn the response length and to get the session for resumption. */
static void prepare(struct blast *blast)
{
    struct connection first = {.fd = connection_dial(blast->options, 0)};

    if (blast->tls) {
        first.ssl = SSL_new(blast->tls);
        if (!first.ssl || SSL_set_fd(first.ssl, first.fd) != 1 || SSL_connect(first.ssl) != 1)
            fail("handshake");
    }
    blast->response_length = response_read(blast, &first, blast->request);
    if (blast->options->resume && !blast->session) {
        blast->session = SSL_get1_session(first.ssl);
        if (!blast->session || !SSL_SESSION_is_resumable(blast->session))
            fail("the server issued no resumable session");
    }
    if (first.ssl) {
        SSL_shutdown(first.ssl);
        SSL_free(first.ssl);
    }
    close(first.fd);
}

double run_handshakes(struct blast *blast, double seconds)
{
    unsigned count = blast->options->connections;
    struct sequence *places = calloc(count, sizeof(*places));
    struct epoll_event events[EVENTS];
    unsigned turn = 0;
    uint64_t begin;

    if (!places)
        fail("memory");
    prepare(blast);
    blast->closing = false;
    begin = now();
    for (unsigned i = 0; i < count; i++)
        place_open(blast, &places[i], ++turn);
    for (unsigned open = count; open > 0;) {
        int found = epoll_wait(blast->poll_fd, events, EVENTS, 100);

        blast->closing = now() - begin >= (uint64_t)(seconds * 1e9);
        for (int i = 0; i < found; i++) {
            struct sequence *sequence = events[i].data.ptr;

            place_advance(blast, sequence, &turn);
            open -= sequence->fd < 0;
        }
    }
    free(places);
    return (double)(now() - begin) * 1e-9;
}
