#include "http/protocol.h"

#include "session_rows.h"
#include "suite.h"

#include <errno.h>
#include <stdio.h>

static const struct sequence {
    const char *sent;
    const char *received;
    int result; /* of the last produce: -EAGAIN if the connection persists, 0 if it ends */
} sequences[] = {
    /* Responses. */
    {"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n", HELLO, -EAGAIN},
    {"GET /other HTTP/1.1\r\nHost: a\r\n\r\n",
     "HTTP/1.1 404 Not Found\r\n" DATED "Content-Length: 1\r\n\r\n?", -EAGAIN},
    {"\r\n\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n", HELLO, -EAGAIN},
    {"GET http://b/hello HTTP/1.1\r\nHost: a\r\n\r\n", HELLO, -EAGAIN},
    {"GET /type HTTP/1.1\r\nHost: a\r\n\r\n",
     "HTTP/1.1 200 OK\r\n" DATED "Content-Type: text/plain\r\nContent-Length: 1\r\n\r\nx", -EAGAIN},
    {"GET /own HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nDate: mine\r\nContent-Length: 1\r\n\r\nx",
     -EAGAIN},
    {"GET /framing HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 1\r\n\r\nx",
     -EAGAIN},
    {"GET /none HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 204 No Content\r\n" DATED "\r\n", -EAGAIN},
    {"GET /same HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 304 Not Modified\r\n" DATED "ETag: \"a\"\r\n\r\n",
     -EAGAIN},
    {"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 0\r\n\r\n",
     -EAGAIN},
    {"HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 5\r\n\r\n",
     -EAGAIN},
    {"HEAD /chunked HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n" DATED "\r\n", -EAGAIN},
    {"HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /bye HTTP/1.1\r\nHost: a\r\n\r\n",
     "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 5\r\n\r\n" BYE, -EAGAIN},
    {"GET /chunked HTTP/1.1\r\nHost: a\r\n\r\n",
     "HTTP/1.1 200 OK\r\n" DATED "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", -EAGAIN},
    {"GET /trailers HTTP/1.1\r\nHost: a\r\n\r\n",
     "HTTP/1.1 200 OK\r\n" DATED "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nDigest: x\r\n\r\n",
     -EAGAIN},
    {"GET /hints HTTP/1.1\r\nHost: a\r\n\r\n",
     "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n" DATED "Content-Length: 1\r\n\r\nx",
     -EAGAIN},
    {"GET /hints HTTP/1.0\r\n\r\n",
     "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 1\r\nConnection: close\r\n\r\nx", 0},
    {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 404 Not Found\r\n" DATED "Content-Length: 1\r\n\r\n?",
     -EAGAIN},
    /* Invalid responses of modules: the session changes them or sends a 500. */
    {"GET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
     "HTTP/1.1 200 OK\r\n" DATED "X: a  Set-Cookie: b\r\nContent-Length: 4\r\n\r\nevil", -EAGAIN},
    {"GET /evilname HTTP/1.1\r\nHost: a\r\n\r\n",
     "HTTP/1.1 500 Internal Server Error\r\n" DATED "Content-Length: 0\r\n\r\n", -EAGAIN},
    {"GET /nostatus HTTP/1.1\r\nHost: a\r\n\r\n",
     "HTTP/1.1 500 Internal Server Error\r\n" DATED "Content-Length: 0\r\n\r\n", -EAGAIN},
    /* The connection ends if a body fails or does not have its declared length. */
    {"GET /broken HTTP/1.1\r\nHost: a\r\n\r\n",
     "HTTP/1.1 200 OK\r\n" DATED "Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n", -EIO},
    {"GET /short HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 5\r\n\r\npart",
     -EPROTO},
    {"GET /long HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 3\r\n\r\n",
     -EPROTO},
    /* Keep-alive. */
    {"GET /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /bye HTTP/1.1\r\nHost: a\r\n\r\nGET /hello HTTP/1.1\r\nHost: "
     "a\r\n\r\n",
     HELLO BYE HELLO, -EAGAIN},
    {"GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /bye HTTP/1.1\r\nHost: a\r\n\r\n",
     "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 5\r\nConnection: close\r\n\r\nhello", 0},
    {"GET /hello HTTP/1.1\r\nHost: a\r\nConnection: x, CLOSE\r\n\r\n",
     "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 5\r\nConnection: close\r\n\r\nhello", 0},
    {"GET /hello HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: h2c\r\n\r\n", HELLO,
     -EAGAIN},
    {"GET /hello HTTP/1.0\r\n\r\n",
     "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 5\r\nConnection: close\r\n\r\nhello", 0},
    {"GET /hello HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
     "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 5\r\nConnection: keep-alive\r\n\r\nhello", -EAGAIN},
    {"GET /chunked HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
     "HTTP/1.1 200 OK\r\n" DATED "Connection: close\r\n\r\nhello", 0},
    {"GET /close HTTP/1.1\r\nHost: a\r\n\r\n",
     "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 1\r\nConnection: close\r\n\r\nx", 0},
    /* Request bodies. */
    {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345GET /bye HTTP/1.1\r\nHost: a\r\n\r\n",
     ECHOED("5", "12345") BYE, -EAGAIN},
    {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\nGET /bye HTTP/1.1\r\nHost: a\r\n\r\n",
     ECHOED("0", "") BYE, -EAGAIN},
    {"POST /echo HTTP/1.1\r\nHost: a\r\n\r\nGET /bye HTTP/1.1\r\nHost: a\r\n\r\n", ECHOED("0", "") BYE,
     -EAGAIN},
    {"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
     "chunked\r\n\r\n3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nT: 1\r\n"
     "Content-Length: 5\r\n\r\nGET /bye HTTP/1.1\r\nHost: a\r\n\r\n",
     ECHOED("16", "abc0123456789[T]") BYE, -EAGAIN},
    {"POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345GET /bye HTTP/1.1\r\nHost: a\r\n\r\n",
     HELLO BYE, -EAGAIN},
    {"POST /hello HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\nGET /bye "
     "HTTP/1.1\r\n"
     "Host: a\r\n\r\n",
     HELLO BYE, -EAGAIN},
    {"POST /hello HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", HELLO, 0},
    {"POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n12345",
     "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 5\r\nConnection: close\r\n\r\nhello", 0},
    {"POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
     "HTTP/1.1 200 OK\r\n" DATED "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", -EAGAIN},
    {"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
     "HTTP/1.1 400 Bad Request\r\n" DATED "Content-Length: 2\r\nConnection: close\r\n\r\nno", 0},
    /* Limits of the request body. */
    {"POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345", ECHOED("5", "12345"), -EAGAIN},
    {"POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n123456GET /bye HTTP/1.1\r\nHost: a\r\n\r\n",
     "HTTP/1.1 413 Content Too Large\r\n" DATED "Content-Length: 2\r\n\r\nno" BYE, -EAGAIN},
    {"POST /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n123456\r\n0\r\n\r\n",
     "HTTP/1.1 413 Content Too Large\r\n" DATED "Content-Length: 2\r\nConnection: close\r\n\r\nno", 0},
    /* Expect. */
    {"POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n", ECHOED("0", ""),
     -EAGAIN},
    {"POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
     "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 2\r\nConnection: close\r\n\r\nab", 0},
    {"POST /small HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n",
     "HTTP/1.1 413 Content Too Large\r\n" DATED "Content-Length: 2\r\nConnection: close\r\n\r\nno", 0},
    {"GET /hello HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n", REFUSED("417 Expectation Failed"), 0},
    /* A rejected request ends the connection. */
    {"GET /hello HTTP/1.1\r\n\r\nGET /bye HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED("400 Bad Request"), 0},
    {"GET /hello HTTP/1.1\r\nHost: a\r\n\r\nbad\r\n\r\n", HELLO REFUSED("400 Bad Request"), 0},
    {"GET /hello HTTP/1.1\nHost: a\n\n", REFUSED("400 Bad Request"), 0},
    {"GET / HTTP/2.0\r\n\r\n", REFUSED("505 HTTP Version Not Supported"), 0},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", REFUSED("505 HTTP Version Not Supported"), 0},
    {"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", REFUSED("501 Not Implemented"), 0},
    {"\x16\x03\x01\x02", REFUSED("400 Bad Request"), 0},
    {"\r\n\r\n\r\n\r\n\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED("400 Bad Request"), 0},
};

static void check_sequence(const struct sequence *sequence, size_t piece, size_t room)
{
    struct table_server server;
    struct str received;

    table_server_open(&server, &protocol_http1, rows);
    server.room = room;
    table_server_feed(&server, str_from(sequence->sent), piece);
    received = table_server_take(&server);
    ck_assert_msg(str_equal(received, str_from(sequence->received)),
                  "sent in pieces of %zu, taken in pieces of %zu:\n%s\nreceived:\n" STR_FMT
                  "\ninstead of:\n%s",
                  piece, room, sequence->sent, STR_ARG(received), sequence->received);
    ck_assert_msg(server.result == sequence->result, "%d at the end of\n%s", server.result, sequence->sent);
    ck_assert_uint_eq(server.unread.length, 0);
    table_server_close(&server);
}

START_TEST(each_sequence_has_its_responses)
{
    for (size_t i = 0; i < COUNT(sequences); i++)
        check_sequence(&sequences[i], 0, 0);
}
END_TEST

START_TEST(responses_do_not_depend_on_the_input_pieces)
{
    for (size_t i = 0; i < COUNT(sequences); i++) {
        for (size_t piece = 1; piece < 12; piece++)
            check_sequence(&sequences[i], piece, 0);
    }
}
END_TEST

/* Chunk sizes depend on the room, so chunked responses are left out here. */
START_TEST(responses_do_not_depend_on_the_output_pieces)
{
    for (size_t i = 0; i < COUNT(sequences); i++) {
        if (strstr(sequences[i].received, "chunked") || strstr(sequences[i].sent, "chunked") ||
            strstr(sequences[i].sent, "/long") || strstr(sequences[i].sent, "/short"))
            continue;
        for (size_t room = 1; room < 12; room++)
            check_sequence(&sequences[i], 3, room);
    }
}
END_TEST

/* In two pieces, divided at every byte. */
START_TEST(responses_do_not_depend_on_the_split)
{
    for (size_t i = 0; i < COUNT(sequences); i++) {
        struct str sent = str_from(sequences[i].sent);

        for (size_t split = 1; split < sent.length; split++) {
            struct table_server server;

            table_server_open(&server, &protocol_http1, rows);
            table_server_feed(&server, str_slice(sent, 0, split), 0);
            table_server_feed(&server, str_skip(sent, split), 0);
            ck_assert_text(table_server_take(&server), sequences[i].received);
            table_server_close(&server);
        }
    }
}
END_TEST

/* All requests that keep the connection open, in one stream, divided at random. */
START_TEST(pipelined_requests_have_their_responses_in_order)
{
    struct buffer sent = {0};
    struct buffer expected = {0};

    for (size_t i = 0; i < COUNT(sequences); i++) {
        if (sequences[i].result != -EAGAIN)
            continue;
        ck_assert_int_eq(buffer_append(&sent, str_from(sequences[i].sent)), 0);
        ck_assert_int_eq(buffer_append(&expected, str_from(sequences[i].received)), 0);
    }
    srand(1);
    for (int round = 0; round < 200; round++) {
        struct str rest = buffer_str(&sent);
        struct table_server server;

        table_server_open(&server, &protocol_http1, rows);
        while (rest.length) {
            size_t length = (size_t)rand() % 200 + 1;

            table_server_feed(&server, str_slice(rest, 0, length), 0);
            rest = str_skip(rest, length);
        }
        ck_assert(str_equal(table_server_take(&server), buffer_str(&expected)));
        table_server_close(&server);
    }
    buffer_finish(&sent);
    buffer_finish(&expected);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        each_sequence_has_its_responses, responses_do_not_depend_on_the_input_pieces,
        responses_do_not_depend_on_the_output_pieces, responses_do_not_depend_on_the_split,
        pipelined_requests_have_their_responses_in_order,
    };

    return suite_run("h1_session", tests, COUNT(tests));
}
