/*
 * A connection under load: sends requests and counts the received bytes. The kernel discards payload (MSG_TRUNC, see
 * tcp(7)). Only record headers are copied, and responses so small that reading them costs less than discarding.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "blast.h"

enum { DROP_MIN = 4096, SMALL_READ = 16 * 1024, READS_AT_ONCE = 64, DROP_PLAIN = 4 << 20 };

void connection_send_request(struct blast *blast, struct connection *connection, uint64_t asked_at)
{
    size_t length = strlen(blast->request);
    ssize_t sent = connection->ssl ? SSL_write(connection->ssl, blast->request, (int)length)
                                   : send(connection->fd, blast->request, length, MSG_NOSIGNAL);

    if (sent != (ssize_t)length)
        fail("sending a request");
    connection->asked_at[(connection->oldest + connection->outstanding) % PIPELINE_MAX] = asked_at;
    connection->outstanding++;
}

static void body_verify(struct blast *blast, struct connection *connection)
{
    uint8_t digest[DIGEST_SIZE];

    EVP_DigestFinal_ex(connection->digest, digest, NULL);
    if (memcmp(digest, blast->body_digest, DIGEST_SIZE) != 0) {
        errno = 0;
        fail("the body of an answer is not the first one's");
    }
    blast->verified++;
}

/* Counts plaintext; returns the number of completed responses. */
static unsigned plaintext_count(struct blast *blast, struct connection *connection, uint64_t plain)
{
    unsigned over = 0;
    uint64_t moment = 0;

    blast->done.bytes += plain;
    connection->have += plain;
    while (connection->outstanding > 0 && connection->have >= blast->response_length) {
        moment = moment ? moment : now();
        histogram_record(&blast->latency, moment - connection->asked_at[connection->oldest]);
        connection->oldest = (connection->oldest + 1) % PIPELINE_MAX;
        connection->outstanding--;
        connection->have -= blast->response_length;
        over++;
    }
    if (connection->outstanding == 0 && connection->have > 0) {
        errno = 0;
        fail("an answer is longer than the first one");
    }
    blast->done.responses += over;
    return over;
}

/* Processes decrypted bytes: skips heads and hashes bodies. */
static unsigned plaintext_verify(struct blast *blast, struct connection *connection, const uint8_t *bytes,
                                 size_t length)
{
    unsigned over = 0;

    while (length > 0) {
        uint64_t end = connection->have < blast->head_length ? blast->head_length : blast->response_length;
        size_t step = length < end - connection->have ? length : (size_t)(end - connection->have);

        if (connection->have == 0)
            EVP_DigestInit_ex(connection->digest, EVP_sha256(), NULL);
        if (connection->have >= blast->head_length)
            EVP_DigestUpdate(connection->digest, bytes, step);
        if (connection->have + step == blast->response_length)
            body_verify(blast, connection);
        over += plaintext_count(blast, connection, step);
        bytes += step;
        length -= step;
    }
    return over;
}

static unsigned take_opened(struct blast *blast, struct connection *connection)
{
    unsigned over = 0;

    for (;;) {
        ssize_t got = connection->ssl ? SSL_read(connection->ssl, blast->scratch, SCRATCH_SIZE)
                                      : recv(connection->fd, blast->scratch, SCRATCH_SIZE, 0);

        if (got > 0) {
            over += plaintext_verify(blast, connection, blast->scratch, (size_t)got);
            continue;
        }
        if (connection->ssl ? SSL_get_error(connection->ssl, (int)got) != SSL_ERROR_WANT_READ
                            : got == 0 || errno != EAGAIN)
            fail("a connection ended");
        return over;
    }
}

/* Calls recv once. Returns the bytes received (0: none available); *out_whole: as many as requested. */
static size_t receive(struct connection *connection, void *into, size_t room, bool *out_whole)
{
    ssize_t got = recv(connection->fd, into, room, into ? 0 : MSG_TRUNC);

    if (got == 0 || (got < 0 && errno != EAGAIN))
        fail("a connection ended");
    *out_whole = got == (ssize_t)room;
    return got < 0 ? 0 : (size_t)got;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/*
 * One step over records: discards the rest of a long record, or reads its end and the next header, or small
 * responses.
 */
static size_t records_step(struct blast *blast, struct connection *connection, size_t most, bool *out_whole,
                           uint64_t *plain)
{
    struct record_parser *parser = &connection->parser;
    uint64_t awaited = connection->outstanding * blast->response_length - connection->have;
    size_t room = SMALL_READ;
    size_t got;

    if (parser->remaining >= DROP_MIN) {
        got = receive(connection, NULL, least(parser->remaining, most), out_whole);
        record_parser_skip(parser, got, plain);
        return got;
    }
    if (awaited > SMALL_READ)
        room = parser->remaining + RECORD_HEADER_SIZE - parser->header_received;
    got = receive(connection, blast->scratch, least(room, most), out_whole);
    if (!record_parser_feed(parser, blast->scratch, got, plain)) {
        errno = 0;
        fail("a record that is no application data");
    }
    return got;
}

unsigned connection_receive(struct blast *blast, struct connection *connection, size_t most)
{
    bool whole = true;
    unsigned over = 0;

    if (connection->digest)
        return take_opened(blast, connection);
    for (unsigned i = 0; i < READS_AT_ONCE && whole && most > 0 && connection->outstanding > 0; i++) {
        uint64_t plain = 0;
        size_t got;

        if (connection->ssl) {
            got = records_step(blast, connection, most, &whole, &plain);
        } else {
            got = receive(connection, NULL, least(DROP_PLAIN, most), &whole);
            plain = got;
        }
        over += plaintext_count(blast, connection, plain);
        most -= got;
    }
    return over;
}
