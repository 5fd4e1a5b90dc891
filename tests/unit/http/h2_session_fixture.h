/* Shared by the tests of HTTP/2 sessions: the server, the client, and macros for the expected frames. */
#ifndef TEST_HTTP_H2_SESSION_FIXTURE_H
#define TEST_HTTP_H2_SESSION_FIXTURE_H

#include "base/limits.h"
#include "h2_client.h"
#include "suite.h"

static char big[100001]; /* a body of 100000 bytes */

static const struct table_row rows[] = {
    {.path = "/hello", .status = 200, .body = "hello"},
    {.path = "/none", .status = 204},
    {.path = "/later", .status = 200, .body = "late", .behavior = TABLE_LATER},
    {.path = "/close", .status = 200, .body = "x", .close_after = true},
    {.path = "/echo", .behavior = TABLE_ECHO},
    {.path = "/small", .behavior = TABLE_ECHO, .body_limit = 5},
    {.path = "/limited", .status = 200, .body = "x", .body_limit = 5},
    {.path = "/stream", .status = 200, .behavior = TABLE_STREAM},
    {.path = "/tunnel", .status = 101, .header = "Upgrade: websocket", .behavior = TABLE_STREAM, .trailer = "Digest: x",
     .body_limit = 3},
    {.path = "/cut", .status = 101, .body = "part", .behavior = TABLE_BROKEN},
    {.path = "/denied", .status = 403, .body = "no"},
    {.path = "/hints", .status = 200, .body = "x", .inform = "Link: </a>"},
    {.path = "/trailers", .status = 200, .body = "hi", .unknown_length = true, .trailer = "Digest: x"},
    {.path = "/unknown", .status = 200, .body = "hi", .unknown_length = true},
    {.path = "/big", .status = 200, .body = big},
    {.path = "/broken", .status = 200, .body = "part", .behavior = TABLE_BROKEN},
    {.path = "/short", .status = 200, .body = "part", .behavior = TABLE_BROKEN, .declared_length = 5},
    {.path = "/long", .status = 200, .body = "part", .behavior = TABLE_BROKEN, .declared_length = 3},
    {.path = "/pauses", .status = 200, .body = "0123456789", .behavior = TABLE_PAUSES},
    {.path = "/type", .status = 200, .body = "x", .header = "Content-Type: text/plain"},
    {.path = "/name", .status = 200, .body = "x", .header = "a b: x"},
    {.path = "/connection", .status = 200, .body = "x", .header = "Connection: close"},
    {.path = NULL, .status = 404, .body = "?"},
};

static struct h2_client client;
static struct table_server *const server = &client.server;

#define PREFACE "SETTINGS\nWINDOW_UPDATE 0 983041\nSETTINGS ack\n"
#define OK(stream) "HEADERS " stream " :status=200 content-length=5\nDATA " stream " 5 hello end\n"

#define expect(text) ck_assert_str_eq(h2_client_log(&client), text)

/* Opens the client and checks the server's response to the preface. */
static inline void open_session(void)
{
    memset(big, 'b', sizeof(big) - 1);
    h2_client_open(&client, rows);
    expect(PREFACE);
}

/* Lets time pass, with SESSION_DEADLINE when it is due; as the timer of a connection, it may be up to a second late. */
static inline void advance_clock(uint64_t ms)
{
    for (uint64_t end = server->clock.monotonic_ms + ms; server->clock.monotonic_ms < end;) {
        server->clock.monotonic_ms += ms < 1000 ? ms : 1000;
        if (server->protocol->deadline(server->session) <= server->clock.monotonic_ms)
            table_server_signal(server, SESSION_DEADLINE);
    }
}

static inline void close_session(void)
{
    h2_client_check_end(&client);
    h2_client_close(&client);
}

#endif
