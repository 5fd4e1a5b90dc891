/*
 * Sequential connections: connect, handshake (full or resumed), one request, its response, close_notify. Several
 * sequences (struct sequence) run in parallel. An incomplete response ends the program with an error.
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
    uint64_t received;
    bool requested;
};

static void sequence_close(struct sequence *sequence)
{
    if (sequence->ssl) {
        SSL_shutdown(sequence->ssl);
        SSL_free(sequence->ssl);
    }
    close(sequence->fd);
}

/* Returns true once the handshake is complete and the request is sent. */
static bool sequence_handshake(struct blast *blast, struct sequence *sequence)
{
    int length = (int)strlen(blast->request);
    int result;

    if (sequence->requested)
        return true;
    if (sequence->ssl) {
        result = SSL_do_handshake(sequence->ssl);
        if (result != 1) {
            if (SSL_get_error(sequence->ssl, result) != SSL_ERROR_WANT_READ)
                fatal("handshake");
            return false;
        }
        blast->handshakes++;
        blast->resumed += (uint64_t)SSL_session_reused(sequence->ssl);
    }
    histogram_record(&blast->connect_time, monotonic_ns() - sequence->begin);
    if ((sequence->ssl ? SSL_write(sequence->ssl, blast->request, length)
                    : (int)send(sequence->fd, blast->request, (size_t)length, MSG_NOSIGNAL)) != length)
        fatal("sending a request");
    sequence->requested = true;
    return true;
}

static void sequence_open(struct blast *blast, struct sequence *sequence, unsigned source_index)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = sequence};

    *sequence = (struct sequence){.begin = monotonic_ns(), .fd = socket_connect(blast->options, source_index)};
    fcntl(sequence->fd, F_SETFL, O_NONBLOCK);
    if (blast->tls) {
        sequence->ssl = SSL_new(blast->tls);
        if (!sequence->ssl || SSL_set_fd(sequence->ssl, sequence->fd) != 1)
            fatal("memory");
        SSL_set_connect_state(sequence->ssl);
        if (blast->session && SSL_set_session(sequence->ssl, blast->session) != 1)
            fatal("the session");
    }
    if (epoll_ctl(blast->poll_fd, EPOLL_CTL_ADD, sequence->fd, &event) < 0)
        fatal("epoll_ctl");
    (void)sequence_handshake(blast, sequence);
}

/* Returns true when the response is complete. */
static bool sequence_receive(struct blast *blast, struct sequence *sequence)
{
    while (sequence->received < blast->response_length) {
        ssize_t got = sequence->ssl ? SSL_read(sequence->ssl, blast->scratch, SCRATCH_SIZE)
                                 : recv(sequence->fd, blast->scratch, SCRATCH_SIZE, 0);

        if (got > 0) {
            sequence->received += (uint64_t)got;
            continue;
        }
        if (sequence->ssl ? SSL_get_error(sequence->ssl, (int)got) != SSL_ERROR_WANT_READ : got == 0 || errno != EAGAIN)
            fatal("a response is incomplete");
        return false;
    }
    return true;
}

static void sequence_advance(struct blast *blast, struct sequence *sequence, unsigned *source_index)
{
    if (!sequence_handshake(blast, sequence) || !sequence_receive(blast, sequence))
        return;
    histogram_record(&blast->latency, monotonic_ns() - sequence->begin);
    blast->done.responses++;
    blast->done.bytes += sequence->received;
    sequence_close(sequence);
    if (blast->draining)
        sequence->fd = -1;
    else
        sequence_open(blast, sequence, ++*source_index);
}

/* Sends one request to get the response length and the session for resumption. */
static void first_response_read(struct blast *blast)
{
    struct connection first = {.fd = socket_connect(blast->options, 0)};

    if (blast->tls) {
        first.ssl = SSL_new(blast->tls);
        if (!first.ssl || SSL_set_fd(first.ssl, first.fd) != 1 || SSL_connect(first.ssl) != 1)
            fatal("handshake");
    }
    blast->response_length = response_read(blast, &first, blast->request);
    if (blast->options->resume && !blast->session) {
        blast->session = SSL_get1_session(first.ssl);
        if (!blast->session || !SSL_SESSION_is_resumable(blast->session))
            fatal("the server issued no resumable session");
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
    struct sequence *sequences = calloc(count, sizeof(*sequences));
    struct epoll_event events[EVENTS];
    unsigned source_index = 0;
    uint64_t begin;

    if (!sequences)
        fatal("memory");
    first_response_read(blast);
    blast->draining = false;
    begin = monotonic_ns();
    for (unsigned i = 0; i < count; i++)
        sequence_open(blast, &sequences[i], ++source_index);
    for (unsigned open = count; open > 0;) {
        int found = epoll_wait(blast->poll_fd, events, EVENTS, 100);

        blast->draining = monotonic_ns() - begin >= (uint64_t)(seconds * 1e9);
        for (int i = 0; i < found; i++) {
            struct sequence *sequence = events[i].data.ptr;

            sequence_advance(blast, sequence, &source_index);
            open -= sequence->fd < 0;
        }
    }
    free(sequences);
    return (double)(monotonic_ns() - begin) * 1e-9;
}
