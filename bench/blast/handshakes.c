/*
 * Sequential connections: connect, handshake (full or resumed), one request, its response, an orderly close. Several
 * sequences (struct place) run in parallel. A connection without a complete response ends the program with an error.
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

struct place {
    int fd;
    SSL *ssl;
    uint64_t begin;
    uint64_t have;
    bool requested;
};

static void place_close(struct place *place)
{
    if (place->ssl) {
        SSL_shutdown(place->ssl);
        SSL_free(place->ssl);
    }
    close(place->fd);
}

/* Returns true once the handshake is complete and the request is sent. */
static bool place_shake(struct blast *blast, struct place *place)
{
    int length = (int)strlen(blast->request);
    int result;

    if (place->requested)
        return true;
    if (place->ssl) {
        result = SSL_do_handshake(place->ssl);
        if (result != 1) {
            if (SSL_get_error(place->ssl, result) != SSL_ERROR_WANT_READ)
                fail("handshake");
            return false;
        }
        blast->handshakes++;
        blast->resumed += (uint64_t)SSL_session_reused(place->ssl);
    }
    histogram_record(&blast->opening, now() - place->begin);
    if ((place->ssl ? SSL_write(place->ssl, blast->request, length)
                    : (int)send(place->fd, blast->request, (size_t)length, MSG_NOSIGNAL)) != length)
        fail("sending a request");
    place->requested = true;
    return true;
}

static void place_open(struct blast *blast, struct place *place, unsigned turn)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = place};

    *place = (struct place){.begin = now(), .fd = dial(blast->options, turn)};
    fcntl(place->fd, F_SETFL, O_NONBLOCK);
    if (blast->tls) {
        place->ssl = SSL_new(blast->tls);
        if (!place->ssl || SSL_set_fd(place->ssl, place->fd) != 1)
            fail("memory");
        SSL_set_connect_state(place->ssl);
        if (blast->session && SSL_set_session(place->ssl, blast->session) != 1)
            fail("the session");
    }
    if (epoll_ctl(blast->poll_fd, EPOLL_CTL_ADD, place->fd, &event) < 0)
        fail("epoll_ctl");
    (void)place_shake(blast, place);
}

/* Returns true when the response is complete. */
static bool place_read(struct blast *blast, struct place *place)
{
    while (place->have < blast->answer_length) {
        ssize_t got = place->ssl ? SSL_read(place->ssl, blast->scratch, SCRATCH_SIZE)
                                 : recv(place->fd, blast->scratch, SCRATCH_SIZE, 0);

        if (got > 0) {
            place->have += (uint64_t)got;
            continue;
        }
        if (place->ssl ? SSL_get_error(place->ssl, (int)got) != SSL_ERROR_WANT_READ : got == 0 || errno != EAGAIN)
            fail("an answer did not come whole");
        return false;
    }
    return true;
}

static void place_advance(struct blast *blast, struct place *place, unsigned *turn)
{
    if (!place_shake(blast, place) || !place_read(blast, place))
        return;
    histogram_record(&blast->latency, now() - place->begin);
    blast->done.answers++;
    blast->done.bytes += place->have;
    place_close(place);
    if (blast->closing)
        place->fd = -1;
    else
        place_open(blast, place, ++*turn);
}

/* Sends one request, to learn the response length and to get the session for resumption. */
static void prepare(struct blast *blast)
{
    struct connection first = {.fd = dial(blast->options, 0)};

    if (blast->tls) {
        first.ssl = SSL_new(blast->tls);
        if (!first.ssl || SSL_set_fd(first.ssl, first.fd) != 1 || SSL_connect(first.ssl) != 1)
            fail("handshake");
    }
    blast->answer_length = answer_open(blast, &first, blast->request);
    if (blast->options->resume && !blast->session) {
        blast->session = SSL_get1_session(first.ssl);
        if (!blast->session || !SSL_SESSION_is_resumable(blast->session))
            fail("the server gave no session");
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
    struct place *places = calloc(count, sizeof(*places));
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
            struct place *place = events[i].data.ptr;

            place_advance(blast, place, &turn);
            open -= place->fd < 0;
        }
    }
    free(places);
    return (double)(now() - begin) * 1e-9;
}
