/*
 * Requests and responses of a connection under load. The kernel discards payload (MSG_TRUNC, see tcp(7)). Only record
 * headers are copied, and responses that cost less to copy than to discard.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "blast.h"

enum { DISCARD_MIN = 4096, SMALL_READ = 16 * 1024, READS_MAX = 64, DISCARD_PLAIN_MAX = 4 << 20 };

void connection_send_request(struct blast *blast, struct connection *connection, uint64_t due_at)
{
    size_t length = strlen(blast->request);
    ssize_t sent = connection->ssl ? SSL_write(connection->ssl, blast->request, (int)length)
                                   : send(connection->fd, blast->request, length, MSG_NOSIGNAL);

    if (sent != (ssize_t)length)
        fatal("sending a request");
    connection->due_at[(connection->first_outstanding + connection->outstanding) % PIPELINE_MAX] = due_at;
    connection->outstanding++;
}

static void body_verify(struct blast *blast, struct connection *connection)
{
    uint8_t digest[DIGEST_SIZE];

    EVP_DigestFinal_ex(connection->digest, digest, NULL);
    if (memcmp(digest, blast->body_digest, DIGEST_SIZE) != 0) {
        errno = 0;
        fatal("the body of a response differs from that of the first one");
    }
    blast->verified++;
}

/* Counts plaintext; returns the number of completed responses. */
static unsigned plaintext_count(struct blast *blast, struct connection *connection, uint64_t plain)
{
    unsigned completed = 0;
    uint64_t now = 0;

    blast->done.bytes += plain;
    connection->received += plain;
    while (connection->outstanding > 0 && connection->received >= blast->response_length) {
        now = now ? now : monotonic_ns();
        histogram_record(&blast->latency, now - connection->due_at[connection->first_outstanding]);
        connection->first_outstanding = (connection->first_outstanding + 1) % PIPELINE_MAX;
        connection->outstanding--;
        connection->received -= blast->response_length;
        completed++;
    }
    if (connection->outstanding == 0 && connection->received > 0) {
        errno = 0;
        fatal("a response is longer than the first one");
    }
    blast->done.responses += completed;
    return completed;
}

/* Processes decrypted bytes: skips heads and hashes bodies. */
static unsigned plaintext_verify(struct blast *blast, struct connection *connection, const uint8_t *bytes,
                                 size_t length)
{
    unsigned completed = 0;

    while (length > 0) {
        uint64_t end = connection->received < blast->head_length ? blast->head_length : blast->response_length;
        size_t step = length < end - connection->received ? length : (size_t)(end - connection->received);

        if (connection->received == 0)
            EVP_DigestInit_ex(connection->digest, EVP_sha256(), NULL);
        if (connection->received >= blast->head_length)
            EVP_DigestUpdate(connection->digest, bytes, step);
        if (connection->received + step == blast->response_length)
            body_verify(blast, connection);
        completed += plaintext_count(blast, connection, step);
        bytes += step;
        length -= step;
    }
    return completed;
}

static unsigned verified_receive(struct blast *blast, struct connection *connection)
{
    unsigned completed = 0;

    for (;;) {
        ssize_t got = connection->ssl ? SSL_read(connection->ssl, blast->scratch, SCRATCH_SIZE)
                                      : recv(connection->fd, blast->scratch, SCRATCH_SIZE, 0);

        if (got > 0) {
            completed += plaintext_verify(blast, connection, blast->scratch, (size_t)got);
            continue;
        }
        if (connection->ssl ? SSL_get_error(connection->ssl, (int)got) != SSL_ERROR_WANT_READ
                            : got == 0 || errno != EAGAIN)
            fatal("a connection ended");
        return completed;
    }
}

/* Calls recv once. Returns the number of received bytes; 0: none available. *out_filled: `room` bytes were received. */
static size_t receive(struct connection *connection, void *into, size_t room, bool *out_filled)
{
    ssize_t got = recv(connection->fd, into, room, into ? 0 : MSG_TRUNC);

    if (got == 0 || (got < 0 && errno != EAGAIN))
        fatal("a connection ended");
    *out_filled = got == (ssize_t)room;
    return got < 0 ? 0 : (size_t)got;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/*
 * Reads once: discards the payload of a long record, or copies the end of a record with the next header, or copies
 * small responses.
 */
static size_t records_receive(struct blast *blast, struct connection *connection, size_t limit, bool *out_filled,
                           uint64_t *plain)
{
    struct record_parser *parser = &connection->parser;
    uint64_t awaited = connection->outstanding * blast->response_length - connection->received;
    size_t room = SMALL_READ;
    size_t got;

    if (parser->remaining >= DISCARD_MIN) {
        got = receive(connection, NULL, smaller(parser->remaining, limit), out_filled);
        record_parser_skip(parser, got, plain);
        return got;
    }
    if (awaited > SMALL_READ)
        room = parser->remaining + RECORD_HEADER_SIZE - parser->header_received;
    got = receive(connection, blast->scratch, smaller(room, limit), out_filled);
    if (!record_parser_feed(parser, blast->scratch, got, plain)) {
        errno = 0;
        fatal("a record does not contain application data");
    }
    return got;
}

unsigned connection_receive(struct blast *blast, struct connection *connection, size_t limit)
{
    bool filled = true;
    unsigned completed = 0;

    if (connection->digest)
        return verified_receive(blast, connection);
    for (unsigned i = 0; i < READS_MAX && filled && limit > 0 && connection->outstanding > 0; i++) {
        uint64_t plain = 0;
        size_t got;

        if (connection->ssl) {
            got = records_receive(blast, connection, limit, &filled, &plain);
        } else {
            got = receive(connection, NULL, smaller(DISCARD_PLAIN_MAX, limit), &filled);
            plain = got;
        }
        completed += plaintext_count(blast, connection, plain);
        limit -= got;
    }
    return completed;
}
